"""Merging of terms by symmetries of their factors: tensor canonicalization, by the orbit of each term.

Search terms: tensor canonicalization, dummy indices, permutational symmetry, Hermitian matrix. A symmetry says that an
array is its own transpose, the conjugate of that, or its negative. Terms are alike that a sequence of such rewrites of
single factors makes equal, up to names of bound indices and the order of factors, which are `term`'s to normalize. A
term that is its own negative is 0. Orbits are enumerated up to a cap: beyond it a term is left as it is. Source: Li &
Damle 2024. Left out: symmetries of results of sums, and of several arrays together.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from tapeless.tracer.terms.solve import merged
from tapeless.tracer.terms.term import Read, Sum, Term, Use, key_of, term

MOST_FORMS = 1024  # of one term, that symmetries make of it


class Symmetry(NamedTuple):
    """An array x that is `transpose(x, permutation)`, conjugated if `conjugated`, times `sign`."""

    permutation: tuple[int, ...]
    conjugated: bool = False
    sign: int = 1


Symmetries = Mapping[int, Sequence[Symmetry]]  # of operands, by number


def merged_by_symmetry(terms: Sequence[Term], symmetries: Symmetries, real: frozenset[int]) -> Sum:
    """Merge terms that are alike by symmetries of operands; `real` ones are their own conjugates."""
    if not any(symmetries.values()):
        return merged(terms)
    return merged([t for found in terms for t in _representative(found, symmetries, real)])


def needed(terms: Sequence[Term], symmetries: Symmetries, real: frozenset[int]) -> dict[int, tuple[Symmetry, ...]]:
    """Find symmetries that suffice to merge as many terms as all of them do, none of which can be left out."""
    kept = {k: tuple(dict.fromkeys(given)) for k, given in symmetries.items()}
    fewest = len(merged_by_symmetry(terms, kept, real))
    for k, given in symmetries.items():
        for s in given:
            without = {**kept, k: tuple([x for x in kept[k] if x != s])}
            if len(merged_by_symmetry(terms, without, real)) == fewest:
                kept = without
    return {k: given for k, given in kept.items() if given}


def _representative(t: Term, symmetries: Symmetries, real: frozenset[int]) -> tuple[Term, ...]:
    """Choose the form of a term with the fewest conjugates, the first of these; none if it is its own negative."""
    signs = _orbit(t.unit, symmetries, real)
    if signs is None:
        return ()
    least = min(signs, key=_preference)
    return (least.scaled(t.coefficient * signs[least]),)


def _preference(form: Term) -> Any:
    """Return what forms are chosen by: few conjugates, and the factors with most indices read in order."""
    factors = [
        (-len(f.access), f.operand, f.use, tuple([(a.variables, a.constant, a.symbols) for a in f.access]))
        for f in form.factors
    ]
    return sum(f.use is Use.CONJUGATED for f in form.factors), sorted(factors), key_of(form)


def _orbit(t: Term, symmetries: Symmetries, real: frozenset[int]) -> dict[Term, int] | None:
    """List the forms of a term with their signs, or the term alone if they are too many; None if it is 0."""
    signs, todo = {t: 1}, [t]
    while todo:
        form = todo.pop()
        for n, f in enumerate(form.factors):
            for s in symmetries.get(f.operand, ()):
                other = _rewritten(form, n, s, f.operand in real)
                if other is None:
                    continue
                sign = signs[form] * s.sign
                if other not in signs:
                    signs[other] = sign
                    todo.append(other)
                elif signs[other] != sign:
                    return None
        if len(signs) > MOST_FORMS:
            return {t: 1}
    return signs


def _rewritten(t: Term, at: int, s: Symmetry, is_real: bool) -> Term | None:
    """Rewrite a factor by a symmetry; None if that cannot be said: the conjugate of a divisor."""
    f = t.factors[at]
    use = f.use
    if s.conjugated and not is_real:
        if use is Use.DIVIDED:
            return None
        use = Use.PLAIN if use is Use.CONJUGATED else Use.CONJUGATED
    changed = Read(f.operand, transposed_access(f.access, s.permutation), use)
    return term(t.out, t.sizes, (*t.factors[:at], changed, *t.factors[at + 1 :]), t.brackets, t.coefficient)


_Index = TypeVar("_Index")


def transposed_access(access: Sequence[_Index], permutation: Sequence[int]) -> tuple[_Index, ...]:
    """Find where an array is read for its transpose to be read at `access`."""
    found = dict(zip(permutation, access, strict=True))
    return tuple([found[d] for d in range(len(access))])
