"""Rules of bitwise operations. Only rounding to fewer bits has a derivative."""

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import Avals, IndexRow, Params, core, elements, pointwise, rows, terms
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import bits as b
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import Lookup

for _primitive in (b.not_p, b.and_p, b.or_p, b.xor_p, b.population_count_p, b.clz_p):
    jvp.zero(_primitive)
    vmap.elementwise(_primitive)
for _primitive in (b.shift_left_p, b.shift_right_logical_p, b.shift_right_arithmetic_p):
    jvp.zero(_primitive)
    vmap.elementwise(_primitive)

jvp.zero(b.bitcast_convert_type_p)
vmap.front(b.bitcast_convert_type_p)  # only the last axis may be added or dropped

# Tangents and cotangents are carried in the reduced format too, as those of a narrower dtype would be.
jvp.partials(b.reduce_precision_p, lambda t, x, **format: b.reduce_precision(t, **format))
jvp.structurally_linear[b.reduce_precision_p] = jvp.All.JOINTLY
transpose.unary(b.reduce_precision_p, lambda ct, x, **format: b.reduce_precision(ct, **format))
vmap.elementwise(b.reduce_precision_p)

# ---- index rows ----------------------------------------------------------------------------------------------
# For booleans, `and` is a product, `or` a sum, `not` a bracket.


def _not_row(params: Params, avals: Avals) -> IndexRow:
    if not dtypes.is_bool(avals[0].dtype):
        return pointwise(params, avals)
    return terms([elements(avals, [], lambda i: [Lookup(Affine(0), 0, i, (0, 1))])])


def _and_row(params: Params, avals: Avals) -> IndexRow:
    return terms([elements(avals, [0, 1])]) if dtypes.is_bool(avals[0].dtype) else pointwise(params, avals)


def _or_row(params: Params, avals: Avals) -> IndexRow:
    if not dtypes.is_bool(avals[0].dtype):
        return pointwise(params, avals)
    return terms([elements(avals, [0]), elements(avals, [1])])


def _bitcast_convert_type_row(params: Params, avals: Avals) -> IndexRow:
    """Make the row of a bit cast: elementwise, or with an axis for the parts of the wider elements."""
    (x,) = avals
    old, new = dtypes.bits_of(x.dtype), dtypes.bits_of(params["dtype"])
    if old == new:
        return pointwise(params, avals)
    shape = (*x.shape, old // new) if old > new else x.shape[:-1]
    return core([(x.shape, {d: d for d in range(min(x.ndim, len(shape)))})], shape)


rows[b.not_p], rows[b.and_p], rows[b.or_p] = _not_row, _and_row, _or_row
rows[b.bitcast_convert_type_p] = _bitcast_convert_type_row
for _primitive in (
    b.xor_p, b.shift_left_p, b.shift_right_logical_p, b.shift_right_arithmetic_p, b.population_count_p, b.clz_p,
    b.reduce_precision_p,
):  # fmt: skip
    rows[_primitive] = pointwise
