"""Why a jitted function is traced again: what `config.explain_cache_misses` logs."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tapeless.arguments.names import leaf_names, static_name
from tapeless.tracer import core, pytree, source
from tapeless.tracer.config import differing_settings


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
      has_twin: whether another function of the same code was traced.
    """
    where = source.describe_here()
    called = f"{core.describe_function(fun)} is traced for {who}{f', called at {where}' if where else ''}"
    differences = [list(_differences(fun, key, other)) for other in known]
    if not differences:
        twin = " Another function of the same code was:\n  define and jit it once, not each time that it is called."
        return f"{called}: it was not before.{twin if has_twin else ''}"
    closest = min(differences, key=len)
    return f"{called}: of {len(differences)} trace(s) of it the closest differs.\n  " + "\n  ".join(closest)


def _differences(fun: Any, key: TraceKey, other: TraceKey) -> Iterator[str]:
    if key.tree != other.tree:
        yield f"The structure of the arguments is {key.tree}, and was {other.tree}."
    elif key.avals != other.avals:
        yield from _of_types(fun, key, other)
    if key.statics != other.statics:
        yield from _of_statics(fun, key.statics, other.statics)
    if key.settings != other.settings:
        yield from _of_settings(key.settings, other.settings)


def _of_types(fun: Any, key: TraceKey, other: TraceKey) -> Iterator[str]:
    args, kwargs = pytree.unflatten(key.tree, list(range(len(key.avals))))
    removed = [where for where, _ in key.statics.items[0]] if key.statics else []
    for name, now, before in zip(leaf_names(fun, args, kwargs, removed), key.avals, other.avals, strict=True):
        if now is not before:
            yield f"Argument {name} is {now}, and was {before}: another {_what_is_new(now, before)}."


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
            yield f"Static argument {static_name(fun, where)} is {given}, and was {known}."


def _by_place(statics: Any) -> dict[Any, Any]:
    return dict(statics.key) if statics else {}


def _value(statics: Any, where: Any) -> str:
    """A static argument as it prints."""
    found = {place: value for group in statics.items for place, value in group} if statics else {}
    return f"{found[where]!r:.200}" if where in found else "not given"


def _of_settings(now: Any, before: Any) -> Iterator[str]:
    for name, value, other in differing_settings(now, before):
        yield f"{name} is {value!r}, and was {other!r}."
