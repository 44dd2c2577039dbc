"""Statements: equations as sums of products (terms), simplified by what is known of their operands.

The index row of the primitive gives the terms. Masks that compare affine values become brackets; zeros that are padded
or joined, and factors of 1, are dropped. Only the primitives in `FOLLOWED` have statements, and only in dtypes that
permit another order of summation.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.index_rows import Combination, rows
from tapeless.interpreters.simplifications.fusion.affine_values import Definition, brackets_where
from tapeless.interpreters.simplifications.fusion.licence import sums_in_any_order
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Literal
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.contraction import Precision, dot_general_p
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.indexing import gather_p, scatter_add_p
from tapeless.tracer.primitives.reduction import cumsum_p, reduce_sum_p
from tapeless.tracer.terms.affine import variables
from tapeless.tracer.terms.solve import composed, solved, substituted
from tapeless.tracer.terms.term import Bracket, Sum, Term, Use, term

_JOINS = frozenset((s.pad_p, s.concatenate_p, scatter_add_p))  # terms of operands that are zeros are dropped
MOVES = frozenset((s.broadcast_in_dim_p, s.reshape_p, s.transpose_p, s.rev_p, s.slice_p))
FOLLOWED = frozenset((
    e.neg_p, e.add_p, e.sub_p, e.mul_p, e.square_p, e.convert_element_type_p, e.select_n_p,
    *MOVES, *_JOINS, reduce_sum_p, dot_general_p, cumsum_p, gather_p, ein_p,
))  # fmt: skip


class Statement(NamedTuple):
    """A value as a sum of terms over numbered operands, and the precision of its contractions, None if none is set.

    exact: terms are not evaluated where their brackets fail, as those of `ein`.
    """

    terms: Sum
    precision: Any = None
    exact: bool = False


def statement(eqn: Equation, definition: Definition, number: Callable[[Atom], int]) -> Statement | None:
    """Return the statement of an equation, or None if it has none.

    Args:
      definition: returns the equation that computes a variable, None for inputs and literals.
      number: returns the number of an operand.
    """
    if eqn.primitive not in FOLLOWED or not _permitted(eqn):
        return None
    row = rows[eqn.primitive](eqn.params, [x.aval for x in eqn.invars])
    if row.combination is not Combination.TERMS:
        return None
    found = _chosen(eqn, row.results[0], definition) if eqn.primitive is e.select_n_p else row.results[0]
    if found is None:
        return None
    if eqn.primitive in _JOINS:
        found = tuple([t for t in found if not _is_zero(eqn.invars[t.factors[0].operand], definition)])
    if any(_vanishes(eqn.invars[f.operand], definition) for t in found for f in t.factors):
        return None  # the rewrites of the equation itself see best that its product is 0
    terms = [after for t in found if (after := _known(eqn, t, definition, number)) is not None]
    return Statement(tuple(terms), eqn.params.get("precision"), eqn.primitive is ein_p)


def _permitted(eqn: Equation) -> bool:
    (out,) = [v.aval for v in eqn.outvars]
    if (
        dtypes.is_bool(out.dtype)
        or dtypes.is_key(out.dtype)
        or not sums_in_any_order(out.dtype)
        or eqn.params.get("preferred_element_type")
    ):
        return False
    if eqn.primitive is dot_general_p and not isinstance(eqn.params["precision"][0], Precision):
        return False  # a dot algorithm applies to this one product
    return not any(0 in x.aval.shape for x in (*eqn.invars, *eqn.outvars))


def _chosen(eqn: Equation, terms: Sum, definition: Definition) -> Sum | None:
    """Return the term [brackets] x of a select between zeros and x by a mask of affine indices; None for others."""
    mask, *cases = eqn.invars
    if len(cases) != 2 or not mask.aval.shape or not _is_zero(cases[0], definition):
        return None
    brackets = brackets_where(mask, definition)
    if brackets is None:
        return None
    return (terms[1].with_brackets(brackets),)


def _is_zero(x: Atom, definition: Definition) -> bool:
    """Tell whether a value is known to be 0, of either sign."""
    eqn = definition(x)
    found = eqn.invars[0] if eqn is not None and eqn.primitive is s.broadcast_in_dim_p else x
    return type(found) is Literal and not np.asarray(found.value).any()


def _vanishes(x: Atom, definition: Definition) -> bool:
    """Tell whether a value is 0 if nothing is infinite: zeros, products with zeros, and moves of these."""
    eqn = definition(x)
    while eqn is not None and eqn.primitive in MOVES:
        x, eqn = eqn.invars[0], definition(eqn.invars[0])
    if eqn is not None and eqn.primitive is e.mul_p:
        return any(_is_zero(v, definition) for v in eqn.invars)
    return _is_zero(x, definition)


def _known(eqn: Equation, t: Term, definition: Definition, number: Callable[[Atom], int]) -> Term | None:
    """Renumber the operands of a term by `number`, drop factors of 1, and turn masks of affine indices into brackets.

    None if the term is 0.
    """
    factors = [f for f in t.factors if not _is_one(eqn.invars[f.operand])]
    found = t if len(factors) == len(t.factors) else term(t.out, t.sizes, factors, t.brackets, t.coefficient)
    found = solved(found.with_operands(lambda k: number(eqn.invars[k])))
    for x in eqn.invars if found is not None else ():
        brackets = brackets_where(x, definition) if dtypes.is_bool(x.aval.dtype) else None
        if brackets is not None and found is not None:
            found = _with_mask(found, number(x), x.aval.shape, brackets)
    return found


def _is_one(x: Atom) -> bool:
    return type(x) is Literal and not x.aval.shape and bool(np.asarray(x.value) == 1)


def _with_mask(t: Term, operand: int, shape: tuple[int, ...], brackets: tuple[Bracket, ...]) -> Term | None:
    """Replace the factors that read a mask by its brackets; None if the term is 0."""
    found: Term | None = t
    while found is not None and (at := next(_reading(found, operand), None)) is not None:
        found = composed(found, at, term(variables(shape), shape, (), brackets))
    return found


def _reading(t: Term, operand: int) -> Iterator[int]:
    """Yield the positions of the factors that read an operand."""
    return (k for k, f in enumerate(t.factors) if f.operand == operand)


def may_compose(reader: Sum, operand: int, producer: Sum) -> bool:
    """Tell whether terms may be substituted for an operand: no factor divides by it, or conjugates a quotient."""
    uses = {f.use for t in reader for f in t.factors if f.operand == operand}
    divides = any(f.use is Use.DIVIDED for t in producer for f in t.factors)
    return Use.DIVIDED not in uses and not (divides and Use.CONJUGATED in uses)


def inlined(reader: Sum, operand: int, producer: Sum, most: int) -> Sum | None:
    """Substitute the terms of a producer for an operand of a reader, unmerged; None after `most` compositions."""
    todo, done, compositions = list(reader), list[Term](), 0
    while todo:
        t = todo.pop()
        at = next(_reading(t, operand), None)
        if at is None:
            done.append(t)
            continue
        compositions += len(producer)
        if compositions > most:
            return None
        todo += substituted(t, at, producer)
    return tuple(reversed(done))
