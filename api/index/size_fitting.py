"""Interpolation of what holds for all sizes: texts whose numbers are polynomials, or quotients, of symbolic sizes.

A polynomial is fitted in exact arithmetic to programs of a few sizes, and compared with others: near, a thousand times
as large, in the other orders of sizes, and from 1 on. Where it disagrees with large ones it is an error, naming the
line that branches on a size if there is one; where it disagrees with small ones, it is said from which size on it
holds. So it is verified, not proved: a program that is another one for a few sizes in between is not found out.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import islice, permutations
from typing import Final, NamedTuple

from tapeless.index.executed_branches import Executed, branch_between, with_executed
from tapeless.tracer.indices.size_polynomials import Point, Polynomial, interpolate_polynomial
from tapeless.tracer.indices.sizes import with_sizes

DEGREE = 4  # the highest that is tried
STARTS = 6, 18, 30, 42, 54  # sizes that programs are traced for, and upwards, in the same order
SCALES = 1, 8  # of starts: what is the shortest way to compute may be another one for small sizes
BEYOND = ((5, 3, 4, 6, 7), (2, 7, 5, 3, 6), (7, 6, 2, 5, 3))  # what is added where a polynomial is compared
LARGER = tuple([4**k for k in range(1, 7)])  # times the start, where it is compared as well,
SECONDS = 1.0  # unless one of them takes longer: loops in Python over sizes are unrolled
SMALLER = 1, 2, 3, 4, 5, 8, 12, 17, 29, 47
ORDERS = 24  # of sizes that are tried: differences of sizes are to be positive
MOST_BELOW = 1000  # the largest denominator of what a decimal stands for
ROUNDING = 1e-5  # of decimals, which were computed in float32 at worst

Sample = tuple[str, tuple[str, ...]]  # a text without its numbers, and these


Least = tuple[tuple[str, int], ...]  # sizes, and what they are at least


class QuotientOfSizes(NamedTuple):
    """A polynomial over another one."""

    above: Polynomial
    below: Polynomial

    def is_near(self, values: dict[str, int], text: str) -> bool:
        """Tell whether the quotient is the number that is printed, if that is a decimal up to its rounding."""
        below, x = self.below.at(values), Fraction(text)
        exact = self.above.at(values) / below if below else None
        return exact is not None and (exact == x if text.isdecimal() else abs(exact - x) <= ROUNDING * abs(exact))


class Fitted(NamedTuple):
    """A text with numbers, for all sizes that are at least `least`.

    kept: the text without them. numbers: as they were written where all are the same, else by the sizes.
    """

    kept: str
    numbers: tuple[QuotientOfSizes | str, ...]
    least: Least


def condition(least: Least) -> str:
    """Write ` if n >= 3`, or nothing if there is no such size."""
    return " if " + ", ".join([f"{name} >= {n}" for name, n in least]) if least else ""


def fit_formulas(what: str, names: Sequence[str], evaluate: Callable[[], Sample]) -> Fitted:
    """Fit samples, evaluated where sizes have values, by formulas for all sizes.

    Raises: ValueError if a sample is no polynomial of the sizes, or another polynomial for larger sizes.
    """
    samples = _Samples(what, names, evaluate)
    start = samples.start(SCALES[0])
    found = _fitted_from(samples, start)
    if not isinstance(found, Fitted) and samples.branch(start, found) is None:
        start = samples.start(SCALES[1])
        found = _fitted_from(samples, start)
    if isinstance(found, Fitted):
        return found
    raise samples.error(start, found)


def _fitted_from(samples: "_Samples", start: Point) -> Fitted | Point:
    """Fit from some sizes on; give sizes that nothing of a degree in question agrees with, if there are such."""
    beyond = [tuple(map(int.__add__, start, islice(more, len(start)))) for more in BEYOND]
    for degree in range(DEGREE + 1):
        found = _interpolated(samples, start, degree)
        if found is not None and all(samples.agrees(found, p) for p in beyond):
            wrong = next((p for p in samples.elsewhere(start) if not samples.agrees(found, p)), None)
            return wrong or found._replace(least=tuple(samples.least(found, start)))
    return beyond[0]


class _Samples:
    """Evaluations for some sizes, each with the branches that it takes."""

    def __init__(self, what: str, names: Sequence[str], evaluate: Callable[[], Sample]) -> None:
        self.what: Final = what
        self.names: Final = tuple(names)
        self._evaluate: Final = evaluate
        self._known: Final = dict[Point, tuple[Sample, Executed]]()

    def at(self, point: Point) -> Sample:
        if point not in self._known:
            with with_sizes(self.values(point)):
                self._known[point] = with_executed(self._evaluate)
        return self._known[point][0]

    def values(self, point: Point) -> dict[str, int]:
        return dict(zip(self.names, point, strict=True))

    def exists(self, point: Point) -> bool:
        try:
            self.at(point)
        except (ValueError, IndexError):
            return False
        return True

    def start(self, scale: int) -> Point:
        """Find sizes for which the program exists: differences of sizes are not to be negative."""
        names = self.names
        if len(names) > len(STARTS):
            raise ValueError(f"there are {len(names)} sizes, {', '.join(names)}: at most {len(STARTS)} may be symbols.")
        starts = [tuple(scale * n for n in p) for p in islice(permutations(STARTS[: len(names)]), ORDERS)]
        found = next(filter(self.exists, starts), None)
        if found is None:
            self.at(starts[0])  # which raises
        return found or starts[0]

    def elsewhere(self, start: Point) -> Iterator[Point]:
        """List larger sizes, and sizes in other orders, for which the program exists."""
        yield from filter(self.exists, islice(permutations(start), 1, ORDERS))
        for k in LARGER:
            point, before = tuple(k * n for n in start), time.monotonic()
            if self.exists(point):
                yield point
            if time.monotonic() - before > SECONDS:
                return

    def agrees(self, found: Fitted, point: Point) -> bool:
        kept, numbers = self.at(point)
        return kept == found.kept and self._same_numbers(found, point, numbers)

    def _same_numbers(self, found: Fitted, point: Point, numbers: Sequence[str]) -> bool:
        values = self.values(point)
        return all(
            x == k if isinstance(k, str) else k.is_near(values, x) for k, x in zip(found.numbers, numbers, strict=True)
        )

    def least(self, found: Fitted, start: Point) -> Iterator[tuple[str, int]]:
        """Find the least of each size that the numbers are right for, the others being as at the start."""
        for k, name in enumerate(self.names):
            with_size = lambda n: (*start[:k], n, *start[k + 1 :])  # noqa: B023, E731  # it is called at once
            wrong = [n for n in SMALLER if n < start[k] and not self._is_right(found, start, with_size(n))]
            if wrong:
                low, high = wrong[-1], min([n for n in SMALLER if n > wrong[-1]] + [start[k]])
                while high - low > 1:
                    middle = (low + high) // 2
                    right = self._is_right(found, start, with_size(middle))
                    low, high = (low, middle) if right else (middle, high)
                yield name, high

    def _is_right(self, found: Fitted, start: Point, point: Point) -> bool:
        """Tell whether what was found is right for small sizes, for which texts are shorter; True if there is none."""
        if not self.exists(point):
            return True
        kept, numbers = self.at(point)
        return self._same_numbers(found, point, numbers) if kept == found.kept else not self.branch(start, point)

    def branch(self, one: Point, other: Point) -> str | None:
        place = branch_between(self._known[one][1], self._known[other][1])
        return None if place is None else place.describe()

    def error(self, start: Point, point: Point) -> ValueError:
        said = [(_said(self.values(p)), self.at(p)) for p in (start, point)]
        values = "; ".join([f"{sizes}: {' '.join(numbers) or kept}" for sizes, (kept, numbers) in said])
        place = self.branch(start, point)
        return ValueError(
            f"{self.what} is no polynomial of degree {DEGREE} or less in {', '.join(self.names)}, as {values}.\n"
            + (f"  They branch on a size at {place}.\n" if place else "")
            + "  Give numbers for the sizes that the program compares with numbers."
        )


def _said(values: dict[str, int]) -> str:
    return ", ".join([f"{name} = {n}" for name, n in values.items()])


# ---- numbers -----------------------------------------------------------------------------------------------------


def _simple(x: Fraction) -> Fraction:
    """Find the fraction with a small denominator that a decimal stands for."""
    return x.limit_denominator(MOST_BELOW)


def _interpolated(samples: _Samples, start: Point, degree: int) -> Fitted | None:
    """Interpolate each number; None if the text is not the same at all sizes."""
    kept, first = samples.at(start)
    numbers = list[QuotientOfSizes | str]()
    for k in range(len(first)):
        met = list[Sample]()

        def text(point: Point, k: int = k, met: list[Sample] = met) -> str:
            met.append(samples.at(point))
            return met[-1][1][k] if met[-1][0] == kept else "1"

        numbers.append(_number(samples.names, start, degree, text))
        if any(text != kept for text, _ in met):
            return None
    return Fitted(kept, tuple(numbers), ())


def _number(names: Sequence[str], start: Point, degree: int, text: Callable[[Point], str]) -> QuotientOfSizes | str:
    """Interpolate a number, or, of decimals, what it is one over, if that is the polynomial of less terms."""
    one, texts = Polynomial.of(1), set[str]()

    def value(point: Point) -> Fraction:
        texts.add(text(point))
        return _simple(Fraction(text(point)))

    whole = QuotientOfSizes(interpolate_polynomial(names, start, degree, value), one)
    if all(x.isdecimal() for x in texts):
        return whole
    if len(texts) == 1:
        return texts.pop()
    below = interpolate_polynomial(names, start, degree, lambda p: _simple(1 / (Fraction(text(p)) or Fraction(1))))
    over = QuotientOfSizes(one, below)
    return over if below.terms and len(below.terms) < len(whole.above.terms) else whole
