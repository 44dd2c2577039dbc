"""Rules of functions related to the error function: derivatives by DLMF 7.10."""

import math

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.index_rows import pointwise, rows
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import error_functions as f
from tapeless.tracer.primitives.elementwise import exp, mul, square

jvp.partials(f.erfcx_p, lambda t, x: mul(t, f.erfcx_slope(x)))
jvp.partials(f.dawsn_p, lambda t, x: mul(t, f.dawsn_slope(x)))
jvp.partials(f.ndtr_p, lambda t, x: mul(t, f.normal_density(x)))
jvp.partials(f.log_ndtr_p, lambda t, x: mul(t, f.inverse_mills_ratio(x)))
jvp.partials_of_result(f.ndtri_p, lambda t, y, p: mul(t, mul(math.sqrt(2.0 * math.pi), exp(mul(0.5, square(y))))))
jvp.partials_of_result(f.erfinv_p, lambda t, y, x: mul(t, mul(0.5 * math.sqrt(math.pi), exp(square(y)))))

for _primitive in [p for p in vars(f).values() if isinstance(p, Primitive)]:
    vmap.elementwise(_primitive)

# ---- index rows ----------------------------------------------------------------------------------------------

for _primitive in (f.erfcx_p, f.dawsn_p, f.ndtr_p, f.log_ndtr_p, f.ndtri_p, f.erfinv_p):
    rows[_primitive] = pointwise
