"""Interned sets of indices: arrays of their labels stand for arrays of sets.

Search terms: hash consing, union of sparse rows, symbolic phase of a sparse matrix product. Label 0 is the empty set,
label 1 + j the set of j alone. Unions are computed for many groups at once, by sorting, and equal sets have one label,
so that what many elements share is joined once. Sets are told apart by their sizes and 128 random bits.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

Labels = Any  # an array of integers
SEED: Final = 20_130  # any number: results do not depend on it


class IndexSets:
    """Sets of the indices 0 to n - 1, by their labels."""

    def __init__(self, n: int) -> None:
        self.n: Final = n
        self._marks = np.random.default_rng(SEED).integers(0, 2**64, (n, 2), np.uint64)
        self._starts, self._sizes = np.maximum(np.arange(n + 1) - 1, 0), (np.arange(n + 1) > 0).astype(np.int64)
        self._members, self._filled = np.arange(n), n
        self._known: dict[tuple[int, int, int], int] = {
            (1, int(a), int(b)): 1 + j for j, (a, b) in enumerate(self._marks.tolist())
        }
        self._known[0, 0, 0] = 0

    def singletons(self, start: int, shape: Sequence[int]) -> Labels:
        """Return the labels of the sets of one index each, from `start` on, for an array of this shape."""
        size = int(np.prod(tuple(shape), dtype=np.int64))
        return np.arange(1 + start, 1 + start + size).reshape(tuple(shape))

    def sizes(self, labels: Labels) -> Any:
        """Count the members of sets."""
        return self._sizes[labels]

    def coordinates(self, labels: Labels) -> tuple[Any, Any]:
        """List the members of sets, in order, as (position in `labels`, member)."""
        return self._expanded(np.asarray(labels).reshape(-1))

    def _expanded(self, labels: Any) -> tuple[Any, Any]:
        sizes = self._sizes[labels]
        owners = np.repeat(np.arange(len(labels)), sizes)
        begins = np.cumsum(sizes) - sizes
        at = np.arange(len(owners)) - np.repeat(begins - self._starts[labels], sizes)
        return owners, self._members[at]

    def merged(self, x: Labels, y: Labels) -> Labels:
        """Unite sets element by element, of arrays that broadcast."""
        if x is y:
            return x
        x, y = np.broadcast_arrays(x, y)
        found = np.where((x == 0) | self._is_full(y), y, x)
        both = (x != y) & (x != 0) & (y != 0) & ~self._is_full(found)
        if both.any():
            low, high = np.minimum(x[both], y[both]), np.maximum(x[both], y[both])
            pairs, at = np.unique(low * len(self._sizes) + high, return_inverse=True)
            groups = np.repeat(np.arange(len(pairs)), 2)
            each = np.stack(np.divmod(pairs, len(self._sizes)), 1)
            found[both] = self._unions(groups, each.reshape(-1), len(pairs))[at.reshape(-1)]
        return found

    def united(self, groups: Any, labels: Labels, size: int) -> Labels:
        """Unite the sets of each of `size` groups: set k belongs to group groups[k]."""
        groups, labels = _distinct(groups[labels != 0], labels[labels != 0], len(self._sizes))
        full = self._is_full(labels)
        if full.any():
            has_all = np.zeros(size, bool)
            has_all[groups[full]] = True
            kept = full | ~has_all[groups]
            groups, labels = groups[kept], labels[kept]
        counts = np.bincount(groups, minlength=size)
        found = np.zeros(size, np.int64)
        found[groups[counts[groups] == 1]] = labels[counts[groups] == 1]
        several = counts > 1
        if several.any():
            found[several] = self._of_several(groups, labels, several)
        return found

    def along(self, labels: Labels, axes: Sequence[int]) -> Labels:
        """Unite the sets along axes, which stay with length 1."""
        kept = [1 if d in axes else n for d, n in enumerate(labels.shape)]
        size = int(np.prod(kept, dtype=np.int64))
        groups = np.broadcast_to(np.arange(size).reshape(kept), labels.shape)
        return self.united(groups.reshape(-1), labels.reshape(-1), size).reshape(kept)

    def union(self, labels: Labels) -> int:
        """Unite all sets of an array."""
        flat = np.asarray(labels).reshape(-1)
        return int(self.united(np.zeros(len(flat), np.int64), flat, 1)[0])

    def _is_full(self, labels: Labels) -> Any:
        """Tell which sets hold every index, so that others add nothing to them."""
        return self._sizes[labels] == max(self.n, 1)

    def _of_several(self, groups: Any, labels: Any, several: Any) -> Any:
        """Unite the sets of the groups that have several; groups of the same labels only once."""
        kept = several[groups]
        numbers = np.cumsum(several) - 1
        groups, labels, size = numbers[groups[kept]], labels[kept], int(numbers[-1]) + 1
        marks = self._label_marks(labels)
        starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
        signs = np.add.reduceat(marks, starts, axis=0)
        _, first, at = np.unique(_as_void(signs), return_index=True, return_inverse=True)
        chosen = np.full(size, -1)
        chosen[first] = np.arange(len(first))
        own = chosen[groups] >= 0
        return self._unions(chosen[groups[own]], labels[own], len(first))[at.reshape(-1)]

    def _label_marks(self, labels: Any) -> Any:
        """Hash labels to 128 bits, by a mixing function whose sums over different sets of labels differ."""
        x = labels.astype(np.uint64)
        return np.stack([_mixed(x), _mixed(x + np.uint64(2**40))], 1)

    def _unions(self, groups: Any, labels: Any, size: int) -> Any:
        """Unite the sets of groups, none of them empty, and return their labels."""
        owners, members = self._expanded(labels)
        groups, members = _distinct(groups[owners], members, max(self.n, 1))
        sizes = np.bincount(groups, minlength=size)
        starts = np.cumsum(sizes) - sizes
        marks = np.add.reduceat(self._marks[members], starts, axis=0)
        return self._interned(members, starts, sizes, marks)

    def _interned(self, members: Any, starts: Any, sizes: Any, marks: Any) -> Any:
        known, first = self._known, len(self._sizes)
        found, new = np.empty(len(sizes), np.int64), list[int]()
        for k, key in enumerate(zip(sizes.tolist(), *marks.T.tolist())):
            label = known.get(key)
            if label is None:
                label = known[key] = first + len(new)
                new.append(k)
            found[k] = label
        if new:
            self._append(members, starts[new], sizes[new])
        return found

    def _append(self, members: Any, starts: Any, sizes: Any) -> None:
        total = int(sizes.sum())
        begins = np.cumsum(sizes) - sizes
        at = np.arange(total) - np.repeat(begins - starts, sizes)
        if self._filled + total > len(self._members):
            grown = np.empty(2 * (self._filled + total), np.int64)
            grown[: self._filled] = self._members[: self._filled]
            self._members = grown
        self._members[self._filled : self._filled + total] = members[at]
        self._starts = np.r_[self._starts, self._filled + begins]
        self._sizes = np.r_[self._sizes, sizes]
        self._filled += total


def _distinct(groups: Any, members: Any, limit: int) -> tuple[Any, Any]:
    """Sort pairs by group and member, each once; members are below `limit`."""
    codes = groups * limit + members
    if len(codes) > 1 and not (codes[1:] > codes[:-1]).all():
        codes = sorted_once(codes)
    return np.divmod(codes, limit)


def sorted_once(codes: Any) -> Any:
    """Sort integers, and keep each once; `numpy.unique`, by hashing, takes several times as long."""
    found = np.sort(codes)
    return found[np.r_[True, found[1:] != found[:-1]]] if len(found) else found


def _mixed(x: Any) -> Any:
    """Mix the bits of integers, as the generator splitmix64 does."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _as_void(rows: Any) -> Any:
    """View each row of integers as one comparable element."""
    return np.ascontiguousarray(rows).view([("a", np.uint64), ("b", np.uint64)]).reshape(-1)
