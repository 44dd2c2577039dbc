"""Named integrals: exponential, sine, cosine and Fresnel integrals, the dilogarithm, relatives of the error function.

All are elementwise and real, of one floating point operand. Source: DLMF chapters 6, 7 and 25.
"""

import math
from typing import Any, Final

import numpy as np

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import chebyshev as tables
from tapeless.tracer.primitives import kinds
from tapeless.tracer.primitives.bits import bitwise_and
from tapeless.tracer.primitives.chebyshev import chebyshev, on_interval
from tapeless.tracer.primitives.elementwise import (
    abs,
    add,
    convert_element_type,
    div,
    exp,
    floor,
    gt,
    log,
    lt,
    mul,
    neg,
    select_n,
    sin,
    square,
    sub,
)
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.types import aval_of


def _floating(name: str) -> Primitive:
    return Primitive(name, kinds.same(name, kinds.FLOAT))


exp1_p: Final = _floating("exp1")
expi_p: Final = _floating("expi")
sine_integral_p: Final = _floating("sine_integral")
cosine_integral_p: Final = _floating("cosine_integral")
fresnel_sine_p: Final = _floating("fresnel_sine")
fresnel_cosine_p: Final = _floating("fresnel_cosine")
spence_p: Final = _floating("spence")


def exp1(x: ArrayLike) -> Array:
    """Integrate exp(-t) / t from x to infinity; nan for a negative x. Source: DLMF 6.2.1."""
    return exp1_p.bind(x)[0]


def expi(x: ArrayLike) -> Array:
    """Integrate exp(t) / t from -infinity to x, the principal value. Source: DLMF 6.2.5."""
    return expi_p.bind(x)[0]


def sine_integral(x: ArrayLike) -> Array:
    """Integrate sin(t) / t from 0 to x. Source: DLMF 6.2.9."""
    return sine_integral_p.bind(x)[0]


def cosine_integral(x: ArrayLike) -> Array:
    """Integrate -cos(t) / t from |x| to infinity. Source: DLMF 6.2.11."""
    return cosine_integral_p.bind(x)[0]


def fresnel_sine(x: ArrayLike) -> Array:
    """Integrate sin(pi t^2 / 2) from 0 to x. Source: DLMF 7.2.8."""
    return fresnel_sine_p.bind(x)[0]


def fresnel_cosine(x: ArrayLike) -> Array:
    """Integrate cos(pi t^2 / 2) from 0 to x. Source: DLMF 7.2.7."""
    return fresnel_cosine_p.bind(x)[0]


def spence(x: ArrayLike) -> Array:
    """Integrate log(t) / (1 - t) from 1 to x: the dilogarithm of 1 - x. Source: DLMF 25.12.2."""
    return spence_p.bind(x)[0]


# ---- derivatives ---------------------------------------------------------------------------------------------


def sine_quotient(x: Any) -> Any:
    """Compute sin(x) / x, near 0 by its series."""
    near = lt(abs(x), 0.5)
    z = square(select_n(near, constant(0, aval_of(x)), x))
    series: Any = add(mul(z, -1 / (14 * 15)), 1.0)
    for k in range(12, 0, -2):
        series = add(mul(mul(z, -1 / (k * (k + 1))), series), 1.0)
    far = select_n(near, x, constant(1, aval_of(x)))
    return select_n(near, div(sin(far), far), series)


def quarter_turns(x: Any) -> Any:
    """Reduce pi x^2 / 2 modulo 2 pi, in float64, in which the square of a narrower number is exact."""
    z = square(convert_element_type(x, np.float64))
    return mul(0.5 * math.pi, sub(z, mul(4.0, floor(mul(0.25, z)))))


def spence_slope(x: Any) -> Any:
    """Compute the derivative of `spence`, log(x) / (1 - x), near 1 by the logarithm's series. A&S 4.1.27."""
    near = bitwise_and(gt(x, 0.5), lt(x, 2.0))
    one = constant(1, aval_of(x))
    inside = select_n(near, one, x)
    w = square(div(sub(inside, 1.0), add(inside, 1.0)))
    series: Any = add(mul(w, 1 / 35), 1 / 33)
    for k in range(31, 0, -2):
        series = add(mul(w, series), 1 / k)
    outside = select_n(near, x, constant(3, aval_of(x)))
    return select_n(near, div(log(outside), sub(1.0, outside)), mul(series, div(-2.0, add(inside, 1.0))))


