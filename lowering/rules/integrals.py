"""Lowering of integrals of elementary functions, by Chebyshev series on intervals.

All is computed in float64: in float32 results are rounded once. Error in float64: 10 ulp; for sine, cosine and Fresnel
integrals, which oscillate about their limits, 10 ulp of the limit, and for large arguments the rounding of these.
"""

import math
from collections.abc import Callable
from typing import Any

from tapeless.lowering import emit
from tapeless.lowering.emit import compose_rule, in_float64
from tapeless.tracer.primitives import chebyshev as tables
from tapeless.tracer.primitives import integrals as i
from tapeless.tracer.primitives.bits import bitwise_and
from tapeless.tracer.primitives.chebyshev import chebyshev, clip_to_interval, on_interval
from tapeless.tracer.primitives.elementwise import (
    abs,
    add,
    cos,
    div,
    eq,
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
    sin,
    sqrt,
    square,
    sub,
)
from tapeless.tracer.primitives.special import erf, erf_inv, erfc

# ---- exponential integrals -----------------------------------------------------------------------------------

_ZERO_OF_EI = 0.3725074107813666
_AT_ZERO = -1.3140183414386028e-17 * math.exp(_ZERO_OF_EI) / _ZERO_OF_EI  # Ei there: _ZERO_OF_EI is 1.3e-17 off


def _exp1(x: Any) -> Any:
    near = sub(on_interval(x, 0.0, 1.0, tables.E1_NEAR), log(x))
    large = max(x, 1.0)
    far = mul(div(exp(neg(large)), large), chebyshev(sub(div(2.0, large), 1.0), tables.E1_FAR))
    return select_n(gt(x, 1.0), near, far)


def _expi(x: Any) -> Any:
    size = abs(x)
    out = select_n(lt(x, 3.0), _expi_far(max(x, 3.0)), _expi_near(min(max(x, 0.0), 3.0)))
    return select_n(lt(x, 0.0), out, neg(_exp1(size)))


def _expi_near(x: Any) -> Any:
    """Compute Ei on [0, 3], by the distance from its zero."""
    distance = sub(x, _ZERO_OF_EI)
    ratio = div(distance, _ZERO_OF_EI)
    logarithm = select_n(lt(abs(ratio), 0.25), log(div(x, _ZERO_OF_EI)), log1p(ratio))
    return add(logarithm, add(mul(distance, on_interval(x, 0.0, 3.0, tables.EI_NEAR)), _AT_ZERO))


def _expi_far(x: Any) -> Any:
    """Compute Ei from 3 on, with two factors exp(x/2): exp(x) may overflow before the quotient does."""
    series = chebyshev(sub(div(96.0, max(x, 48.0)), 1.0), tables.EI_FAR)
    for low, table in (
        (24.0, tables.EI_24_TO_48),
        (12.0, tables.EI_12_TO_24),
        (6.0, tables.EI_6_TO_12),
        (3.0, tables.EI_3_TO_6),
    ):
        series = select_n(lt(x, 2.0 * low), series, on_interval(x, low, 2.0 * low, table))
    root = exp(mul(0.5, x))
    return select_n(eq(x, math.inf), mul(mul(div(root, x), series), root), x)


# ---- integrals that oscillate --------------------------------------------------------------------------------


def _sine_integral(x: Any) -> Any:
    size = abs(x)
    near = mul(x, on_interval(square(min(size, 4.0)), 0.0, 16.0, tables.SI_NEAR))
    f, g, angle = _sici_parts(size)
    far = sub(0.5 * math.pi, add(mul(f, cos(angle)), mul(g, sin(angle))))
    return select_n(gt(size, 4.0), near, mul(sign(x), far))


def _cosine_integral(x: Any) -> Any:
    size = abs(x)
    series = on_interval(square(min(size, 4.0)), 0.0, 16.0, tables.CI_NEAR)
    near = add(add(log(size), _EULER), series)
    f, g, angle = _sici_parts(size)
    out = select_n(gt(size, 4.0), near, sub(mul(f, sin(angle)), mul(g, cos(angle))))
    return select_n(eq(x, -math.inf), out, math.nan)


_EULER = 0.57721566490153286


