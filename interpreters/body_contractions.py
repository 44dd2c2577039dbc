"""Sums of products in bodies of the index language as contractions: one `ein` for a sum and the products that it adds.

Search terms: einsum, producer-consumer fusion. Fusion leaves a sum of products as it stands if their array is no larger
than what they are products of, for who writes arrays may have had a reason; who writes elements had none. So the
product of a matrix and a vector is one operation. Inner products stay products that are added, in one loop.
"""

from collections.abc import Iterator

from tapeless.interpreters.simplifications.fusion.fuse import exactly
from tapeless.interpreters.simplifications.fusion.licence import summed
from tapeless.interpreters.simplifications.fusion.statements import MOVES, may_compose, statement
from tapeless.interpreters.simplify import Writer, uses
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.elementwise import mul_p
from tapeless.tracer.primitives.reduction import reduce_sum_p
from tapeless.tracer.terms.solve import composed
from tapeless.tracer.terms.term import Term, looked_up, variables_of

_PRODUCTS = frozenset((mul_p, ein_p, *MOVES))
MOST_FACTORS = 6  # of one contraction: the orders of so many are all tried


def with_contractions(jaxpr: Jaxpr) -> Jaxpr:
    """Write each sum of products that nothing else reads as one `ein`."""
    w, read = Writer(jaxpr), uses(jaxpr)
    for eqn in jaxpr.eqns:
        now, w.place = w.renamed(eqn), eqn.source
        found = _contraction(w, now, read) if eqn.primitive is reduce_sum_p else None
        if found is None or not w.replace(eqn, found):
            w.keep(now)
    return w.finish()


def _contraction(w: Writer, eqn: Equation, read: dict[Var, int]) -> Atom | None:
    operands = [eqn.invars[0]]
    found = statement(eqn, w.definition, operands.index)
    if found is None or len(found.terms) != 1:
        return None
    t = found.terms[0]
    while (after := next(_composed(w, t, operands, read), None)) is not None:
        t = after
    if len(t.factors) > MOST_FACTORS or not _has_a_free_index(t):
        return None
    return exactly(w, (t,), operands.__getitem__, eqn.outvars[0].aval, found.precision)


def _has_a_free_index(t: Term) -> bool:
    """Tell whether a factor lacks an index of the result that another has: else it is an inner product of elements."""
    kept = {v for a in t.out for v in variables_of(a)}
    own = [{v for a in f.access for v in variables_of(a)} & kept for f in t.factors]
    return any(x != own[0] for x in own)


def _composed(w: Writer, t: Term, operands: list[Atom], read: dict[Var, int]) -> Iterator[Term]:
    """Compose a term with the product, or the move, that one of its factors reads."""
    for k, f in enumerate(t.factors):
        v = operands[f.operand]
        eqn = w.definition(v)
        if eqn is None or eqn.primitive not in _PRODUCTS or v.aval.dtype != eqn.invars[0].aval.dtype:
            continue
        found = statement(eqn, w.definition, lambda x: _number(operands, x))
        if found is None or len(found.terms) != 1 or f.operand in looked_up(t):
            continue
        (p,) = found.terms
        is_move = len(p.factors) == 1 and p.coefficient == 1
        if summed(p) or not (is_move or read.get(v, 0) == 1) or not may_compose((t,), f.operand, (p,)):  # type: ignore[arg-type]
            continue
        after = composed(t, k, p)
        if after is not None:
            yield after


def _number(operands: list[Atom], x: Atom) -> int:
    """Number an operand, a new one if need be."""
    for number, known in enumerate(operands):
        if known is x:
            return number
    operands.append(x)
    return len(operands) - 1
