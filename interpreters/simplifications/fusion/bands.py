"""Narrow sums to bands: with the brackets [0 <= a <= w], a summed variable becomes d = a, which has w + 1 values.

Search terms: banded matrix, diagonal storage, loop skewing. The sum then takes as many products as the band has
elements, not as many as the matrix.
"""

from itertools import permutations

from tapeless.tracer.terms.affine import variable
from tapeless.tracer.terms.solve import solved
from tapeless.tracer.terms.term import NotNegative, Term, term, variables_in


def in_bands(t: Term) -> Term | None:
    """Solve a term, and replace its summed variables by narrower variables of bands; None if it is 0."""
    found = solved(t)
    inequalities = [b for b in found.brackets if isinstance(b, NotNegative)] if found is not None else []
    for a, b in permutations(inequalities, 2):
        width = a.index + b.index
        if found is not None and width.is_constant:
            after = _with_band(found, a, b, width.constant + 1)
            if after is not None:
                return in_bands(after)
    return found


def _with_band(t: Term, a: NotNegative, b: NotNegative, size: int) -> Term | None:
    """Replace the largest summed variable to which two brackets leave `size` values; None if none has more."""
    kept = variables_in(t.out)
    options = [v for v, c in a.index.variables if abs(c) == 1 and v not in kept and t.sizes[v] > size]
    if not options:
        return None
    v, d = max(options, key=lambda v: (t.sizes[v], -v)), variable(len(t.sizes))
    sign = a.index.coefficient(v)
    value = (d - a.index.without(v)) * sign
    out, factors, brackets = t.changed(lambda index: index.substituted(v, value))
    others = [new for new, old in zip(brackets, t.brackets) if old not in (a, b)]
    sizes = {u: n for u, n in enumerate((*t.sizes, size)) if u != v}
    in_range = NotNegative(value), NotNegative(t.sizes[v] - 1 - value)
    return term(out, sizes, factors, (*in_range, *others), t.coefficient)