def _sici_parts(x: Any) -> tuple[Any, Any, Any]:
    """Compute f and g of DLMF 6.2.17 and 6.2.18, for numbers from 4 on, and the angle, which is 0 for infinity."""
    inverse = div(1.0, max(x, 4.0))
    t = sub(mul(32.0, square(inverse)), 1.0)
    f, g = mul(chebyshev(t, tables.SICI_F), inverse), mul(chebyshev(t, tables.SICI_G), square(inverse))
    return f, g, select_n(eq(x, math.inf), x, 0.0)


def _fresnel(near_table: Any, power: int, combine: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function x^power (series in x^4) up to 1.6, 1/2 + combine(f, g, angle) beyond. DLMF 7.5.3, 7.5.4."""

    def function(x: Any) -> Any:
        size = abs(x)
        inside = min(size, 1.6)
        series = on_interval(square(square(inside)), 0.0, 1.6**4, near_table)
        near = mul(series, x if power == 1 else mul(x, square(inside)))
        inverse = div(1.0, max(size, 1.6))
        t = sub(mul(2 * 1.6**4, square(square(inverse))), 1.0)
        f = mul(mul(chebyshev(t, tables.FRESNEL_F), inverse), 1 / math.pi)
        g = mul(mul(mul(chebyshev(t, tables.FRESNEL_G), inverse), square(inverse)), 1 / math.pi**2)
        angle = i.quarter_turns(select_n(eq(size, math.inf), size, 0.0))
        far = mul(sign(x), add(0.5, combine(f, g, angle)))
        return select_n(gt(size, 1.6), near, far)

    return function


_fresnel_sine = _fresnel(tables.FRESNEL_S, 3, lambda f, g, a: neg(add(mul(f, cos(a)), mul(g, sin(a)))))
_fresnel_cosine = _fresnel(tables.FRESNEL_C, 1, lambda f, g, a: sub(mul(f, sin(a)), mul(g, cos(a))))

# ---- the dilogarithm -----------------------------------------------------------------------------------------


def _spence(x: Any) -> Any:
    """Compute the dilogarithm; reflect x outside [1/2, 3/2]: DLMF 25.12.4, to 1/x, and 25.12.6, to 1 - x."""
    large = gt(x, 1.5)
    w = select_n(large, x, div(1.0, max(x, 1.5)))
    small = lt(w, 0.5)
    v = select_n(small, w, sub(1.0, w))
    inside = mul(sub(1.0, v), on_interval(v, 0.5, 1.5, tables.SPENCE))
    complement = select_n(lt(w, 0.25), log(sub(1.0, w)), log1p(neg(w)))
    product = select_n(eq(w, 0.0), mul(log(w), complement), 0.0)
    inside = select_n(small, inside, sub(sub(math.pi**2 / 6, product), inside))
    return select_n(large, inside, sub(mul(-0.5, square(log(x))), inside))


for _primitive, _function in (
    (i.exp1_p, _exp1), (i.expi_p, _expi), (i.sine_integral_p, _sine_integral),
    (i.cosine_integral_p, _cosine_integral), (i.fresnel_sine_p, _fresnel_sine),
    (i.fresnel_cosine_p, _fresnel_cosine), (i.spence_p, _spence),
):  # fmt: skip
    emit.rules[_primitive] = in_float64(compose_rule(_function))

# ---- relatives of the error function -------------------------------------------------------------------------
# Error in float64: 5 ulp, and where a function has the factor exp(x^2) as many ulp more as x^2 is large.


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
    far = mul(sign(x), mul(add(1.0, i.dawsn_rest(large)), div(0.5, large)))
    return select_n(gt(size, 2.5), near, far)


def _ndtr(x: Any) -> Any:
    return mul(0.5, erfc(mul(-math.sqrt(0.5), x)))


def _log_ndtr(x: Any) -> Any:
    """Compute log(ndtr(x)) by erfcx below -1, by ndtr(x) up to 1/2, and by log1p(-ndtr(-x)) beyond."""
    tail = sub(log(mul(0.5, _erfcx(mul(-math.sqrt(0.5), min(x, -1.0))))), mul(0.5, square(x)))
    middle = log(_ndtr(clip_to_interval(x, -1.0, 0.5)))
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
    (i.erfcx_p, _erfcx), (i.dawsn_p, _dawsn), (i.ndtr_p, _ndtr), (i.log_ndtr_p, _log_ndtr), (i.ndtri_p, _ndtri),
    (i.erfinv_p, _erfinv),
):  # fmt: skip
    emit.rules[_primitive] = in_float64(compose_rule(_function))
