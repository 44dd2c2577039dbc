"""Polynomials in named sizes, with integer or rational coefficients; printed with common factors in front.

Search terms: multivariate polynomial, Newton interpolation, finite differences.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from math import comb, gcd, lcm, prod
from typing import Any

Monomial = tuple[tuple[str, int], ...]  # names with their powers, in the order of names


class Polynomial:
    """A polynomial: coefficients by monomial, none of them 0."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, Any]) -> None:
        self.terms: dict[Monomial, Fraction] = {m: Fraction(c) for m, c in terms.items() if c}

    @classmethod
    def of(cls, value: "Polynomial | int | str") -> "Polynomial":
        """Convert a number or a name to a polynomial."""
        if isinstance(value, Polynomial):
            return value
        return cls({((value, 1),): 1}) if isinstance(value, str) else cls({(): value})

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names in the polynomial, sorted."""
        return tuple(sorted({name for m in self.terms for name, _ in m}))

    @property
    def is_constant(self) -> bool:
        return not self.names

    def __add__(self, other: "Polynomial | int") -> "Polynomial":
        found = dict(self.terms)
        for m, c in Polynomial.of(other).terms.items():
            found[m] = found.get(m, Fraction()) + c
        return Polynomial(found)

    def __mul__(self, other: "Polynomial | int | Fraction") -> "Polynomial":
        if isinstance(other, Fraction):
            return Polynomial({m: c * other for m, c in self.terms.items()})
        found = dict[Monomial, Fraction]()
        for (a, x), (b, y) in product(self.terms.items(), Polynomial.of(other).terms.items()):
            m = _times(a, b)
            found[m] = found.get(m, Fraction()) + x * y
        return Polynomial(found)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> "Polynomial":
        return self * -1

    def __sub__(self, other: "Polynomial | int") -> "Polynomial":
        return self + -Polynomial.of(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Polynomial, int)) and self.terms == Polynomial.of(other).terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def at(self, values: Mapping[str, int]) -> Fraction:
        """Evaluate at values of the names. Raises: KeyError for a name without a value."""
        return sum([c * prod([values[name] ** k for name, k in m]) for m, c in self.terms.items()], Fraction())

    @property
    def denominator(self) -> int:
        """Return the least number whose product with the polynomial has integer coefficients."""
        return lcm(*[c.denominator for c in self.terms.values()])

    def __str__(self) -> str:
        """Print with the common number and powers of all terms in front: `n*(2*m - 1)`."""
        if not self.terms:
            return "0"
        number, common = self._content()
        rest = {_without(m, common): c / number for m, c in self.terms.items()}
        inner = _sum_text(rest)
        front = [*([str(abs(number))] if abs(number) != 1 else []), *[_power_text(x) for x in common]]
        last = [] if inner == "1" and front else [f"({inner})" if len(rest) > 1 and (front or number < 0) else inner]
        return ("-" if number < 0 else "") + "*".join([*front, *last])

    __repr__ = __str__

    def _content(self) -> tuple[Fraction, Monomial]:
        """Find the number, negative if all coefficients are, and the powers that divide all terms."""
        numbers = list(self.terms.values())
        above, below = gcd(*[c.numerator for c in numbers]), lcm(*[c.denominator for c in numbers])
        powers = [dict(m) for m in self.terms]
        shared = [(name, min(p.get(name, 0) for p in powers)) for name in self.names]
        sign = -1 if max(numbers) < 0 else 1
        return sign * Fraction(above, below), tuple([(name, k) for name, k in shared if k])


def _times(a: Monomial, b: Monomial) -> Monomial:
    powers = dict(a)
    for name, k in b:
        powers[name] = powers.get(name, 0) + k
    return tuple(sorted(powers.items()))


def _without(m: Monomial, common: Monomial) -> Monomial:
    taken = dict(common)
    return tuple([(name, k - taken.get(name, 0)) for name, k in m if k > taken.get(name, 0)])


def _order(term: tuple[Monomial, Fraction]) -> Any:
    """Return the sort key of terms: highest degree first, then positive coefficients first."""
    m, c = term
    return -sum(k for _, k in m), c < 0, [(name, -k) for name, k in m]


def _power_text(x: tuple[str, int]) -> str:
    return x[0] if x[1] == 1 else f"{x[0]}**{x[1]}"


def _sum_text(terms: Mapping[Monomial, Fraction]) -> str:
    text = ""
    for m, c in sorted(terms.items(), key=_order):
        parts = [*([str(abs(c))] if abs(c) != 1 or not m else []), *map(_power_text, m)]
        text += f"{' - ' if c < 0 else ' + '}{'*'.join(parts)}"
    return text.removeprefix(" + ") if not text.startswith(" - ") else "-" + text.removeprefix(" - ")


# ---- interpolation -----------------------------------------------------------------------------------------------

Point = tuple[int, ...]


def interpolate_polynomial(
    names: Sequence[str], start: Point, degree: int, value: Callable[[Point], int | Fraction]
) -> Polynomial:
    """Interpolate a polynomial of total degree at most `degree` from its values at `start` and upwards.

    Args:
      value: computes the value at a point, one number for each name. It is called at points start + k, where all
        numbers in k are >= 0 and their sum is at most the degree.
    Source: Newton's forward differences, in several variables.
    """
    total = Polynomial({})
    for k in _up_to(degree, len(names)):
        difference = sum(
            [
                (-1) ** (sum(k) - sum(j)) * prod(map(comb, k, j)) * Fraction(value(tuple(map(int.__add__, start, j))))
                for j in product(*[range(n + 1) for n in k])
            ]
        )
        if difference:
            basis = [_choose(Polynomial.of(name) - first, n) for name, first, n in zip(names, start, k, strict=True)]
            total += reduce(Polynomial.__mul__, basis, Polynomial({(): difference}))
    return total


def _up_to(degree: int, n: int) -> Iterator[Point]:
    """Yield the exponents of n names whose sum is at most `degree`."""
    return (k for k in product(range(degree + 1), repeat=n) if sum(k) <= degree)


def _choose(x: Polynomial, n: int) -> Polynomial:
    """Compute x (x - 1) .. (x - n + 1) / n!"""
    found = Polynomial.of(1)
    for k in range(n):
        found = found * (x - k) * Fraction(1, k + 1)
    return found
