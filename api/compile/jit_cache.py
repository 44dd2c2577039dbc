"""Cache of `jit`: a later `jit` of the same function finds the programs traced and compiled before.

The key is the function itself and the options, as in JAX; types of arguments, devices and settings are keys within.
Only plain functions are shared: a callable object has attributes, a bound method or a partial has arguments, and these
may have changed between two calls of `jit`. The cache holds functions weakly, and nothing in it holds them
(but a program of a function with rules of its own does, if those close over the function that is jitted); it forgets
the function jitted longest ago when it is full.
"""

import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from types import FunctionType
from typing import Any, NamedTuple

from tapeless.arguments.names import argument_name, leaf_names, naming
from tapeless.compile.stages import KnownCall
from tapeless.lowering import devices
from tapeless.tracer import core, pytree, source
from tapeless.tracer.settings.config import differing_settings


class Programs:
    """Programs of one function jitted with one set of options, by settings and types of its arguments.

    calls: ways to call, the newest first; compiled: what is called; traces: before compilation; tree: the structure of
    the arguments of the last call that went another way.
    """

    __slots__ = ("__weakref__", "calls", "compiled", "traces", "tree")

    def __init__(self, tree: Any) -> None:
        self.calls: tuple[KnownCall, ...] = ()
        self.compiled: dict[Any, Any] = {}
        self.traces: dict[Any, Any] = {}
        self.tree: Any = tree
        _all.add(weakref.ref(self, _all.discard))

    def clear(self) -> None:
        """Forget all programs."""
        self.calls = ()
        self.compiled.clear()
        self.traces.clear()


def remember(table: dict[Any, Any], key: Any, value: Any) -> Any:
    """Enter `value` into a table, which is emptied first if it is full; return it."""
    if len(table) >= _PROGRAMS_LIMIT:
        table.clear()
    table[key] = value
    return value


def programs_of(fun: Any, options: Hashable, make: Callable[[], Programs]) -> Programs:
    """Find the programs of an earlier `jit` of this function with these options, else `make()` them."""
    if type(fun) is not FunctionType:
        return make()
    key = (fun.__code__, options)  # reloading a module may give a function object other code
    with _lock:
        by_options = _functions.pop(fun, None)
        if by_options is None:
            by_options = {}
        if len(_functions) >= _FUNCTIONS_LIMIT:
            _functions.pop(next(iter(_functions.keys())), None)
        _functions[fun] = by_options  # the newest is last, the first to go is first
        return by_options.get(key) or remember(by_options, key, make())


def note_traced(fun: Any) -> bool:
    """Remember that a function is traced; tell whether another one of the same code was."""
    code = getattr(fun, "__code__", None)
    if code is None:
        return False
    last, _traced_codes[code] = _traced_codes.get(code), weakref.ref(fun)
    return last is not None and last() is not fun


def clear_programs() -> None:
    """Clear the cache of `jit`, of all functions."""
    with _lock:
        for programs in [ref() for ref in list(_all)]:
            if programs is not None:
                programs.clear()


def add_call(programs: Programs, call: KnownCall) -> None:
    """Add a way to call; the oldest is forgotten where there are too many to be tried one after the other."""
    others = [known for known in programs.calls if known is not call]
    programs.calls = (call, *others[: _CALLS_LIMIT - 1])
    if not devices.only_one():  # another thread connected to one meanwhile
        programs.calls = ()


def forget_calls() -> None:
    """Forget the ways to call: where there are several devices, the arguments say on which."""
    with _lock:
        for programs in [ref() for ref in list(_all)]:
            if programs is not None:
                programs.calls = ()


devices.when_connected.append(forget_calls)
_CALLS_LIMIT = 32  # a quarter of a microsecond for each that does not fit
_FUNCTIONS_LIMIT = 1024
_PROGRAMS_LIMIT = 1024
_functions: weakref.WeakKeyDictionary[Any, dict[Any, Programs]] = weakref.WeakKeyDictionary()
_traced_codes: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()
_all: set[weakref.ref[Programs]] = set()
_lock = threading.RLock()  # reentrant: collecting garbage while it is held may run a finalizer that calls jit

# ---- misses --------------------------------------------------------------------------------------------------
# What `config.explain_cache_misses` logs: why a jitted function is traced again.


class TraceKey(NamedTuple):
    """The key that a trace is remembered by: types of leaves, structure, static arguments, device, settings."""

    avals: tuple[Any, ...]
    tree: Any
    statics: Any
    device: Any
    settings: Any


def explain_retrace(who: str, fun: Any, key: TraceKey, known: Iterable[TraceKey], has_twin: bool) -> str:
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
