"""Decompose an affine access into digits along each axis (analysis only): the test whether it is a strided view.

Search terms: strided view, layout, mixed radix. Along each axis a view is a start plus digits, each a variable times a
step: a slice, split by a reshape into an axis for each digit. A variable on several axes is a diagonal.
`lower_views.py` writes such views as operations. Left out: overlapping digits, as in windows `x[i + j]` (see
`lower_accesses.py`).
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from tapeless.tracer.terms.affine import Access, Affine, Variable

Shape = tuple[int, ...]


class Digit(NamedTuple):
    """A variable times a step in an index, backwards if `turned`; the next larger digit has a step of radix steps."""

    variable: Variable
    step: int
    radix: int
    turned: bool


class DigitAxis(NamedTuple):
    """The elements start + Σ step v along an axis of `size` elements; the digit with the largest step comes first."""

    size: int
    start: int
    digits: tuple[Digit, ...]

    @property
    def step(self) -> int:
        """Return the step of the least digit."""
        return self.digits[-1].step if self.digits else 1

    @property
    def length(self) -> int:
        """Count the elements, a step of the least digit apart, that the digits below their radices count through."""
        return self.digits[0].radix * self.digits[0].step // self.step if self.digits else 1

    @property
    def stop(self) -> int:
        return self.start + self.step * (self.length - 1) + 1


def axes_of(access: Access, shape: Shape, sizes: Sequence[int]) -> tuple[DigitAxis, ...] | None:
    """Decompose each index of an access into digits; None if one has symbols, overlaps digits, or leaves its axis."""
    return _axes_of(access, tuple(shape), tuple(sizes))


@lru_cache(maxsize=4096)
def _axes_of(access: Access, shape: Shape, sizes: Shape) -> tuple[DigitAxis, ...] | None:
    found = [_axis(a, n, sizes) for a, n in zip(access, shape, strict=True)]
    return None if None in found else tuple(found)  # type: ignore[arg-type]


def _axis(a: Affine, size: int, sizes: Sequence[int]) -> DigitAxis | None:
    if a.symbols:
        return None
    steps = sorted(a.variables, key=lambda pair: -abs(pair[1]))
    start = a.constant + sum(k * (sizes[v] - 1) for v, k in steps if k < 0)
    radices = [sizes[v] for v, _ in steps[:1]]
    for (_, high), (v, low) in pairwise(steps):
        if high % low or abs(high // low) < sizes[v]:
            return None
        radices.append(abs(high // low))
    digits = [Digit(v, abs(k), radix, k < 0) for (v, k), radix in zip(steps, radices)]
    axis = DigitAxis(size, start, tuple(digits))
    return axis if start >= 0 and axis.stop <= size else None
