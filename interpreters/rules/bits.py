"""Rules of bitwise operations. Only rounding to fewer bits has a derivative."""

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.tracer.primitives import bits as b

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
