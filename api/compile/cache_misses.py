"""Why a jitted function is traced again: what `config.explain_cache_misses` logs."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from tapeless.arguments.names import argument_name, leaf_names, naming
from tapeless.tracer import core, pytree, source
from tapeless.tracer.settings.config import differing_settings


class TraceKey(NamedTuple):
    """The key that a trace is remembered by: types of leaves, structure, static arguments, device, settings."""

    avals: tuple[Any, ...]
    tree: Any
    statics: Any
    device: Any
    settings: Any


def explained(who: str, fun: Any, key: TraceKey, known: Iterable[TraceKey], has_twin: bool) -> str:
    """Explain why none of the traces that are `known` serves for `key`: how the closest of them differs.

    Args:
      who: traces it, in messages.
      known: a table to which other threads may add.
      has_twin: whether another function of the same code was traced.
    """
    where = source.describe_here()
    what, called = f"{who} traces {core.describe_function(fun)}", f" Called at {where}." if where else ""
    differences = [list(_differences(fun, key, other)) for other in list(known)]
    if not differences:
        twin = "\n  It traced another function of the same code: define and jit one function once, not for each call."
        return f"{what} for the first time.{called}{twin if has_twin else ''}"
    closest = min(differences, key=len)
    lines = "".join(pytree.first([f"  {line}\n" for line in closest])).rstrip("\n")
    n = len(differences)
    since = "its earlier trace" if n == 1 else f"the most similar of its {n} earlier traces"
    return f"{what} again.{called} New since {since}:\n{lines}"


def _differences(fun: Any, key: TraceKey, other: TraceKey) -> Iterator[str]:
    if key.tree != other.tree:
        yield from _of_structure(fun, key, other)
    elif key.avals != other.avals:
        yield from _of_types(fun, key, other)
    if key.statics != other.statics:
        yield from _of_statics(fun, key.statics, other.statics)
    if key.settings != other.settings:
        yield from _of_settings(key.settings, other.settings)


def _of_structure(fun: Any, key: TraceKey, other: TraceKey) -> Iterator[str]:
    name = naming(fun, _static_positions(key))
    for path, *nodes in pytree.differences(key.tree, other.tree):
        now, before = map(pytree.describe_node, nodes)
        kind = "keyword" if path[0].idx else "positional"
        if len(path) > 1:
            yield f"Argument {name(path)} is {now}, and was {before}."
        else:
            yield f"The {kind} arguments are {now}, and were {before}."


def _of_types(fun: Any, key: TraceKey, other: TraceKey) -> Iterator[str]:
    args, kwargs = pytree.unflatten(key.tree, list(range(len(key.avals))))
    names = leaf_names(fun, args, kwargs, _static_positions(key))
    for name, now, before in zip(names, key.avals, other.avals, strict=True):
        if now is not before:
            is_weak = _weakness(now, before)
            yield (
                f"Argument {name} is {is_weak(now)}, and was {is_weak(before)}: another {_what_is_new(now, before)}."
            )


def _static_positions(key: TraceKey) -> list[int]:
    return [where for where, _ in key.statics.items[0]] if key.statics else []


def _weakness(now: Any, before: Any) -> Callable[[Any], str]:
    """Print types; where one of two is weak, which it is."""
    differ = getattr(now, "weak_type", None) != getattr(before, "weak_type", None)
    return lambda aval: f"{'weak ' if differ and aval.weak_type else ''}{aval}"


def _what_is_new(now: Any, before: Any) -> str:
    """Say which parts of a type differ."""
    parts = {"shape": "shape", "dtype": "dtype", "weak_type": "weak type (of Python numbers)"}
    new = [words for name, words in parts.items() if getattr(now, name, None) != getattr(before, name, None)]
    return " and ".join(new) or "type"


def _of_statics(fun: Any, now: Any, before: Any) -> Iterator[str]:
    exact_now, exact_before = _by_place(now), _by_place(before)
    for where in dict.fromkeys([*exact_now, *exact_before]):
        if exact_now.get(where) != exact_before.get(where):
            given, known = _value(now, where), _value(before, where)
            advice = _on_identity(_values(now).get(where), _values(before).get(where))
            yield f"Static argument {argument_name(fun, where)} is {given}, and was {known}.{advice}"


def _by_place(statics: Any) -> dict[Any, Any]:
    return dict(statics.key) if statics else {}


def _values(statics: Any) -> dict[Any, Any]:
    """Return the static arguments by their places."""
    return {place: value for group in statics.items for place, value in group} if statics else {}


def _value(statics: Any, where: Any) -> str:
    """Print a static argument."""
    found = _values(statics)
    return f"{found[where]!r:.200}" if where in found else "not given"


def _on_identity(now: Any, before: Any) -> str:
    """Advise what to do about objects of one class that are equal to nothing but themselves."""
    kind = type(now)
    if kind is not type(before) or kind.__eq__ is not object.__eq__:
        return ""
    if kind.__module__ == "builtins":
        return " Functions are equal only to themselves: define it once, not each time."
    return (
        f" Objects of {kind.__name__} are equal only to themselves: define __eq__ and __hash__, or pass the same one."
    )


def _of_settings(now: Any, before: Any) -> Iterator[str]:
    for name, value, other in differing_settings(now, before):
        yield f"{name} is {value!r}, and was {other!r}."
