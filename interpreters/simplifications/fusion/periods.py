"""Periodic reads and writes, `x[i + 1 - n q]` of an axis of n, become slices side by side: one term for each period q.

Search terms: circular shift, roll, periodic boundary condition, torus, index set splitting. For each index at most one
value of q is inside of the axis, so the sum over q is a choice. With q fixed, what the brackets leave of the other
variables is a box; the boxes are disjoint, and `lower_terms.py` concatenates them. As one sum, all periods would be
read everywhere, behind masks, and each read written as a reverse of padded rows (docs/xla_defects.md).
Left out: indices of several variables, as in `x[(i + j) % n]`, where no box is left.
"""

from itertools import product
from math import prod

from tapeless.interpreters import limits
from tapeless.interpreters.simplifications.fusion.taps import at_values
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.terms.affine import Access, Variable
from tapeless.tracer.terms.solve import solved
from tapeless.tracer.terms.term import NotNegative, Sum, Term, variables_in, variables_of


def in_periods(t: Term, operands: list[Atom], shape: tuple[int, ...]) -> Sum:
    """Rewrite a term as one for each choice of its periods; the term alone if that leaves brackets, or is too many.

    Args:
      operands: the arrays that the term reads.
      shape: of the result.
    """
    accesses = [(f.access, operands[f.operand].aval.shape) for f in t.factors]
    periods = sorted({v for each in ((t.out, shape), *accesses) for v in _periods(*each)} & _bracketed(t))
    if not periods or limits.PERIODS.is_passed(prod([t.sizes[v] for v in periods])):
        return (t,)
    choices = product(*[range(t.sizes[v]) for v in periods])
    found = [solved(at_values(t, dict(zip(periods, choice, strict=True)))) for choice in choices]
    parts = tuple([part for part in found if part is not None])
    return (t,) if any(isinstance(b, NotNegative) for part in parts for b in part.brackets) else parts


def _periods(access: Access, shape: tuple[int, ...]) -> set[Variable]:
    """Return the variables of which at most one value is inside of an axis, whatever the others are."""
    shared = [(a, n) for a, n in zip(access, shape, strict=True) if len(a.variables) > 1]
    return {v for a, n in shared for v in variables_of(a) if abs(a.coefficient(v)) >= n}


def _bracketed(t: Term) -> frozenset[Variable]:
    """Return the variables that share a bracket [index >= 0] with others."""
    return variables_in([b.index for b in t.brackets if isinstance(b, NotNegative) and len(b.index.variables) > 1])
