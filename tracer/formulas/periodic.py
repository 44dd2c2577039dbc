"""Rewrite terms with periodic axes, which are read modulo their size: an index there may be any integer.

Search terms: cyclic convolution, translational invariance, dummy index shift. In a program `x[(k + b) mod n]` is a read
at r, with a bracket [k + b = n q + r] for a quotient q. If r is read on periodic axes only, `drop_quotients` writes
k + b for r and drops q. Then a variable of all residues may be shifted, `k -> k - b`, if it is read on such axes only:
the sum stays the same. `wrap_accesses` is the inverse.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from tapeless.tracer.terms.affine import Affine, Variable, variable
from tapeless.tracer.terms.solve import NO_AXES, Axes, solve_term, staying
from tapeless.tracer.terms.term import (
    IsZero,
    NotNegative,
    Read,
    Term,
    indices_of,
    term,
    variables_in,
    variables_of,
)

Periods = Mapping[tuple[int, int], int]  # the sizes of periodic axes, by operand and axis


def drop_quotients(t: Term, periods: Periods, stays: Axes = NO_AXES) -> Term | None:
    """Drop quotients whose remainders are read on periodic axes only; None if the term is 0.

    `stays`: as in `solve_term`.
    """
    if not any((f.operand, d) in periods for f in t.factors for d in range(len(f.access))):
        return t
    while (found := _without_remainder(t, periods, stays) or _without_quotient(t, periods)) is not None:
        after = solve_term(found, stays)
        if after is None:
            return None
        t = after
    return reduce_coefficients(t, periods)


def _without_remainder(t: Term, periods: Periods, stays: Axes) -> Term | None:
    """Solve a bracket [n q + rest = 0] (rest = 0 modulo n) for a variable that is read modulo n only.

    None if there is none.
    """
    kept = staying(t.factors, stays)
    for at, b in enumerate(t.brackets):
        if not isinstance(b, IsZero) or b.index.symbols:
            continue
        for q, c in b.index.variables:
            rest = b.index.without(q)
            if not _is_quotient(t, q, abs(c), rest if c < 0 else -rest, at):
                continue
            for v, k in rest.variables:
                if v not in kept and abs(k) == 1 and t.sizes[v] == abs(c) and _is_periodic(t, v, abs(c), periods, {at}):
                    value = rest.without(v) * -k
                    return _substituted(t, {v: value, q: Affine()}, {at})
    return None


def _is_quotient(t: Term, q: Variable, n: int, dividend: Affine, at: int) -> bool:
    """Tell whether q is only in bracket number `at`, and has every value that dividend = n q may need."""
    if n < 2 or any(q in variables_of(a) for a in _indices(t, {at})):
        return False
    low, high = dividend.bounds(t.sizes)
    return -(-low // n) >= 0 and high // n <= t.sizes[q] - 1


def _without_quotient(t: Term, periods: Periods) -> Term | None:
    """Drop a quotient q with brackets [0 <= n q + rest < n], true for one q, if q is else read modulo n only.

    None if there is none.
    """
    for (i, a), (j, b) in combinations(enumerate(t.brackets), 2):
        if not (isinstance(a, NotNegative) and isinstance(b, NotNegative)) or a.index.symbols:
            continue
        total = a.index + b.index
        if not total.is_constant:
            continue
        n = total.constant + 1
        for q, c in a.index.variables:
            if abs(c) != n or not _is_periodic(t, q, n, periods, {i, j}, multiple=True):
                continue
            rest = a.index.substituted(q, Affine())
            low, high = _bounds(rest, t, {i, j})
            first, last = (-(high // n), -(low // n)) if c > 0 else (low // n, high // n)
            if first >= 0 and last <= t.sizes[q] - 1:
                return _substituted(t, {q: Affine()}, {i, j})
    return None


def _bounds(a: Affine, t: Term, left_out: set[int]) -> tuple[int, int]:
    """Bound an index wherever the brackets of a term hold, except for those numbered in `left_out`."""
    low, high = a.bounds(t.sizes)
    for k, b in enumerate(t.brackets):
        if isinstance(b, NotNegative) and k not in left_out:
            low = max(low, (a - b.index).bounds(t.sizes)[0])
            high = min(high, (a + b.index).bounds(t.sizes)[1])
    return low, high


def _indices(t: Term, left_out: set[int]) -> Iterator[Affine]:
    """Yield the indices of a term, except in the brackets numbered in `left_out`."""
    yield from t.out
    for f in t.factors:
        yield from f.access
    for k, b in enumerate(t.brackets):
        if k not in left_out:
            yield from indices_of(b)


def _is_periodic(t: Term, v: Variable, n: int, periods: Periods, left_out: set[int], multiple: bool = False) -> bool:
    """Tell whether v is read on axes of period n only; `multiple`: and its coefficients are multiples of n."""
    others = [*t.out, *[a for k, b in enumerate(t.brackets) if k not in left_out for a in indices_of(b)]]
    if any(v in variables_of(a) for a in others):
        return False
    read = [(periods.get((f.operand, d)), a.coefficient(v)) for f in t.factors for d, a in enumerate(f.access)]
    return all(period == n and not (multiple and c % n) for period, c in read if c)


def _substituted(t: Term, values: Mapping[Variable, Affine], left_out: set[int]) -> Term:
    """Substitute `values`, whose variables are removed, and drop the brackets numbered in `left_out`."""

    def index(a: Affine) -> Affine:
        for v, value in values.items():
            a = a.substituted(v, value)
        return a

    sizes = {v: n for v, n in enumerate(t.sizes) if v not in values}
    out, factors, brackets = t.changed(index)
    kept = [b for k, b in enumerate(brackets) if k not in left_out]
    return term(out, sizes, factors, kept, t.coefficient)


# ---- equal forms -----------------------------------------------------------------------------------------------


def reduce_coefficients(t: Term, periods: Periods) -> Term:
    """Reduce the coefficients and constants of accesses on periodic axes modulo the period, to least magnitude."""

    def index(f: Read, d: int, a: Affine) -> Affine:
        n = periods.get((f.operand, d))
        return a if n is None or a.symbols else _reduced(a, n)

    factors = [f._replace(access=tuple([index(f, d, a) for d, a in enumerate(f.access)])) for f in t.factors]
    return term(t.out, t.sizes, factors, t.brackets, t.coefficient)


def _reduced(a: Affine, n: int) -> Affine:
    def least(c: int) -> int:
        c %= n
        return c if 2 * c <= n else c - n

    return Affine(least(a.constant), tuple([(v, c) for v, k in a.variables if (c := least(k))]))


def shifts(t: Term, periods: Periods) -> Iterator[Term]:
    """Yield equal forms of a term, each with a periodic variable shifted so that some read is at it alone."""
    for v, n in enumerate(t.sizes):
        if not _is_periodic(t, v, n, periods, set()):
            continue
        for a in dict.fromkeys([a for f in t.factors for a in f.access]):
            c = a.coefficient(v)
            if abs(c) == 1 and not a.symbols and a.variable != v:
                value = (variable(v) - a.without(v)) * c
                yield reduce_coefficients(_with_value(t, v, value), periods)


def reflections(t: Term, axes: Iterable[tuple[int, int]]) -> Iterator[Term]:
    """Yield equal forms of a term, each with one summed variable reversed that is read on one of `axes`."""
    wanted = set(axes)
    read = {v for f in t.factors for d, a in enumerate(f.access) if (f.operand, d) in wanted for v in variables_of(a)}
    for v in read - variables_in(t.out):
        yield _with_value(t, v, Affine(t.sizes[v] - 1, ((v, -1),)))


def _with_value(t: Term, v: Variable, value: Affine) -> Term:
    """Substitute `value`, which may contain v itself, for v; its size stays."""
    return t.with_indices(lambda a: a.substituted(v, value))


# ---- inverse ---------------------------------------------------------------------------------------------------


def wrap_accesses(t: Term, periods: Periods) -> Term:
    """Write accesses that may be outside of a periodic axis as remainders, with a bracket and a quotient for each."""
    sizes, brackets, factors = dict(enumerate(t.sizes)), list(t.brackets), list[Read]()
    for f in t.factors:
        access = list(f.access)
        for d, a in enumerate(access):
            n = periods.get((f.operand, d))
            if n is None or 0 in t.sizes:
                continue
            low, high = a.bounds(t.sizes)
            if low >= 0 and high < n:
                continue
            r, q = len(sizes), len(sizes) + 1
            first = low // n
            sizes |= {r: n, q: high // n - first + 1}
            remainder, quotient = variable(r), variable(q) + first
            brackets.append(IsZero(a - remainder - quotient * n))
            access[d] = remainder
        factors.append(f._replace(access=tuple(access)))
    return t if len(sizes) == len(t.sizes) else term(t.out, sizes, factors, brackets, t.coefficient)
