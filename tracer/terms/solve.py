"""Elimination of brackets: equalities between indices are solved, inequalities become ranges; and what follows from it.

Search terms: Presburger arithmetic, Fourier-Motzkin, mixed radix, linear Diophantine equation, sparse tensor algebra.
Equalities are taken one at a time, with the bounds of interval arithmetic at hand: no range is lost, as what is
substituted leaves its range as a bracket unless that is implied. Left out, knowingly: what only several brackets
together imply. What is not solved stays a bracket, so that a term means the same before and after.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple

from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.terms.affine import Access, Affine, Sizes, Variable, variables
from tapeless.tracer.terms.term import (
    Bracket,
    Coefficient,
    IsZero,
    Lookup,
    NotNegative,
    Read,
    Sum,
    Term,
    Use,
    indices_of,
    term,
    variables_in,
    variables_of,
    with_indices,
)
from tapeless.tracer.terms.term_printing import term_text

if TYPE_CHECKING:
    from tapeless.tracer.terms import term_limits
else:
    term_limits = LateModule("tapeless.tracer.terms.term_limits")

FALSE = NotNegative(Affine(-1))  # holds nowhere


Axes = frozenset[tuple[int, int]]  # of operands, by number
NO_AXES: Axes = frozenset()


def solve_term(t: Term, stays: Axes = NO_AXES) -> Term | None:
    """Solve the brackets of `t`: an equal term with as few of them as the rules leave; None if it is 0.

    A variable stays, and is summed over, if it reads an axis in `stays`.
    """
    return _Solution(t.out, dict(enumerate(t.sizes)), t.factors, t.brackets, t.coefficient, stays=stays).solved()


def explicit(t: Term, shape: Sequence[int], stays: Axes = NO_AXES) -> Term | None:
    """Solve a term for the indices of its result: `out[a,b,..] += ..`, with brackets for elements that it leaves out.

    Variable d is the index along axis d of a result of this shape. None if the term is 0. `stays`: as of `solve_term`.
    """
    axes = variables(shape, len(t.sizes))
    meeting = [IsZero(a - o) for a, o in zip(axes, t.out, strict=True)]
    sizes = dict(enumerate((*t.sizes, *shape)))
    kept = frozenset(range(len(t.sizes), len(sizes)))
    return _Solution(axes, sizes, t.factors, (*t.brackets, *meeting), t.coefficient, kept, stays).solved()


def is_solved(t: Term) -> bool:
    """Tell whether a term is in normal form: no bracket can be eliminated, and each variable is read by something."""
    read = variables_in(t.indices)
    is_left = all(_is_left(b, t.sizes) and _found_alone(b, t.indices, t.sizes) is None for b in t.brackets)
    return len(read) == len(t.sizes) and min(t.sizes, default=2) > 1 and is_left


def _is_left(b: Bracket, sizes: Sequence[int]) -> bool:
    """Tell whether bounds do not decide a bracket, and no variable can be eliminated by it."""
    low, high = b.index.bounds(sizes)
    if isinstance(b, Lookup):
        return b.limits is None or (b.limits[0] < b.limits[1] and low <= b.limits[1] and high >= b.limits[0])
    if b.index.gcd > 1 or not low <= 0 <= high or low == high:
        return False
    if isinstance(b, NotNegative):
        return low < 0 and (len(b.index.variables) > 1 or bool(b.index.symbols))
    few = len(b.index.variables) < 3 and not b.index.symbols
    return not few and all(abs(c) > 1 for _, c in b.index.variables)


def _found_alone(b: Bracket, every: Sequence[Affine], sizes: Sizes) -> Variable | None:
    """Find the variable that a lookup has one value of, if no other of these indices has it: Σ k. [k = t[i]] is 1."""
    found = b.index.signed_variable if isinstance(b, Lookup) else None
    if not isinstance(b, Lookup) or b.limits is None or found is None:
        return None
    (v, _), (low, high) = found, b.index.bounds(sizes)
    is_alone = sum(a.coefficient(v) != 0 for a in every) == 1
    return v if is_alone and low <= b.limits[0] and b.limits[1] <= high else None


def staying(factors: Sequence[Read], stays: Axes) -> frozenset[Variable]:
    """Find the variables that alone, up to a number, are indices of axes in `stays`."""
    found = [a.signed_variable for f in factors for d, a in enumerate(f.access) if (f.operand, d) in stays]
    return frozenset([pair[0] for pair in found if pair is not None])


# ---- one bracket ---------------------------------------------------------------------------------------------


class _Rewriting(NamedTuple):
    """A rewrite of one bracket: new brackets in its place, affine indices for variables, new sizes of variables."""

    brackets: tuple[Bracket, ...] = ()
    values: tuple[tuple[Variable, Affine], ...] = ()
    sizes: tuple[tuple[Variable, int], ...] = ()


class _Solution:
    """A term while it is being solved."""

    def __init__(
        self,
        out: Access,
        sizes: dict[Variable, int],
        factors: tuple[Read, ...],
        brackets: tuple[Bracket, ...],
        coefficient: Coefficient,
        kept: frozenset[Variable] = frozenset(),
        stays: Axes = NO_AXES,
    ) -> None:
        self.out, self.sizes, self.factors, self.brackets = out, sizes, factors, brackets
        self.coefficient = coefficient
        self._kept, self._stays = kept, stays

    @property
    def kept(self) -> frozenset[Variable]:
        """Variables that are neither eliminated nor moved nor given another range."""
        return self._kept | staying(self.factors, self._stays) if self._stays else self._kept

    def solved(self) -> Term | None:
        """Return the term that is left when nothing changes any more; None if it is 0."""
        while self.step():
            pass
        return self.term()

    def step(self) -> bool:
        """Change something, and tell whether anything was changed."""
        if FALSE in self.brackets or 0 in self.sizes.values():
            return False
        single = [v for v, n in self.sizes.items() if n == 1 and v not in self.kept]
        if single:
            self._substitute(tuple([(v, Affine()) for v in single]))
            return True
        for k, bracket in enumerate(self.brackets):
            change = self._change(bracket)
            if change is not None:
                self._apply(k, change)
                return True
        return self._pairs()

    def _change(self, bracket: Bracket) -> _Rewriting | None:
        if isinstance(bracket, IsZero):
            return self._equality(bracket.index)
        return self._inequality(bracket.index) if isinstance(bracket, NotNegative) else self._lookup(bracket)

    def _apply(self, k: int, change: _Rewriting) -> None:
        self.brackets = (*self.brackets[:k], *change.brackets, *self.brackets[k + 1 :])
        self._substitute(change.values)
        self.sizes.update(change.sizes)

    def _substitute(self, values: Iterable[tuple[Variable, Affine]]) -> None:
        for v, value in values:
            self.out = tuple([a.substituted(v, value) for a in self.out])
            self.factors = tuple(
                [Read(f.operand, tuple([a.substituted(v, value) for a in f.access]), f.use) for f in self.factors]
            )
            self.brackets = tuple([_substituted(b, v, value) for b in self.brackets])
            if value.coefficient(v) == 0:
                del self.sizes[v]

    # equalities

    def _equality(self, index: Affine) -> _Rewriting | None:
        g, (low, high) = index.gcd, index.bounds(self.sizes)
        if not low <= 0 <= high or (g and index.constant % g):
            return _Rewriting((FALSE,))
        if low == high == 0:
            return _Rewriting()
        if g != 1:
            return _Rewriting((IsZero(index.divided(g)),)) if g else _Rewriting()
        return self._digits(index) or self._elimination(index) or self._two_variables(index)

    def _digits(self, index: Affine) -> _Rewriting | None:
        """Split into digits: m·H + L = 0 with |L| < m is H = 0 and L = 0.

        What a multiple of m leaves of m / 2 may be m / 2 or -m / 2: both are tried, the other by the negative.
        """
        divisors = sorted({abs(c) for _, c in (*index.variables, *index.symbols)} - {1}, reverse=True)
        for m, zero in product(divisors, (index, -index)):
            multiples, rest = zero.split(m)
            low, high = rest.bounds(self.sizes)
            for r in (zero.constant % m, zero.constant % m - m):
                if -m < low + r and high + r < m and not rest.is_constant:
                    return _Rewriting((IsZero(multiples + (zero.constant - r) // m), IsZero(rest + r)))
        return None

    def _elimination(self, index: Affine) -> _Rewriting | None:
        """Eliminate a variable with coefficient ±1; one whose range is implied, if there is any."""
        free = variables_in(self.out)
        found: list[tuple[int, bool, Variable, _Rewriting]] = []
        for v, c in index.variables:
            if abs(c) == 1 and v not in self.kept:
                value = index.without(v) * -c
                ranges = self._range_of(value, self.sizes[v])
                found.append((len(ranges), v in free, v, _Rewriting(ranges, ((v, value),))))
        return min(found, key=lambda f: f[:3])[3] if found else None

    def _range_of(self, value: Affine, size: int) -> tuple[Bracket, ...]:
        """List the brackets of 0 <= value < size that are not implied."""
        low, high = value.bounds(self.sizes)
        below, above = (
            (NotNegative(value),) if low < 0 else (),
            (NotNegative(size - 1 - value),) if high >= size else (),
        )
        return (*below, *above)

    def _two_variables(self, index: Affine) -> _Rewriting | None:
        """Parametrize two variables: a x + b y + c = 0 is x = x0 + b s, y = y0 - a s, for a new variable s."""
        if len(index.variables) != 2 or index.symbols or not self.kept.isdisjoint(variables_of(index)):
            return None
        (x, a), (y, b) = index.variables if index.variables[1][1] > 0 else (-index).variables
        constant = index.constant if b == index.variables[1][1] else -index.constant
        x0 = -constant * pow(a, -1, b) % b
        y0 = (-constant - a * x0) // b
        ends = [_within(x0, b, self.sizes[x]), _within(y0, -a, self.sizes[y])]
        low, high = max(e[0] for e in ends), min(e[1] for e in ends)
        if low > high:
            return _Rewriting((FALSE,))
        s = max(self.sizes) + 1
        values = ((x, Affine(x0 + b * low, ((s, b),))), (y, Affine(y0 - a * low, ((s, -a),))))
        return _Rewriting((), values, ((s, high - low + 1),))

    # inequalities and lookups

    def _inequality(self, index: Affine) -> _Rewriting | None:
        low, high = index.bounds(self.sizes)
        if low >= 0 or high < 0:
            return _Rewriting(() if low >= 0 else (FALSE,))
        if index.gcd > 1:
            return _Rewriting((NotNegative(index.divided(index.gcd)),))
        if len(index.variables) != 1 or index.symbols:
            return self._leading_digits(index)
        ((v, c),) = index.variables
        if v in self.kept:
            return None
        if c < 0:
            return _Rewriting((), (), ((v, index.constant + 1),))
        return _Rewriting((), ((v, Affine(-index.constant, ((v, 1),))),), ((v, self.sizes[v] + index.constant),))

    def _leading_digits(self, index: Affine) -> _Rewriting | None:
        """Leave out digits that do not decide: m·H + L >= 0 with 0 <= L < m is H >= 0."""
        for m in sorted({abs(c) for _, c in (*index.variables, *index.symbols)} - {1}):
            multiples, rest = index.split(m)
            low, high = rest.bounds(self.sizes)
            r = index.constant % m
            if low + r >= 0 and high + r < m and not rest.is_constant:
                return _Rewriting((NotNegative(multiples + index.constant // m),))
        return None

    def _lookup(self, bracket: Lookup) -> _Rewriting | None:
        if bracket.limits is None:
            return None
        (low, high), (first, last) = bracket.index.bounds(self.sizes), bracket.limits
        if high < first or low > last:
            return _Rewriting((FALSE,))
        if first == last:
            return _Rewriting((IsZero(bracket.index - first),))
        v = _found_alone(bracket, tuple(self._indices()), self.sizes)
        return None if v is None or v in self.kept else _Rewriting((), (), ((v, 1),))

    # two brackets

    def _pairs(self) -> bool:
        for (i, a), (j, b) in combinations(enumerate(self.brackets), 2):
            joint = _joint(a, b)
            if joint is not None:
                self.brackets = (*[x for k, x in enumerate(self.brackets) if k not in (i, j)], *joint)
                return True
        return False

    # the end

    def term(self) -> Term | None:
        """Make the term; a variable that nothing reads is a factor."""
        if FALSE in self.brackets or 0 in self.sizes.values() or self.coefficient == 0:
            return None
        read = variables_in(self._indices())
        for v in [v for v in self.sizes if v not in read]:
            self.coefficient *= self.sizes.pop(v)
        return term(self.out, self.sizes, self.factors, self.brackets, self.coefficient)

    def _indices(self) -> Iterator[Affine]:
        yield from self.out
        for f in self.factors:
            yield from f.access
        for b in self.brackets:
            yield from indices_of(b)


def _substituted(b: Bracket, v: Variable, value: Affine) -> Bracket:
    return with_indices(b, lambda a: a.substituted(v, value))


def _within(start: int, step: int, size: int) -> tuple[int, int]:
    """Find the least and greatest s with 0 <= start + step s < size, the least being the greater if there is none."""
    if step < 0:
        return _within(size - 1 - start, -step, size)
    return -(start // step), (size - 1 - start) // step


def _joint(a: Bracket, b: Bracket) -> tuple[Bracket, ...] | None:
    """Join two brackets, if that is simpler."""
    if a == b:
        return (a,)
    if isinstance(a, Lookup) and isinstance(b, Lookup):
        same = replace(a, index=b.index) == b
        return (a, IsZero(a.index - b.index)) if same else None
    if isinstance(a, IsZero) or isinstance(b, IsZero):
        return _with_equality(a, b) if isinstance(a, IsZero) else _with_equality(b, a)
    if not isinstance(a, NotNegative) or not isinstance(b, NotNegative):
        return None
    if (difference := a.index - b.index).is_constant:
        return (b,) if difference.constant > 0 else (a,)
    if (total := a.index + b.index).is_constant and total.constant <= 0:
        return (IsZero(a.index),) if total.constant == 0 else (FALSE,)
    return None


def _with_equality(equality: Bracket, b: Bracket) -> tuple[Bracket, ...] | None:
    """Join [a = 0] and an inequality of a alone, or of -a."""
    if isinstance(b, NotNegative):
        for rest in (b.index - equality.index, b.index + equality.index):
            if rest.is_constant:
                return (equality,) if rest.constant >= 0 else (FALSE,)
    return None


# ---- ranges --------------------------------------------------------------------------------------------------


def inside(t: Term, shapes: Sequence[Sequence[int]], shape: Sequence[int]) -> Term:
    """Restrict a term to what is inside of its arrays: of operands of these shapes, and of the result."""
    if 0 in t.sizes:
        return t
    more = list[Bracket]()
    for access, sizes in ((t.out, shape), *[(access, shapes[k]) for k, access in t.reads]):
        for a, n in zip(access, sizes, strict=True):
            more += [NotNegative(index) for index in (a, n - 1 - a) if not _holds(index, t)]
    return t.with_brackets((*t.brackets, *more)) if more else t


def is_inside(t: Term, a: Affine, n: int) -> bool:
    """Tell whether an index is known to be from 0 to n - 1 where the brackets of a term hold."""
    return 0 in t.sizes or all(_holds(index, t) for index in (a, n - 1 - a))


def _holds(index: Affine, t: Term) -> bool:
    """Tell whether an index is known not to be negative where the brackets of a term hold."""
    if _least(index, t.brackets, t.sizes, term_limits.COMBINED_BRACKETS) >= 0:
        return True
    return solve_term(t.with_brackets((*t.brackets, NotNegative(-index - 1)))) is None


def _least(a: Affine, brackets: Sequence[Bracket], sizes: Sequence[int], depth: int) -> int:
    """Bound an index from below where brackets hold; the search ends at 0.

    With a bracket [b >= 0] and a positive k, a is at least a - k b: of k with which a variable or symbol drops out.
    """
    least, numbers = a.bounds(sizes)[0], dict[Any, int]((*a.variables, *a.symbols))
    for n, b in enumerate(brackets if depth else ()):
        if isinstance(b, Lookup):
            continue
        rest = (*brackets[:n], *brackets[n + 1 :])
        for v, c in (*b.index.variables, *b.index.symbols):
            k = numbers.get(v, 0)
            if least < 0 and k and (isinstance(b, IsZero) or (k > 0) == (c > 0)):
                without = abs(c) * a - (k if c > 0 else -k) * b.index
                least = max(least, -(-_least(without, rest, sizes, depth - 1) // abs(c)))
    return least


# ---- composition, transposition, sums ------------------------------------------------------------------------


def compose_terms(reader: Term, at: int, producer: Term, stays: Axes = NO_AXES) -> Term | None:
    """Compose `reader` with a term of what its factor number `at` reads, and solve; None if the result is 0.

    The operands of both are numbered together. `stays`: as of `solve_term`.
    Raises: ValueError if the factor divides: 1 / (a + b) is no sum.
    """
    f, n = reader.factors[at], len(reader.sizes)
    if f.use is Use.DIVIDED:
        raise ValueError(f"composed: factor {at} of {term_text(reader)} divides, which no term of a sum replaces.")
    written, inner, brackets = renumber_variables(producer, n)
    meeting = [IsZero(a - o) for a, o in zip(f.access, written, strict=True)]
    coefficient = producer.coefficient
    if f.use is Use.CONJUGATED:
        inner, coefficient = tuple(map(_conjugated, inner)), coefficient.conjugate()
    return _Solution(
        reader.out,
        dict(enumerate((*reader.sizes, *producer.sizes))),
        (*reader.factors[:at], *reader.factors[at + 1 :], *inner),
        (*reader.brackets, *meeting, *brackets),
        reader.coefficient * coefficient,
        stays=stays,
    ).solved()


def substitute_sum(reader: Term, at: int, producer: Sum, stays: Axes = NO_AXES) -> list[Term]:
    """Substitute a sum for what factor number `at` of a term reads, by `compose_terms`; leave out terms that are 0."""
    return [found for t in producer if (found := compose_terms(reader, at, t, stays)) is not None]


def renumber_variables(t: Term, n: int) -> tuple[Access, tuple[Read, ...], tuple[Bracket, ...]]:
    """Number the variables of a term from n on: where it writes, its factors and its brackets."""
    return t.changed(lambda a: a.renamed(lambda v: v + n))


def _conjugated(f: Read) -> Read:
    if f.use is Use.DIVIDED:
        raise ValueError(f"composed: {f} divides and would be conjugated.")
    return f._replace(use=Use.PLAIN if f.use is Use.CONJUGATED else Use.CONJUGATED)


def transposed(t: Term, at: int) -> Term:
    """Transpose in factor number `at`: it is the result, and its operand is now read where the result was written.

    Raises: ValueError if the factor is not plain.
    """
    f = t.factors[at]
    if f.use is not Use.PLAIN:
        raise ValueError(f"transposed: factor {at} of {term_text(t)} is {f.use.name.lower()}, not plain.")
    factors = (*t.factors[:at], Read(f.operand, t.out), *t.factors[at + 1 :])
    return term(f.access, t.sizes, factors, t.brackets, t.coefficient)


def merge_terms(terms: Iterable[Term]) -> Sum:
    """Merge terms of a sum: one for those that are alike but in coefficients, and for all cases of a choice."""
    total: dict[Term, Coefficient] = {}
    for t in terms:
        total[t.unit] = total.get(t.unit, 0) + t.coefficient
    found = tuple([t.scaled(c) for t, c in total.items() if c != 0])
    return next(map(merge_terms, _without_a_choice(found)), found)


def _without_a_choice(terms: Sum) -> Iterator[list[Term]]:
    """Merge all cases of a choice into one term, for the first choice that has all."""
    cases: dict[tuple[Term, Lookup], dict[int, Term]] = {}
    for t in terms:
        for b in t.brackets:
            if isinstance(b, Lookup) and b.limits and b.index.is_constant:
                rest = t.with_brackets([x for x in t.brackets if x is not b])
                choice = replace(b, index=Affine(b.limits[0]))
                found = cases.setdefault((rest, choice), {})
                found[b.index.constant] = t
                if len(found) == b.limits[1] - b.limits[0] + 1:
                    joint = solve_term(rest)
                    yield [*[x for x in terms if x not in found.values()], *([] if joint is None else [joint])]
                    return


def write_apart(a: Term, b: Term) -> bool:
    """Tell whether no element of the result is written by both."""
    if 0 not in a.sizes and 0 not in b.sizes:
        for x, y in zip(a.out, b.out):
            (low, high), (first, last) = x.bounds(a.sizes), y.bounds(b.sizes)
            if high < first or last < low:
                return True
    out, _, brackets = renumber_variables(b, len(a.sizes))
    meeting = [IsZero(x - y) for x, y in zip(a.out, out)]
    return solve_term(term(a.out, (*a.sizes, *b.sizes), (), (*meeting, *a.brackets, *brackets))) is None
