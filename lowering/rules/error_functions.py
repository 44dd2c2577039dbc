"""Lowering of functions related to the error function, by Chebyshev series on two or three intervals.

All is computed in float64: in float32 results are rounded once. Error in float64: 5 ulp, and where a function has the
factor exp(x^2) as many ulp more as x^2 is large.
"""

import math
from typing import Any

from tapeless.lowering import emit
from tapeless.lowering.composition import composed, in_float64
from tapeless.tracer.primitives import chebyshev_tables as tables
from tapeless.tracer.primitives import error_functions as f
from tapeless.tracer.primitives.bits import bitwise_and
from tapeless.tracer.primitives.chebyshev import chebyshev, clipped, on_interval
from tapeless.tracer.primitives.elementwise import (
    abs,
    add,
    div,
    exp,
    gt,
    log,
    log1p,
    lt,
    max,
    min,
    mul,
    neg,
    select_n,
    sign,
    sqrt,
    square,
    sub,
)
from tapeless.tracer.primitives.special import erf, erf_inv, erfc


def _erfcx(x: Any) -> Any:
    shifted = add(abs(x), 3.75)
    positive = div(chebyshev(sub(1.0, div(7.5, shifted)), tables.ERFCX), shifted)
    return select_n(lt(x, 0.0), positive, sub(mul(2.0, exp(square(x))), positive))


def _dawsn(x: Any) -> Any:
    size = abs(x)
    z = square(min(size, 2.5))
    nearest = on_interval(z, 0.0, 1.0, tables.DAWSN_NEAREST)
    near = mul(x, select_n(gt(z, 1.0), nearest, on_interval(z, 1.0, 6.25, tables.DAWSN_NEAR)))
    large = max(size, 2.5)
    far = mul(sign(x), mul(add(1.0, f.dawsn_rest(large)), div(0.5, large)))
    return select_n(gt(size, 2.5), near, far)


def _ndtr(x: Any) -> Any:
    return mul(0.5, erfc(mul(-math.sqrt(0.5), x)))


def _log_ndtr(x: Any) -> Any:
    """Compute log(ndtr(x)) by erfcx below -1, by ndtr(x) up to 1/2, and by log1p(-ndtr(-x)) beyond."""
    tail = sub(log(mul(0.5, _erfcx(mul(-math.sqrt(0.5), min(x, -1.0))))), mul(0.5, square(x)))
    middle = log(_ndtr(clipped(x, -1.0, 0.5)))
    high = log1p(neg(_ndtr(neg(max(x, 0.5)))))
    return select_n(lt(x, -1.0), select_n(gt(x, 0.5), middle, high), tail)


def _ndtri(p: Any) -> Any:
    centred = sub(p, 0.5)
    near = mul(centred, on_interval(square(centred), 0.0, 0.16, tables.NDTRI_NEAR))
    q = min(p, sub(1.0, p))
    r = sqrt(mul(-2.0, log(q)))
    far = on_interval(r, 2.0, 6.0, tables.NDTRI_FAR)
    farthest = on_interval(div(1.0, r), 1 / 40, 1 / 6, tables.NDTRI_FARTHEST)
    tail = mul(mul(sign(centred), r), select_n(gt(r, 6.0), far, farthest))
    return select_n(gt(abs(centred), 0.4), near, tail)


def _erfinv(x: Any) -> Any:
    """Refine erf_inv, whose error is 1e-10 near 1, by a step of Newton's method, for x > 1/2 by erfc."""
    size, y = abs(x), erf_inv(x)
    z = abs(y)
    excess = select_n(lt(size, 0.5), sub(sub(1.0, size), erfc(z)), sub(erf(z), size))
    step = mul(mul(excess, 0.5 * math.sqrt(math.pi)), exp(square(z)))
    return select_n(bitwise_and(lt(size, 1.0), gt(size, 1e-8)), y, mul(sign(x), sub(z, step)))


for _primitive, _function in (
    (f.erfcx_p, _erfcx), (f.dawsn_p, _dawsn), (f.ndtr_p, _ndtr), (f.log_ndtr_p, _log_ndtr), (f.ndtri_p, _ndtri),
    (f.erfinv_p, _erfinv),
):  # fmt: skip
    emit.rules[_primitive] = in_float64(composed(_function))
