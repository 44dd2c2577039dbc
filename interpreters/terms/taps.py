"""Unroll windows of few taps: a term with x[i + j], j < 5, becomes five terms over shifted parts of x.

Search terms: stencil, finite impulse response filter, loop unrolling. Otherwise x would be copied once for each tap
before the contraction; shifted parts are read in one loop, and in a gradient also written in one.
Only elementwise products are unrolled: if the term contracts other indices, too, one large contraction is cheaper than
many small ones. Small arrays are left, because unrolled code compiles more slowly.
"""

from itertools import product
from math import prod

from tapeless.interpreters import limits
from tapeless.tracer.terms.affine import Affine, Variable
from tapeless.tracer.terms.solve import solve_term
from tapeless.tracer.terms.term import Lookup, Sum, Term, indices_of, variables_in, variables_of


def in_taps(t: Term) -> Sum:
    """Rewrite a term as one for each tap of its windows; the term alone if it has none, or unrolling does not pay."""
    taps = sorted(_taps(t))
    left = [v for v in range(len(t.sizes)) if v not in taps]
    few = 1 < prod([t.sizes[v] for v in taps]) <= limits.TAPS
    if not few or prod([t.sizes[v] for v in left]) < limits.TAP_ELEMENTS or not _is_elementwise(t, frozenset(left)):
        return (t,)
    places = product(*[range(t.sizes[v]) for v in taps])
    found = [solve_term(at_values(t, dict(zip(taps, place, strict=True)))) for place in places]
    return tuple([x for x in found if x is not None])


def _taps(t: Term) -> set[Variable]:
    """Return the variables that share an index with a larger one, in a factor or in the result."""
    taps = set[Variable]()
    for index in (*t.out, *[a for f in t.factors for a in f.access]):
        together = sorted(variables_of(index), key=lambda v: (t.sizes[v], v))
        taps.update(together[:-1])
    return taps


def _is_elementwise(t: Term, left: frozenset[Variable]) -> bool:
    """Tell whether, for fixed taps, each factor is a number or has all other variables, and nothing is looked up."""
    indices = [*t.out, *[a for f in t.factors for a in f.access], *[a for b in t.brackets for a in indices_of(b)]]
    if any(isinstance(b, Lookup) for b in t.brackets) or any(a.symbols for a in indices):
        return False
    own = [variables_in(f.access) & left for f in t.factors]
    return all(labels in (frozenset(), left) for labels in own)


def at_values(t: Term, values: dict[Variable, int]) -> Term:
    """Substitute numbers for some variables of a term."""

    def known(a: Affine) -> Affine:
        for v, n in values.items():
            a = a.substituted(v, Affine(n))
        return a

    return t.with_indices(known, {v: n for v, n in enumerate(t.sizes) if v not in values})
