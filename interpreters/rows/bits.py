"""Index rows of operations on bits: for booleans, `and` is a product, `or` a sum, `not` a bracket."""

from collections.abc import Sequence

from tapeless.interpreters.index_rows import IndexRow, Params, core, elements, pointwise, rows, terms
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import bits as b
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import Lookup
from tapeless.tracer.types import ShapedArray

Avals = Sequence[ShapedArray]


def _not(params: Params, avals: Avals) -> IndexRow:
    if not dtypes.is_bool(avals[0].dtype):
        return pointwise(params, avals)
    return terms([elements(avals, [], lambda i: [Lookup(Affine(0), 0, i, (0, 1))])])


def _and(params: Params, avals: Avals) -> IndexRow:
    return terms([elements(avals, [0, 1])]) if dtypes.is_bool(avals[0].dtype) else pointwise(params, avals)


def _or(params: Params, avals: Avals) -> IndexRow:
    if not dtypes.is_bool(avals[0].dtype):
        return pointwise(params, avals)
    return terms([elements(avals, [0]), elements(avals, [1])])


def _bitcast_convert_type(params: Params, avals: Avals) -> IndexRow:
    """Make the row of a bit cast: elementwise, or with an axis for the parts of the wider elements."""
    (x,) = avals
    old, new = dtypes.bits_of(x.dtype), dtypes.bits_of(params["dtype"])
    if old == new:
        return pointwise(params, avals)
    shape = (*x.shape, old // new) if old > new else x.shape[:-1]
    return core([(x.shape, {d: d for d in range(min(x.ndim, len(shape)))})], shape)


rows[b.not_p], rows[b.and_p], rows[b.or_p] = _not, _and, _or
rows[b.bitcast_convert_type_p] = _bitcast_convert_type
for _primitive in (
    b.xor_p, b.shift_left_p, b.shift_right_logical_p, b.shift_right_arithmetic_p, b.population_count_p, b.clz_p,
    b.reduce_precision_p,
):  # fmt: skip
    rows[_primitive] = pointwise
