"""Special functions under the names of `jax.scipy.special`, for any real numbers: what `lax` has, promoted."""

import math
from typing import Any

from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.numpy.promotion import (
    apply2_inexact,
    apply_inexact,
    array_operand,
    as_array,
    broadcast,
    inexact,
    promoted_inexact_dtypes,
)
from tapeless.tracer.primitives import special as s
from tapeless.tracer.primitives.elementwise import logistic_p


def erf(x: ArrayLike) -> Array:
    """Error function, elementwise."""
    return apply_inexact("erf", s.erf_p, x)


def erfc(x: ArrayLike) -> Array:
    """1 less the error function, elementwise, without cancellation."""
    return apply_inexact("erfc", s.erfc_p, x)


def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function, elementwise; infinite at -1 and 1, nan beyond."""
    return apply_inexact("erfinv", s.erf_inv_p, x)


def gammaln(x: ArrayLike) -> Array:
    """The logarithm of |gamma(x)|, elementwise."""
    return apply_inexact("gammaln", s.lgamma_p, x)


def digamma(x: ArrayLike) -> Array:
    """The derivative of log gamma, elementwise."""
    return apply_inexact("digamma", s.digamma_p, x)


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of digamma, elementwise."""
    return apply2_inexact("polygamma", s.polygamma_p, n, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Hurwitz's zeta function, the sum of (k + q)^-x over k, elementwise."""
    return apply2_inexact("zeta", s.zeta_p, x, q)


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function, elementwise."""
    return apply2_inexact("gammainc", s.igamma_p, a, x)


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function, elementwise."""
    return apply2_inexact("gammaincc", s.igammac_p, a, x)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function, elementwise."""
    promoted = promoted_inexact_dtypes("betainc", a, b, x)
    return s.betainc_p.bind(*map(as_array, broadcast("betainc", *promoted)))[0]


def i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0 times exp(-|x|), elementwise."""
    return apply_inexact("i0e", s.bessel_i0e_p, x)


def i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1 times exp(-|x|), elementwise."""
    return apply_inexact("i1e", s.bessel_i1e_p, x)


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0, elementwise. Source: DLMF 10.25.2."""
    return apply_inexact("i0", s.bessel_i0_p, x)


def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1, elementwise. Source: DLMF 10.25.2."""
    return apply_inexact("i1", s.bessel_i1_p, x)


def ndtr(x: ArrayLike) -> Array:
    """The probability that a standard normal number is at most x, elementwise: erfc(-x / sqrt(2)) / 2."""
    return _ndtr(inexact("ndtr", array_operand("ndtr", x)))


@compound
def _ndtr(x: Any) -> Array:
    return 0.5 * s.erfc(-x * math.sqrt(0.5))


def expit(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), elementwise."""
    return apply_inexact("expit", logistic_p, x)


def logit(x: ArrayLike) -> Array:
    """The inverse of expit, log(x / (1 - x)), elementwise."""
    x = inexact("logit", array_operand("logit", x))
    return tnp.log(x) - tnp.log1p(-x)
