"""Equations that are cheap enough to be done again: they only move, repeat, convert, compare or count elements."""

from collections.abc import Sequence

from tapeless.interpreters.index_rows import Combination, Params, rows
from tapeless.interpreters.simplifications.common_subexpressions import FENCES
from tapeless.interpreters.simplifications.fusion.licence import are_apart, find_summed, only_moves
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation, effects
from tapeless.tracer.primitives.elementwise import convert_element_type_p, eq_p, select_n_p
from tapeless.tracer.terms.term import Lookup, Term
from tapeless.tracer.types import ShapedArray


def may_be_repeated(eqn: Equation) -> bool:
    """Tell whether an equation only moves, repeats, converts, compares or counts elements."""
    row = None if eqn.primitive in FENCES else rows.get(eqn.primitive)
    if row is None or len(eqn.outvars) != 1 or eqn.primitive.carries_programs or effects(eqn):
        return False
    if not eqn.invars or eqn.primitive is convert_element_type_p:
        return True
    found = row(eqn.params, [v.aval for v in eqn.invars])
    if found.combination is Combination.POINTWISE:
        return not dtypes.is_inexact(eqn.outvars[0].aval.dtype)
    terms = found.results[0]
    if found.combination is not Combination.TERMS or any(map(_places, terms)):
        return False
    if dtypes.is_inexact(eqn.outvars[0].aval.dtype):
        return only_moves(terms) and (eqn.primitive is select_n_p or are_apart(terms))
    return not any(len(t.factors) > 1 and find_summed(t) for t in terms)


def is_cheap_on_elements(primitive: Primitive, params: Params, avals: Sequence[ShapedArray]) -> bool:
    """Tell whether elements are cheap functions of single elements: sums, products, cases, comparisons, or moves."""
    if primitive is convert_element_type_p or primitive is eq_p:
        return True
    row = None if primitive in FENCES else rows.get(primitive)
    found = None if row is None else row(params, avals)
    if found is None or found.combination is not Combination.TERMS or len(found.results) != 1:
        return False
    return not any(_places(t) or any(t.sizes[v] > 1 for v in find_summed(t)) for t in found.results[0])


def is_fused(eqn: Equation) -> bool:
    """Tell whether compilers compute the results of an equation where they are read: moves, sums, products, cases."""
    return is_cheap_on_elements(eqn.primitive, eqn.params, [v.aval for v in eqn.invars])


def _places(t: Term) -> bool:
    """Tell whether an array says which elements are read or written, as for gather and scatter."""
    return any(isinstance(b, Lookup) and b.index.variables for b in t.brackets)
