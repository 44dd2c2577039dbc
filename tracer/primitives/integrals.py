"""Named integrals: exponential, sine and cosine integrals, Fresnel's, the dilogarithm.

All are elementwise and real, of one floating point operand. Source: DLMF chapters 6, 7 and 25.
"""

import math
from typing import Any, Final

import numpy as np

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import kinds
from tapeless.tracer.primitives.bits import bitwise_and
from tapeless.tracer.primitives.elementwise import (
    abs,
    add,
    convert_element_type,
    div,
    floor,
    gt,
    log,
    lt,
    mul,
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