# ---- relatives of the error function -------------------------------------------------------------------------
# erfcx, Dawson's integral and normal probabilities keep their digits in the tails. Derivatives that would cancel there
# are series of their own.


erfcx_p: Final = _floating("erfcx")
dawsn_p: Final = _floating("dawsn")
ndtr_p: Final = _floating("ndtr")
log_ndtr_p: Final = _floating("log_ndtr")
ndtri_p: Final = _floating("ndtri")
erfinv_p: Final = _floating("erfinv")


def erfcx(x: ArrayLike) -> Array:
    """Compute exp(x^2) erfc(x) without underflow. Source: DLMF 7.2.2, 7.12.1."""
    return erfcx_p.bind(x)[0]


def dawsn(x: ArrayLike) -> Array:
    """Compute Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x. Source: DLMF 7.2.5."""
    return dawsn_p.bind(x)[0]


def ndtr(x: ArrayLike) -> Array:
    """Compute the probability that a standard normal number is at most x. Source: DLMF 7.2.2."""
    return ndtr_p.bind(x)[0]


def log_ndtr(x: ArrayLike) -> Array:
    """Compute the logarithm of `ndtr`, far in the tail too."""
    return log_ndtr_p.bind(x)[0]


def ndtri(p: ArrayLike) -> Array:
    """Compute the inverse of `ndtr`; nan where p is no probability. Source: DLMF 7.17."""
    return ndtri_p.bind(p)[0]


def erfinv(x: ArrayLike) -> Array:
    """Compute the inverse of erf to the last digits; `erf_inv`, of which random numbers are made, lacks them near 1.

    Source: DLMF 7.17.
    """
    return erfinv_p.bind(x)[0]


# ---- derivatives ---------------------------------------------------------------------------------------------


def erfcx_slope(x: Any) -> Any:
    """Compute the derivative of erfcx, 2 x erfcx(x) - 2/sqrt(pi); for a positive x, where that cancels, by a series."""
    shifted = add(select_n(lt(x, 0.0), x, constant(0, aval_of(x))), 3.75)
    rest = div(div(chebyshev(sub(1.0, div(7.5, shifted)), tables.ERFCX_REST), shifted), shifted)
    negative = select_n(lt(x, 0.0), constant(0, aval_of(x)), x)
    slope = 2.0 / math.sqrt(math.pi)
    return select_n(lt(x, 0.0), mul(-slope, rest), sub(mul(mul(2.0, negative), erfcx(negative)), slope))


def dawsn_slope(x: Any) -> Any:
    """Compute the derivative of Dawson's integral, 1 - 2 x dawsn(x); beyond 2.5, where that cancels, by a series."""
    far = gt(abs(x), 2.5)
    large = select_n(far, constant(2.5, aval_of(x)), x)
    small = select_n(far, x, constant(0, aval_of(x)))
    return select_n(far, sub(1.0, mul(mul(2.0, small), dawsn(small))), neg(dawsn_rest(abs(large))))


def dawsn_rest(x: Any) -> Any:
    """Compute 2 x dawsn(x) - 1 for x >= 2.5, by Chebyshev series."""
    near = on_interval(x, 2.5, 5.0, tables.DAWSN_MIDDLE)
    inverse = div(1.0, select_n(gt(x, 5.0), constant(5, aval_of(x)), x))
    far = chebyshev(sub(mul(50.0, square(inverse)), 1.0), tables.DAWSN_FAR)
    return mul(mul(0.5, square(div(1.0, x))), select_n(gt(x, 5.0), near, far))


def normal_density(x: Any) -> Any:
    """Compute the density of the standard normal distribution at x."""
    return mul(1.0 / math.sqrt(2.0 * math.pi), exp(mul(-0.5, square(x))))


def inverse_mills_ratio(x: Any) -> Any:
    """Compute normal_density(x) / ndtr(x), the derivative of `log_ndtr`; by erfcx if x < 0, where both may be small."""
    zero = constant(0, aval_of(x))
    low, high = select_n(lt(x, 0.0), zero, x), select_n(lt(x, 0.0), x, zero)
    tail = div(math.sqrt(2.0 / math.pi), erfcx(mul(-math.sqrt(0.5), low)))
    return select_n(lt(x, 0.0), div(normal_density(high), ndtr(high)), tail)
