"""Merging of terms by symmetries of their factors: tensor canonicalization, by the orbit of each term.

Search terms: tensor canonicalization, dummy indices, permutational symmetry, Hermitian matrix. A symmetry says that an
array is its own transpose, the conjugate of that, or its negative. Terms are alike if a sequence of such rewrites of
single factors makes them equal, up to names of bound indices and the order of factors, which `term` normalizes. A
term that is its own negative is 0. Orbits are enumerated up to a cap: beyond it a term is left as it is. Source: Li &
Damle 2024. Indices of periodic axes may be shifted, and those of axes that are their own mirror image reflected. Left
out: symmetries of results of sums, and of several arrays together.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from tapeless.tracer.formulas.periodic import Periods, reduce_coefficients, reflections, shifts
from tapeless.tracer.terms.affine import Access
from tapeless.tracer.terms.solve import merge_terms
from tapeless.tracer.terms.term import Read, Sum, Term, Use, key_of, term

MOST_FORMS = 1024  # in the orbit of one term
NO_PERIODS: Periods = {}


class Symmetry(NamedTuple):
    """A symmetry of an array x: x is `transpose(x, permutation)`, conjugated if `conjugated`, times `sign`.

    `mirrored`: axes along which x is reversed before, with their sizes.
    """

    permutation: tuple[int, ...]
    conjugated: bool = False
    sign: int = 1
    mirrored: tuple[tuple[int, int], ...] = ()

    def access(self, access: Access) -> Access:
        """Return the access whose element equals the one at `access`, up to sign and conjugation, by this symmetry."""
        sizes = dict(self.mirrored)
        found = transposed_access(access, self.permutation)
        return tuple([sizes[d] - 1 - a if d in sizes else a for d, a in enumerate(found)])


Symmetries = Mapping[int, Sequence[Symmetry]]  # of operands, by number


def merged_by_symmetry(
    terms: Sequence[Term], symmetries: Symmetries, real: frozenset[int], periods: Periods = NO_PERIODS
) -> Sum:
    """Merge terms that symmetries of operands make equal; operands in `real` are their own conjugates.

    Axes in `periods` are read modulo their size.
    """
    if not any(symmetries.values()) and not periods:
        return merge_terms(terms)
    return merge_terms([t for found in terms for t in _representative(found, symmetries, real, periods)])


def select_symmetries(
    terms: Sequence[Term], symmetries: Symmetries, real: frozenset[int], periods: Periods = NO_PERIODS
) -> dict[int, tuple[Symmetry, ...]]:
    """Find a minimal subset of the symmetries that leaves as few terms, and as few conjugates in them, as all do."""
    kept = {k: tuple(dict.fromkeys(given)) for k, given in symmetries.items()}
    fewest = _length(merged_by_symmetry(terms, kept, real, periods))
    for k, given in symmetries.items():
        for s in given:
            without = {**kept, k: tuple([x for x in kept[k] if x != s])}
            if _length(merged_by_symmetry(terms, without, real, periods)) == fewest:
                kept = without
    return {k: given for k, given in kept.items() if given}


def _length(terms: Sum) -> tuple[int, int]:
    """Count terms, and conjugated factors."""
    return len(terms), sum(map(_conjugates, terms))


def _conjugates(t: Term) -> int:
    return sum(f.use is Use.CONJUGATED for f in t.factors)


def _representative(t: Term, symmetries: Symmetries, real: frozenset[int], periods: Periods) -> tuple[Term, ...]:
    """Choose the preferred form in the orbit of a term; the empty tuple if it is its own negative, and so 0."""
    signs = orbit(reduce_coefficients(t.unit, periods), symmetries, real, periods)
    if signs is None:
        return ()
    least = min(signs, key=_preference)
    return (least.scaled(t.coefficient * signs[least]),)


def _preference(form: Term) -> Any:
    """Return the sort key of forms: few conjugates, few minus signs, the factors with most indices read in order."""
    signs = sum(c < 0 for f in form.factors for a in f.access for _, c in a.variables)
    factors = [
        (-len(f.access), f.operand, f.use, tuple([(a.variables, a.constant, a.symbols) for a in f.access]))
        for f in form.factors
    ]
    return _conjugates(form), signs, sorted(factors), key_of(form)


def orbit(t: Term, symmetries: Symmetries, real: frozenset[int], periods: Periods) -> dict[Term, int] | None:
    """List the equal forms of a term with their signs, or the term alone if they are too many; None if it is 0."""
    signs, todo = {t: 1}, [t]
    mirrored = [(k, d) for k, given in symmetries.items() for s in given for d, _ in s.mirrored]
    while todo:
        form = todo.pop()
        for other, sign in _neighbours(form, symmetries, real, periods, mirrored):
            sign *= signs[form]
            if other not in signs:
                signs[other] = sign
                todo.append(other)
            elif signs[other] != sign:
                return None
        if len(signs) > MOST_FORMS:
            return {t: 1}
    return signs


def _neighbours(
    t: Term, symmetries: Symmetries, real: frozenset[int], periods: Periods, mirrored: Sequence[tuple[int, int]]
) -> Iterator[tuple[Term, int]]:
    """Yield forms of a term, with signs: by one symmetry of one factor, or by a shifted or reflected bound index."""
    for n, f in enumerate(t.factors):
        for s in symmetries.get(f.operand, ()):
            other = _rewritten(t, n, s, f.operand in real)
            if other is not None:
                yield reduce_coefficients(other, periods) if periods else other, s.sign
    if periods:
        yield from ((other, 1) for other in shifts(t, periods))
    if mirrored:
        yield from ((reduce_coefficients(other, periods), 1) for other in reflections(t, mirrored))


def _rewritten(t: Term, at: int, s: Symmetry, is_real: bool) -> Term | None:
    """Rewrite a factor by a symmetry; None for the conjugate of a divisor, which `Use` does not express."""
    f = t.factors[at]
    use = f.use
    if s.conjugated and not is_real:
        if use is Use.DIVIDED:
            return None
        use = Use.PLAIN if use is Use.CONJUGATED else Use.CONJUGATED
    changed = Read(f.operand, s.access(f.access), use)
    return term(t.out, t.sizes, (*t.factors[:at], changed, *t.factors[at + 1 :]), t.brackets, t.coefficient)


_Index = TypeVar("_Index")


def transposed_access(access: Sequence[_Index], permutation: Sequence[int]) -> tuple[_Index, ...]:
    """Return the access to an array that reads the element at `access` of its transpose."""
    found = dict(zip(permutation, access, strict=True))
    return tuple([found[d] for d in range(len(access))])
