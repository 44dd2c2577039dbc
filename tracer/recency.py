"""Caches that evict entries which have not been used for long (approximately LRU)."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

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


def bounded(table: dict[Any, Any], limit: int) -> dict[Any, Any]:
    """Return `table`, emptied if it has `limit` entries: for entries that are cheap to compute again."""
    if len(table) >= limit:
        table.clear()
    return table
