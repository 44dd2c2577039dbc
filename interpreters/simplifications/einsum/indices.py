"""Affine equality constraints among the indices of an einsum (i == j + c), solved by substitution.

Of two that must be equal the one that is summed over is replaced, if there is one; two of the result need a mask.
Source: Bernstein et al. 2020, section 5.
"""

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple


class Equal(NamedTuple):
    """Constraint on two indices: `one == other + shift`."""

    one: int
    other: int
    shift: int


class Indices:
    """Index ranges after substituting every equality constraint; `summed` are the contracted indices that remain."""

    def __init__(self, sizes: Mapping[int, int], summed: Set[int], equal: Sequence[Equal]) -> None:
        self.summed = set(summed)
        self.masks: list[Equal] = []  # of two indices of the result, the first of which is replaced
        self.is_empty = False
        self._sizes = sizes
        self._now: dict[int, tuple[int, int]] = {}
        self._ranges: dict[int, range] = {}
        for constraint in equal:
            self._equate(constraint)
        self.is_empty |= any(not indices for indices in self._ranges.values())

    def now(self, k: int) -> tuple[int, int]:
        """Return the index that replaces `k`, and the shift to add to it."""
        shift = 0
        while k in self._now:
            k, more = self._now[k]
            shift += more
        return k, shift

    def range(self, k: int) -> range:
        """The values of an index."""
        return self._ranges.get(k, range(self._sizes[k]))

    def _equate(self, equal: Equal) -> None:
        (i, of_i), (j, of_j) = self.now(equal.one), self.now(equal.other)
        shift = of_j + equal.shift - of_i
        if i == j:
            self.is_empty |= shift != 0
            return
        if i not in self.summed and j in self.summed:
            i, j, shift = j, i, -shift
        if i in self.summed:
            self.summed.remove(i)
        else:
            self.masks.append(Equal(i, j, shift))
        self._now[i] = j, shift
        mine, own = self.range(j), self.range(i)
        self._ranges[j] = range(max(mine.start, own.start - shift), min(mine.stop, own.stop - shift))
