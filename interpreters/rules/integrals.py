"""Rules of integrals of elementary functions: their derivatives are the integrands, and elementwise all the rest."""

import math
from collections.abc import Callable
from typing import Any

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.index_rows import pointwise, rows
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import integrals as i
from tapeless.tracer.primitives.elementwise import convert_element_type, cos, div, exp, mul, neg, sin, square
from tapeless.tracer.types import aval_of


def _of_quarter_turns(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda t, x: mul(t, convert_element_type(function(i.quarter_turns(x)), aval_of(x).dtype))


jvp.partials(i.exp1_p, lambda t, x: mul(t, neg(div(exp(neg(x)), x))))
jvp.partials(i.expi_p, lambda t, x: mul(t, div(exp(x), x)))
jvp.partials(i.sine_integral_p, lambda t, x: mul(t, i.sine_quotient(x)))
jvp.partials(i.cosine_integral_p, lambda t, x: mul(t, div(cos(x), x)))
jvp.partials(i.fresnel_sine_p, _of_quarter_turns(sin))
jvp.partials(i.fresnel_cosine_p, _of_quarter_turns(cos))
jvp.partials(i.spence_p, lambda t, x: mul(t, i.spence_slope(x)))

# Relatives of the error function, by DLMF 7.10.
jvp.partials(i.erfcx_p, lambda t, x: mul(t, i.erfcx_slope(x)))
jvp.partials(i.dawsn_p, lambda t, x: mul(t, i.dawsn_slope(x)))
jvp.partials(i.ndtr_p, lambda t, x: mul(t, i.normal_density(x)))
jvp.partials(i.log_ndtr_p, lambda t, x: mul(t, i.inverse_mills_ratio(x)))
jvp.partials_of_result(i.ndtri_p, lambda t, y, p: mul(t, mul(math.sqrt(2.0 * math.pi), exp(mul(0.5, square(y))))))
jvp.partials_of_result(i.erfinv_p, lambda t, y, x: mul(t, mul(0.5 * math.sqrt(math.pi), exp(square(y)))))

for _primitive in [p for p in vars(i).values() if isinstance(p, Primitive)]:
    vmap.elementwise(_primitive)
    rows[_primitive] = pointwise
