"""Ranges of indices: periodic ones, whose indices are counted modulo their size, and ones that are symmetric about 0.

Search terms: cyclic group, Brillouin zone, periodic boundary condition.
"""

from dataclasses import dataclass
from typing import Any

from tapeless.tracer.indices.index import Index, Variable


@dataclass(frozen=True, slots=True)
class Range:
    """A range of an index, for shapes of `Space`s and bodies.

    An index of a periodic range reads an array modulo the size. An index of a symmetric range is from -m to m, and the
    size is 2 m + 1: alone, or negated, it reads an axis of that size from its middle; with a number added, it counts
    from 0. Formulas keep sums over a range with `eliminate=False`.
    """

    name: str
    size: int
    periodic: bool = False
    symmetric: bool = False
    eliminate: bool = True

    def __index__(self) -> int:
        return self.size

    def index(self, variable: Index) -> Index:
        """Make the index of this range from a variable, whose values are from 0 to the size - 1."""
        ((part, _),) = variable.parts.items()
        assert isinstance(part, Variable)
        period, middle = self.size if self.periodic else None, self.size // 2 if self.symmetric else None
        own = Variable(part.value, part.size, period, middle, part.name, not self.eliminate, self.name)
        return Index(-(middle or 0), {own: 1})


def place_in(r: Any, index: Index) -> Index:
    """Convert an index of a range, or of a number of values, to its position, which counts from 0."""
    if isinstance(r, Range) and r.periodic:
        return index % r.size
    return index + r.size // 2 if isinstance(r, Range) and r.symmetric else index


def range_of(name: str, n: int, *, periodic: bool = False, symmetric: bool = False, eliminate: bool = True) -> Range:
    """Make a named range of an index.

    Args:
      name: as errors call it.
      n: how many values an index has.
      periodic: from 0 to n - 1, and reading is modulo n: `x[k + 1]` and `x[k - 1]` are inside of x for every k.
      symmetric: from -m to m, n being 2 m + 1.
      eliminate: whether formulas may solve equations for the index, and write `w[a]` for `Σ[b] [a = b] w[b]`. If not,
        sums over indices that read an array, `w[b]`, stay, and so do their brackets; equations are solved for other
        indices. The computation is the same.
    Raises: TypeError if n is no integer; ValueError if n is negative, or even and the range symmetric, or it is both.

    >>> import tapeless as tl
    >>> from tapeless import index as ix
    >>> k = ix.range("k", 4, periodic=True)
    >>> x = tl.numpy.array([1, 2, 3, 4])
    >>> ix.build(k, lambda k: x[k + 1] - x[k])
    Array([ 1,  1,  1, -3], dtype=int32)
    """
    n = int(n.__index__())
    if n < 0 or (symmetric and n % 2 == 0):
        raise ValueError(
            f"index.range: {name} has {n} values; expected {'an odd number' if symmetric else 'at least 0'}."
        )
    if periodic and symmetric:
        raise ValueError(f"index.range: {name} is periodic or symmetric, not both.")
    return Range(name, n, periodic, symmetric, eliminate)
