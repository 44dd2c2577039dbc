"""Statements: equations as sums of products (terms), simplified by what is known of their operands.

The index row of the primitive gives the terms. Masks that compare affine values become brackets; zeros that are padded
or joined, and factors of 1, are dropped. Only the primitives in `FOLLOWED` have statements, and only in dtypes that
permit another order of summation.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.index_rows import Combination, Params, rows
from tapeless.interpreters.simplifications.fusion.affine_values import Definition, brackets_where
from tapeless.interpreters.simplifications.fusion.licence import sums_in_any_order
from tapeless.interpreters.terms.compose import Composer, compress_numbers, may_compose, positions_of
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Literal
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.contraction import Precision, dot_general_p
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.indexing import gather_p, scatter_add_p
from tapeless.tracer.primitives.reduction import cumsum_p, reduce_sum_p
from tapeless.tracer.terms.affine import variables
from tapeless.tracer.terms.solve import compose_terms, merge_terms, solve_term
from tapeless.tracer.terms.term import Bracket, Lookup, Sum, Term, looked_up, term
from tapeless.tracer.terms.term_limits import Limit
from tapeless.tracer.types import ShapedArray

_Mask = tuple[int, tuple[int, ...], tuple[Bracket, ...]]  # an operand, its shape, and the brackets where it is true
_JOINS = frozenset((s.pad_p, s.concatenate_p, scatter_add_p))  # terms of operands that are zeros are dropped
MOVES = frozenset((s.broadcast_in_dim_p, s.reshape_p, s.transpose_p, s.rev_p, s.slice_p))
FOLLOWED = frozenset((
    e.neg_p, e.add_p, e.sub_p, e.mul_p, e.square_p, e.convert_element_type_p, e.select_n_p,
    *MOVES, *_JOINS, reduce_sum_p, dot_general_p, cumsum_p, gather_p, ein_p,
))  # fmt: skip


class Statement(NamedTuple):
    """A value as a sum of terms over its operands, and the precision of its contractions, None if none is set.

    operands: the number of each operand that the terms read, in rising order; the terms count these. So equal
      structures have the same terms, and what is computed of terms is computed once for all of them.
    guarded: terms are not evaluated where their brackets fail, as those of `ein`.
    """

    terms: Sum
    operands: tuple[int, ...]
    precision: Any = None
    guarded: bool = False

    @property
    def numbered_terms(self) -> Sum:
        """Return the terms over the numbers of the operands."""
        return tuple([t.with_operands(self.operands.__getitem__) for t in self.terms])


def statement(eqn: Equation, definition: Definition, number: Callable[[Atom], int]) -> Statement | None:
    """Return the statement of an equation, or None if it has none.

    Args:
      definition: returns the equation that computes a variable, None for inputs and literals.
      number: returns the number of an operand.
    """
    if eqn.primitive not in FOLLOWED:
        return None
    found = _terms_of(
        eqn.primitive, tuple(eqn.params.items()), tuple([x.aval for x in eqn.invars]), eqn.outvars[0].aval
    )
    if found is not None and eqn.primitive is e.select_n_p:
        found = _chosen(eqn, found, definition)
    if found is None:
        return None
    if eqn.primitive in _JOINS:
        found = tuple([t for t in found if not _is_zero(eqn.invars[t.factors[0].operand], definition)])
    if any(_vanishes(eqn.invars[k], definition) for k in _factors_of(found)):
        return None  # the rewrites of the equation itself see best that its product is 0
    ones = tuple([k for k, x in enumerate(eqn.invars) if type(x) is Literal and _is_one(x)])
    numbers = {k: number(eqn.invars[k]) for k in _reads_of_row(found, ones)}
    masks = []
    for k, x in enumerate(eqn.invars):
        brackets = brackets_where(x, definition) if dtypes.is_bool(x.aval.dtype) else None
        if brackets is not None:
            numbers.setdefault(k, number(x))
            masks.append((k, x.aval.shape, brackets))
    every = sorted({*numbers.values()})
    ranks = tuple([(k, every.index(n)) for k, n in numbers.items()])
    terms, read = _simplified(found, ones, ranks, tuple(masks))
    return Statement(terms, tuple([every[k] for k in read]), eqn.params.get("precision"), eqn.primitive is ein_p)


@lru_cache(maxsize=4096)
def _terms_of(primitive: Primitive, params: Any, avals: tuple[ShapedArray, ...], out: ShapedArray) -> Sum | None:
    """Return the terms of a primitive, by its index row; None if it has none, or if they may not be reordered."""
    given = dict(params)
    if not _permitted(primitive, given, avals, out):
        return None
    row = rows[primitive](given, avals)
    return row.results[0] if row.combination is Combination.TERMS else None


@lru_cache(maxsize=4096)
def _factors_of(terms: Sum) -> tuple[int, ...]:
    """List the operands of factors, each once, in the order of the terms."""
    return tuple(dict.fromkeys([f.operand for t in terms for f in t.factors]))


@lru_cache(maxsize=4096)
def _reads_of_row(terms: Sum, ones: tuple[int, ...]) -> tuple[int, ...]:
    """List the operands that terms read without factors of 1, each once, as `Term.with_operands` meets them."""
    met = dict[int, None]()
    for t in terms:
        _without_ones(t, ones).with_operands(lambda k: met.setdefault(k) or k)
    return tuple(met)


def _without_ones(t: Term, ones: tuple[int, ...]) -> Term:
    factors = [f for f in t.factors if f.operand not in ones]
    return t if len(factors) == len(t.factors) else term(t.out, t.sizes, factors, t.brackets, t.coefficient)


@lru_cache(maxsize=4096)
def _simplified(
    terms: Sum, ones: tuple[int, ...], ranks: tuple[tuple[int, int], ...], masks: tuple[_Mask, ...]
) -> tuple[Sum, tuple[int, ...]]:
    """Simplify the terms of a row: drop factors of 1, and turn masks of affine indices into brackets.

    Args:
      ones: the operands that are 1.
      ranks: the number of each operand that is read.
    Returns: the nonzero terms, over the operands that they read, and the numbers of these.
    """
    rank = dict(ranks)
    found = [after for t in terms if (after := _known(_without_ones(t, ones), rank, masks)) is not None]
    return compress_numbers(tuple(found))


def _permitted(primitive: Primitive, params: Params, avals: Sequence[ShapedArray], out: ShapedArray) -> bool:
    if (
        dtypes.is_bool(out.dtype)
        or dtypes.is_key(out.dtype)
        or not sums_in_any_order(out.dtype)
        or params.get("preferred_element_type")
    ):
        return False
    if primitive is dot_general_p and not isinstance(params["precision"][0], Precision):
        return False  # a dot algorithm applies to this one product
    return not any(0 in x.shape for x in (*avals, out))


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


def _known(t: Term, rank: Mapping[int, int], masks: Sequence[_Mask]) -> Term | None:
    """Renumber the operands of a term by `rank`, and turn masks of affine indices into brackets; None if it is 0."""
    found = solve_term(t.with_operands(rank.__getitem__))
    for k, shape, brackets in masks:
        if found is not None:
            found = _with_mask(found, rank[k], shape, brackets)
    return found


def _is_one(x: Literal) -> bool:
    return not x.aval.shape and bool(np.asarray(x.value) == 1)


def _with_mask(t: Term, operand: int, shape: tuple[int, ...], brackets: tuple[Bracket, ...]) -> Term | None:
    """Replace the factors that read a mask by its brackets; None if the term is 0."""
    found: Term | None = t
    while found is not None and (at := next(positions_of(found, operand), None)) is not None:
        found = compose_terms(found, at, term(variables(shape), shape, (), brackets))
    return found


_COMPOSER = Composer(limits.COMPOSITIONS, terms=limits.TERMS, factors=limits.FACTORS)


class Composition(NamedTuple):
    """A sum of terms after the substitution of another sum, over the operands that it reads; did terms cancel in it?"""

    terms: Sum
    operands: tuple[int, ...]
    cancels: bool


@lru_cache(maxsize=4096)
def composition(
    reader: Sum, of_reader: tuple[int, ...], operand: int, producer: Sum, of_producer: tuple[int, ...]
) -> Composition | Limit | None:
    """Substitute the terms of a producer for an operand of a reader.

    Returns: the limit that forbids it, if one does; None if it is impossible.

    Args:
      of_reader, of_producer: the numbers of the operands of both, which are numbered together, as `operand` is.
    """
    passed = _COMPOSER.passed_by_counts(reader, of_reader.index(operand), len(producer))
    if passed is not None:
        return passed
    into = tuple([t.with_operands(of_reader.__getitem__) for t in reader])
    terms = tuple([t.with_operands(of_producer.__getitem__) for t in producer])
    if any(operand in looked_up(t) for t in into) or not may_compose(into, operand, terms):
        return None
    found, passed = _COMPOSER.inlined(into, operand, terms)
    joint = () if passed is not None else merge_terms(found)
    passed = passed or _COMPOSER.passed_by(joint)
    if passed is not None:
        return passed
    if _tells_sums(joint) and not _tells_sums((*into, *terms)):
        return None
    return Composition(*compress_numbers(joint), _cancel(found, joint))


def _cancel(terms: Sequence[Term], joint: Sum) -> bool:
    """Tell whether terms of opposite signs cancelled when they were merged to `joint`."""
    return sum(abs(t.coefficient) for t in joint) < sum(abs(t.coefficient) for t in terms)


def _tells_sums(terms: Sum) -> bool:
    """Tell whether what is looked up is a sum of variables: all values of all but one of them are then compared."""
    return any(isinstance(b, Lookup) and len(b.index.variables) > 1 for t in terms for b in t.brackets)


@lru_cache(maxsize=4096)
def reads_in_order(terms: Sum) -> tuple[int, ...]:
    """List the operands that terms read, each once, in the order of their first reads."""
    return tuple(dict.fromkeys([k for t in terms for k, _ in t.reads]))
