"""Rules of reductions and cumulative operations. No derivative divides by an element, so zeros are no exceptions.

At ties of max and min all elements that attain the extreme share its derivative equally.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import Avals, Box, IndexRow, Params, core, monoid, rows, terms
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, zeros_of
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.primitives.bits import bitwise_and, bitwise_or
from tapeless.tracer.primitives.checkpoint import materialize
from tapeless.tracer.primitives.elementwise import add, convert_element_type, div, eq, exp, mul, select_n, sub
from tapeless.tracer.primitives.operands import constant, without
from tapeless.tracer.primitives.reduction import cummax, linear_recurrence, reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, broadcasted_iota, concatenate, full, pad, reshape, split
from tapeless.tracer.primitives.shape import transpose as permute
from tapeless.tracer.primitives.sorting import take_along_axis
from tapeless.tracer.terms.term import NotNegative, Read, Term
from tapeless.tracer.types import aval_of, exact

Axes = tuple[int, ...]


def _over(y: Any, like: Any, axes: Axes) -> Any:
    """Broadcast the result of a reduction over `axes` to the shape of its operand."""
    shape = aval_of(like).shape
    return broadcast_in_dim(y, shape, tuple(i for i in range(len(shape)) if i not in axes))


# ---- sum -----------------------------------------------------------------------------------------------------

jvp.linear(r.reduce_sum_p)
transpose.unary(r.reduce_sum_p, lambda ct, x, *, axes: _over(ct, x, axes))

# ---- product -------------------------------------------------------------------------------------------------


def _reduce_prod_jvp(primals: Any, tangents: Any, *, axes: Axes) -> Any:
    (x,), (t,) = primals, tangents
    if type(t) is Zero or not aval_of(x).size:
        out = r.reduce_prod_p.bind(x, axes=axes)
        return out, zeros_of(out)
    y, t = product_of_last(joined_last(x, axes), joined_last(t, axes))
    return (y,), (t,)


def product_of_last(x: Any, t: Any, moves: Any = None) -> tuple[Any, Any]:
    """Compute the product along the last axis and its tangent, by the product rule on a binary tree of products.

    Where `moves` is false the tangent t is known to be 0, and is not multiplied.
    """
    while (n := aval_of(x).shape[-1]) > 1:
        (a, b, *odd), (ta, tb, *odd_t) = _halves(x, n), _halves(t, n)
        by_a, by_b = b, a
        if moves is not None:
            move_a, move_b, *odd_moves = _halves(moves, n)
            by_a, by_b = _where(move_a, b), _where(move_b, a)
            moves = _joined([bitwise_or(move_a, move_b), *odd_moves])
        x = _joined([mul(a, b), *odd])
        t = _joined([add(mul(ta, by_a), mul(tb, by_b)), *odd_t])
    return _without_last(x), _without_last(t)


def _where(p: Any, x: Any) -> Any:
    return select_n(p, full(aval_of(x).shape, 0, aval_of(x).dtype), x)


def joined_last(x: Any, axes: Axes) -> Any:
    """Merge `axes` of x into one, the last."""
    shape = aval_of(x).shape
    kept = [i for i in range(len(shape)) if i not in axes]
    joined = int(np.prod([shape[i] for i in axes], dtype=np.int64))
    return reshape(permute(x, (*kept, *axes)), (*(shape[i] for i in kept), joined))


def _halves(x: Any, n: int) -> Sequence[Any]:
    """Split the last axis, of length n, into two halves of one length and the rest."""
    return split(x, (n // 2, n // 2, *[1] * (n % 2)), aval_of(x).ndim - 1)


def _joined(parts: Sequence[Any]) -> Any:
    return concatenate(parts, aval_of(parts[0]).ndim - 1) if len(parts) > 1 else parts[0]


def _without_last(x: Any) -> Any:
    return reshape(x, aval_of(x).shape[:-1])


def _shifted(x: Any, axis: int, fill: float, *, reverse: bool) -> Any:
    """Move elements by one place along an axis, in the order of accumulation; `fill` comes first."""
    aval = aval_of(x)
    if not aval.shape[axis]:
        return x
    move = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad(x, exact(fill, aval.dtype), [move if i == axis else (0, 0, 0) for i in range(aval.ndim)])


jvp.rules[r.reduce_prod_p] = _reduce_prod_jvp

# ---- extremes ------------------------------------------------------------------------------------------------


def _extreme_jvp(primitive: Primitive) -> None:
    """Register the rule of reduce_max or reduce_min; elements are materialized, as the result is compared with them."""

    def rule(primals: Any, tangents: Any, *, axes: Axes) -> Any:
        x = materialize(primals[0])
        (y,) = primitive.bind(x, axes=axes)
        return (y,), (_extreme_tangent(tangents[0], y, x, axes),)

    jvp.rules[primitive] = rule


def _extreme_tangent(t: Any, y: Any, x: Any, axes: Axes) -> Any:
    """Average the tangents of the elements that attain the extreme; 0 if it is nan, which equals none."""
    if not axes or not aval_of(x).size:
        return reduce_sum(t, axes)
    at = convert_element_type(eq(x, _over(y, x, axes)), aval_of(x).dtype)
    return div(reduce_sum(mul(t, at), axes), e.max(reduce_sum(at, axes), constant(1, aval_of(y))))


_extreme_jvp(r.reduce_max_p)
_extreme_jvp(r.reduce_min_p)

for _primitive in (r.reduce_and_p, r.reduce_or_p, r.reduce_xor_p, r.argmax_p, r.argmin_p):
    jvp.zero(_primitive)

# ---- cumulative ----------------------------------------------------------------------------------------------

jvp.linear(r.cumsum_p)
transpose.unary(r.cumsum_p, lambda ct, x, *, axis, reverse: r.cumsum(ct, axis, not reverse))


def _cumprod_jvp(t: Any, y: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """Differentiate y[i] = y[i-1] x[i]:  ẏ[i] = x[i] ẏ[i-1] + y[i-1] ẋ[i]."""
    return linear_recurrence(x, mul(t, _shifted(y, axis, 1, reverse=reverse)), axis, reverse)


def _cumlogsumexp_jvp(t: Any, y: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """Differentiate exp y[i] = exp y[i-1] + exp x[i]:  ẏ[i] = exp(y[i-1] - y[i]) ẏ[i-1] + exp(x[i] - y[i]) ẋ[i]."""
    before = _shifted(y, axis, -np.inf, reverse=reverse)
    return linear_recurrence(_share(before, y), mul(t, _share(x, y)), axis, reverse)


def _share(x: Any, y: Any) -> Any:
    """Compute exp(x - y) for x <= y; 0 where y is not finite, and the difference might be nan."""
    zero = full(aval_of(y).shape, 0, aval_of(y).dtype)
    known = e.is_finite(y)
    return select_n(known, zero, exp(sub(select_n(known, zero, x), select_n(known, zero, y))))


def _running_extreme_jvp(cumulate: Callable[..., Any]) -> Callable[..., Any]:
    """Return the row of cummax or cummin: the tangent of the last element so far that was a new extreme."""

    def row(t: Any, y: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        aval = aval_of(y)
        if not aval.size:
            return t
        places = broadcasted_iota(np.int32, aval.shape, axis)
        first = full(aval.shape, aval.shape[axis] - 1 if reverse else 0, np.int32)
        before = _shifted(y, axis, 0, reverse=reverse)
        new = bitwise_and(e.ne(y, before), eq(before, before))  # after a nan there is no new extreme
        advance = r.cummin if reverse else cummax
        return take_along_axis(t, advance(select_n(new, first, places), axis, reverse), axis)

    return row


jvp.partials_of_result(r.cumprod_p, _cumprod_jvp)
jvp.partials_of_result(r.cumlogsumexp_p, _cumlogsumexp_jvp)
jvp.partials_of_result(r.cummax_p, _running_extreme_jvp(cummax))
jvp.partials_of_result(r.cummin_p, _running_extreme_jvp(r.cummin))

# ---- linear recurrence ---------------------------------------------------------------------------------------


def _recurrence_jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
    """Push tangents by the same recurrence: ż[i] = decay[i] ż[i-1] + ḋ[i] z[i-1] + ẋ[i]."""
    (decay, x), (t, driving) = primals, tangents
    z = linear_recurrence(decay, x, axis, reverse)
    terms = [] if type(t) is Zero else [mul(t, _shifted(z, axis, 0, reverse=reverse))]
    terms += [] if type(driving) is Zero else [driving]
    driven = jvp.total(terms, z)
    return (z,), (driven if type(driven) is Zero else linear_recurrence(decay, driven, axis, reverse),)


def _recurrence_transpose(cts: Any, decay: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """Pull ct back by the reversed recurrence: ct_x[i] = decay[i+1] ct_x[i+1] + ct[i]."""
    if is_linear(decay):
        raise transpose.not_linear(r.linear_recurrence_p, "it is linear in its second operand only")
    later = _shifted(decay, axis, 0, reverse=not reverse)
    return None, linear_recurrence(later, cts[0], axis, not reverse)


jvp.rules[r.linear_recurrence_p] = _recurrence_jvp
jvp.structurally_linear[r.linear_recurrence_p] = (1,)
transpose.rules[r.linear_recurrence_p] = _recurrence_transpose

# ---- vmap: the mapped axis stays where it is, and the params count past it -------------------------------------


def _reduce_vmap(primitive: Primitive) -> None:
    def rule(size: int, args: Any, dims: Any, *, axes: Axes) -> Any:
        moved = tuple(vmap.beside(a, dims[0]) for a in axes)
        return primitive.bind(*args, axes=moved), [dims[0] - sum(a < dims[0] for a in moved)]

    vmap.rules[primitive] = rule


def _position_vmap(primitive: Primitive) -> None:
    def rule(size: int, args: Any, dims: Any, *, axis: int, index_dtype: Any) -> Any:
        moved = vmap.beside(axis, dims[0])
        return primitive.bind(*args, axis=moved, index_dtype=index_dtype), [dims[0] - (moved < dims[0])]

    vmap.rules[primitive] = rule


def _along_vmap(primitive: Primitive) -> None:
    def rule(size: int, args: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        given, d = vmap.together(size, args, dims)
        return primitive.bind(*given, axis=vmap.beside(axis, d), reverse=reverse), [d]

    vmap.rules[primitive] = rule


for _primitive in (r.reduce_sum_p, r.reduce_prod_p, r.reduce_max_p, r.reduce_min_p):
    _reduce_vmap(_primitive)
for _primitive in (r.reduce_and_p, r.reduce_or_p, r.reduce_xor_p):
    _reduce_vmap(_primitive)
for _primitive in (r.argmax_p, r.argmin_p):
    _position_vmap(_primitive)
for _primitive in (r.cumsum_p, r.cumprod_p, r.cummax_p, r.cummin_p, r.cumlogsumexp_p, r.linear_recurrence_p):
    _along_vmap(_primitive)

# ---- index rows ----------------------------------------------------------------------------------------------
# Sums are terms, other reductions monoids, with a variable for each reduced axis.

Row = Callable[[Params, Avals], IndexRow]


def _reduced(params: Params, avals: Avals) -> Term:
    box = Box()
    i = box.axes(avals[0].shape)
    return box.term(without(i, params["axes"]), Read(0, i))


def _cumulated(params: Params, avals: Avals) -> Term:
    """Make the term of a cumulative reduction: elements up to each position on `axis`, or from it on if `reverse`."""
    box, axis = Box(), params["axis"]
    out = box.axes(avals[0].shape)
    k = box.axis(avals[0].shape[axis])
    ahead = k - out[axis] if params["reverse"] else out[axis] - k
    access = tuple([k if d == axis else v for d, v in enumerate(out)])
    return box.term(out, Read(0, access), brackets=[NotNegative(ahead)])


def _monoid_row(operation: str, written: Callable[[Params, Avals], Term]) -> Row:
    return lambda params, avals: monoid(operation, written(params, avals))


def _reduce_or_row(params: Params, avals: Avals) -> IndexRow:
    found = _reduced(params, avals)
    return terms([found]) if dtypes.is_bool(avals[0].dtype) else monoid("or", found)


def _position_row(params: Params, avals: Avals) -> IndexRow:
    """Make the index row of argmax and argmin, which read the whole axis."""
    (x,), axis = avals, params["axis"]
    return core([(x.shape, {d: d - (d > axis) for d in range(x.ndim) if d != axis})], without(x.shape, (axis,)))


def _linear_recurrence_row(params: Params, avals: Avals) -> IndexRow:
    along = {d: d for d in range(avals[0].ndim) if d != params["axis"]}
    return core([(x.shape, along) for x in avals], avals[1].shape)


rows[r.reduce_sum_p] = lambda params, avals: terms([_reduced(params, avals)])
rows[r.cumsum_p] = lambda params, avals: terms([_cumulated(params, avals)])
rows[r.reduce_or_p] = _reduce_or_row
for _primitive, _operation in (
    (r.reduce_prod_p, "mul"), (r.reduce_max_p, "max"), (r.reduce_min_p, "min"), (r.reduce_and_p, "and"),
    (r.reduce_xor_p, "xor"),
):  # fmt: skip
    rows[_primitive] = _monoid_row(_operation, _reduced)
for _primitive, _operation in (
    (r.cumprod_p, "mul"), (r.cummax_p, "max"), (r.cummin_p, "min"), (r.cumlogsumexp_p, "logaddexp"),
):  # fmt: skip
    rows[_primitive] = _monoid_row(_operation, _cumulated)
rows[r.argmax_p] = rows[r.argmin_p] = _position_row
rows[r.linear_recurrence_p] = _linear_recurrence_row
