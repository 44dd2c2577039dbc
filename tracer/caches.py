"""Caches: of the entries that were used last (approximately LRU), of what is derived from programs; and exact keys."""

import functools
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

# Caches of what is derived from programs, for as long as these live.


class ProgramCache:
    """A weak cache by program: values derived from a jaxpr are kept for as long as the jaxpr lives.

    They are stored in the jaxpr: a table with weak keys would never drop a value that refers back to its key, as a
    derived program often does.
    """

    __slots__ = ("_programs",)

    def __init__(self) -> None:
        self._programs: set[weakref.ref[Any]] = set()

    def __contains__(self, jaxpr: Any) -> bool:
        return self in jaxpr.derived

    def get(self, jaxpr: Any) -> dict[Any, Any] | None:
        """Return the cache of a program, or None."""
        return jaxpr.derived.get(self)

    def setdefault(self, jaxpr: Any, default: dict[Any, Any]) -> dict[Any, Any]:
        """Return the cache of a program; if there is none, it becomes `default`."""
        found = jaxpr.derived.get(self)
        if found is None:
            found = jaxpr.derived.setdefault(self, default)
            self._programs.add(weakref.ref(jaxpr, self._programs.discard))
        return found

    def clear(self) -> None:
        """Drop the cached values of all programs."""
        for jaxpr in [ref() for ref in list(self._programs)]:
            if jaxpr is not None:
                jaxpr.derived.pop(self, None)


def program_cache() -> ProgramCache:
    """Make a cache by program."""
    return ProgramCache()


_Function = TypeVar("_Function", bound=Callable[..., Any])


def memoize_by_program(f: _Function) -> _Function:
    """Memoize a function of a program and other arguments for as long as the program lives."""
    cache = ProgramCache()

    @functools.wraps(f)
    def found(jaxpr: Any, *args: Any) -> Any:
        known = jaxpr.derived.get(cache) or cache.setdefault(jaxpr, {})
        result = known.get(args, _UNKNOWN)
        if result is _UNKNOWN:
            result = f(jaxpr, *args)
            known[args] = _SAME if result is jaxpr else result  # an entry that held its own program would keep it alive
        return jaxpr if result is _SAME else result

    return found  # type: ignore[return-value]


_SAME, _UNKNOWN = object(), object()


K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A cache of the entries used last: at least `limit` of them, and at most twice as many. None is no value.

    There are two generations. An entry found in the old one moves to the new one; once that is full, it becomes the old
    one, and the former old one is dropped. Finding frequent entries costs as much as in a dict: `get` is a dict's.
    """

    __slots__ = ("_limit", "_new", "_old", "get")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._new: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self.get: Callable[[K], V | None] = self._new.get

    def __len__(self) -> int:
        return len(self._new.keys() | self._old.keys())

    def recall(self, key: K) -> V | None:
        """Return the entry for a key that `get` does not find, and make it recent; None if there is none."""
        found = self._old.get(key)
        return None if found is None else self.enter(key, found)

    def enter(self, key: K, value: V) -> V:
        """Add `value` for `key`, and return it."""
        if len(self._new) >= self._limit:
            self._old, self._new = self._new, {}
            self.get = self._new.get
        self._new[key] = value
        return value


def bound_entries(table: dict[Any, Any], limit: int) -> dict[Any, Any]:
    """Return `table`, emptied if it has `limit` entries: for entries that are cheap to compute again."""
    if len(table) >= limit:
        table.clear()
    return table


def exact_key(value: Any, of_other: Callable[[Any], Any]) -> Any:
    """Return a key of a value, equal only to those of values that cannot be told apart; None if there is none.

    So 1, 1.0 and True differ, in tuples and frozen sets too, and 0.0 and -0.0, also NumPy's; nan equals itself.

    of_other: returns the key of a value that is neither a number, a text nor one of these containers, or None.
    """
    kind = type(value)
    if kind in _EQUAL_ARE_ALIKE:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if kind is tuple or kind is frozenset:
        parts = [exact_key(part, of_other) for part in value]
        return None if None in parts else (kind, kind(parts))
    return of_other(value)


_EQUAL_ARE_ALIKE = frozenset((int, bool, str, bytes, type(None)))
