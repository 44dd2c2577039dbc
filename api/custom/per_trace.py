"""Caches of what is traced for one program."""

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tapeless.tracer import core

K = TypeVar("K")
V = TypeVar("V")


class PerTrace(Generic[K, V]):
    """A cache for as long as the outermost trace: a program that calls a function often traces it once.

    The next program traces it anew, for it may read Python variables that have changed. Outside of any trace nothing is
    cached. None is no value.
    """

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: tuple[Callable[[], Any], dict[K, V]] = _no_trace, {}

    def get(self, key: K) -> V | None:
        """Return the entry for `key`; None if there is none of the trace at work."""
        of, found = self._found
        trace = core.outermost_trace()
        return found.get(key) if trace is not None and of() is trace else None

    def enter(self, key: K, value: V) -> V:
        """Add `value` for `key`, and return it."""
        trace = core.outermost_trace()
        if trace is not None:
            if self._found[0]() is not trace:
                self._found = weakref.ref(trace), {}
            self._found[1][key] = value
        return value


def _no_trace() -> None:
    return None
