"""Contractions in bodies of the index language: rewrite a sum, and the products that it adds up, as one `ein`.

Search terms: einsum, producer-consumer fusion. The fusion pass leaves a sum of products as it is if the array of the
products is no larger than their factors, since a user who wrote array operations may have had a reason. A body is
written for single elements, so this pass contracts, and a matrix-vector product is one operation. An inner product
stays an elementwise product that is summed, in one loop.
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
MOST_FACTORS = 6  # of one contraction: up to so many, all orders are tried


def with_contractions(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite each sum of products as one `ein`, if nothing else reads the products."""
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
    """Tell whether a factor lacks an index of the result that another has; if not, the term is an inner product."""
    kept = {v for a in t.out for v in variables_of(a)}
    own = [{v for a in f.access for v in variables_of(a)} & kept for f in t.factors]
    return any(x != own[0] for x in own)


def _composed(w: Writer, t: Term, operands: list[Atom], read: dict[Var, int]) -> Iterator[Term]:
    """Yield the term composed with the product, or the move, that one of its factors reads; appends to `operands`."""
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
    """Return the number of an operand, which is appended if it is new."""
    for number, known in enumerate(operands):
        if known is x:
            return number
    operands.append(x)
    return len(operands) - 1
