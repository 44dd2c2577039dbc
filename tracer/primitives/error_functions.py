"""Relatives of the error function that keep their digits in its tails: erfcx, Dawson's integral, normal probabilities.

All are elementwise and real, of one floating point operand. Derivatives that would cancel in the tails are series of
their own. Source: DLMF chapter 7.
"""

import math
from typing import Any, Final

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import chebyshev_tables as tables
from tapeless.tracer.primitives import kinds
from tapeless.tracer.primitives.chebyshev import chebyshev, on_interval
from tapeless.tracer.primitives.elementwise import abs, add, div, exp, gt, lt, mul, neg, select_n, square, sub
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.types import aval_of


def _floating(name: str) -> Primitive:
    return Primitive(name, kinds.same(name, kinds.FLOAT))


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
    """Compute the inverse of erf, to the last digits that `erf_inv`, which random numbers are made of, lacks near 1.

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
