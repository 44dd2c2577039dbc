"""Integer affine functions of index variables and symbols, with the bounds that interval arithmetic gives them.

Search terms: affine map, index expression. Sources: MLIR's `affine_map`, TVM's iterator maps. Floor division and
remainder are left out: they are expressed with a variable for each digit (mixed radix).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import gcd
from typing import Any, NamedTuple, TypeVar

Variable = int  # number of an index variable, whose values are 0 <= v < sizes[v]
Sizes = Sequence[int] | Mapping[Variable, int]


class Symbol(NamedTuple):
    """An integer scalar of the program, clamped: clip(operand, low, high)."""

    operand: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Affine:
    """An affine index `constant + Σ k·v + Σ k·s`: no coefficient k is 0; sums are sorted by variable or symbol."""

    constant: int = 0
    variables: tuple[tuple[Variable, int], ...] = ()
    symbols: tuple[tuple[Symbol, int], ...] = ()

    def __add__(self, other: "Affine | int") -> "Affine":
        if isinstance(other, int):
            return Affine(self.constant + other, self.variables, self.symbols)
        variables = _sum(self.variables, other.variables)
        return Affine(self.constant + other.constant, variables, _sum(self.symbols, other.symbols))

    def __mul__(self, k: int) -> "Affine":
        if k == 0:
            return Affine()
        return Affine(k * self.constant, _scaled(self.variables, k), _scaled(self.symbols, k))

    __rmul__ = __mul__

    def __neg__(self) -> "Affine":
        return self * -1

    def __sub__(self, other: "Affine | int") -> "Affine":
        return self + -other

    def __rsub__(self, other: int) -> "Affine":
        return -self + other

    @property
    def variable(self) -> Variable | None:
        """Return v if this index is the variable v alone, else None."""
        if self.constant or self.symbols or len(self.variables) != 1 or self.variables[0][1] != 1:
            return None
        return self.variables[0][0]

    @property
    def signed_variable(self) -> tuple[Variable, int] | None:
        """Return v and c if this index is c v plus a number, with c = 1 or -1, else None."""
        return self.variables[0] if not self.symbols and [abs(c) for _, c in self.variables] == [1] else None

    @property
    def is_constant(self) -> bool:
        return not self.variables and not self.symbols

    @property
    def gcd(self) -> int:
        """Compute the greatest common divisor of all coefficients, 0 if there are none."""
        return reduce(gcd, [c for _, c in (*self.variables, *self.symbols)], 0)

    def coefficient(self, v: Variable) -> int:
        return next((c for x, c in self.variables if x == v), 0)

    def bounds(self, sizes: Sizes) -> tuple[int, int]:
        """Compute the least and the greatest value over the box, by interval arithmetic; no size may be 0."""
        low = high = self.constant
        for v, c in self.variables:
            far = c * (sizes[v] - 1)
            low, high = (low, high + far) if far > 0 else (low + far, high)
        for s, c in self.symbols:
            ends = c * s.low, c * s.high
            low, high = low + min(ends), high + max(ends)
        return low, high

    def divided(self, k: int) -> "Affine":
        """Divide by k: all coefficients, which are multiples of it, and the constant, rounded down."""
        variables, symbols = (
            tuple([(v, c // k) for v, c in self.variables]),
            tuple([(s, c // k) for s, c in self.symbols]),
        )
        return Affine(self.constant // k, variables, symbols)

    def split(self, m: int) -> "tuple[Affine, Affine]":
        """Split `self` without its constant into m·H + L; L has coefficients below m, and remainders of the others."""
        low = Affine(0, _left(self.variables, m), _left(self.symbols, m))
        return (self - low).divided(m) - self.constant // m, low

    def part(self, keep: Callable[[int], bool]) -> "Affine":
        """Keep the variables and symbols whose coefficients satisfy `keep`; drop the constant."""
        variables, symbols = [p for p in self.variables if keep(p[1])], [p for p in self.symbols if keep(p[1])]
        return Affine(0, tuple(variables), tuple(symbols))

    def substituted(self, v: Variable, value: "Affine") -> "Affine":
        """Substitute `value` for a variable."""
        k = self.coefficient(v)
        if not k:
            return self
        if not value.variables and not value.symbols:
            rest = tuple([pair for pair in self.variables if pair[0] != v])
            return Affine(self.constant + k * value.constant, rest, self.symbols)
        rest = tuple([pair for pair in self.variables if pair[0] != v])
        return Affine(self.constant, rest, self.symbols) + k * value

    def without(self, v: Variable) -> "Affine":
        """Drop a variable."""
        return self.substituted(v, Affine())

    def at(self, values: "Mapping[Variable, Affine] | Sequence[Affine]") -> "Affine":
        """Substitute values for all variables at once."""
        return sum([c * values[v] for v, c in self.variables], Affine(self.constant, (), self.symbols))

    def renamed(self, name: Callable[[Variable], Variable]) -> "Affine":
        """Rename every variable v to name(v); `name` must be injective."""
        if len(self.variables) < 2:
            return Affine(self.constant, tuple([(name(v), c) for v, c in self.variables]), self.symbols)
        return Affine(self.constant, tuple(sorted([(name(v), c) for v, c in self.variables])), self.symbols)

    def with_operands(self, number: Callable[[int], int]) -> "Affine":
        """Renumber operand k of each symbol as number(k); symbols that become equal are added up."""
        if not self.symbols:
            return self
        found = [((s._replace(operand=number(s.operand)), c),) for s, c in self.symbols]
        return Affine(self.constant, self.variables, reduce(_sum, found, ()))


Access = tuple[Affine, ...]  # an index for each axis of an array


def variables(sizes: Sequence[int], start: Variable = 0) -> Access:
    """Make an access of variables with consecutive numbers from `start`, one for each size."""
    return indices(range(start, start + len(sizes)))


def variable(v: Variable) -> Affine:
    """Make the index that is one variable."""
    return Affine(0, ((v, 1),))


@lru_cache(maxsize=256)
def indices(order: tuple[Variable, ...] | range) -> Access:
    """Make an access whose indices are these variables, each alone."""
    return tuple([variable(v) for v in order])


def symbol(operand: int, low: int, high: int) -> Affine:
    """Make the index clip(operand, low, high); a constant if low >= high."""
    return Affine(0, (), ((Symbol(operand, low, high), 1),)) if low < high else Affine(low)


_Key = TypeVar("_Key", bound=Any)


def _scaled(pairs: tuple[tuple[_Key, int], ...], k: int) -> tuple[tuple[_Key, int], ...]:
    return tuple([(x, k * c) for x, c in pairs])


def _left(pairs: tuple[tuple[_Key, int], ...], m: int) -> tuple[tuple[_Key, int], ...]:
    """Reduce coefficients of magnitude m or more to remainders near 0 modulo m; drop zeros."""
    found = [(x, c if abs(c) < m else (c + m // 2) % m - m // 2) for x, c in pairs]
    return tuple([(x, c) for x, c in found if c])


def _sum(a: tuple[tuple[_Key, int], ...], b: tuple[tuple[_Key, int], ...]) -> tuple[tuple[_Key, int], ...]:
    if not a or not b:
        return a or b
    total = dict(a)
    for x, c in b:
        total[x] = total.get(x, 0) + c
    return tuple(sorted([(x, c) for x, c in total.items() if c]))
