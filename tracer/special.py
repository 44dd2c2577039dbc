"""Special functions under the names of `jax.scipy.special`, for any real numbers: what `lax` has, promoted."""

import math
import operator
from fractions import Fraction

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.promotion import (
    apply2_inexact,
    apply_inexact,
    array_operand,
    as_array,
    broadcast,
    inexact,
    promoted_inexact_dtypes,
)
from tapeless.tracer.primitives import error_functions as f
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


def erfcx(x: ArrayLike) -> Array:
    """exp(x²) erfc(x), elementwise, for a large x too. Source: DLMF 7.2.2."""
    return apply_inexact("erfcx", f.erfcx_p, x)


def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral, exp(-x²) times the integral of exp(t²) from 0 to x, elementwise. Source: DLMF 7.2.5."""
    return apply_inexact("dawsn", f.dawsn_p, x)


def ndtr(x: ArrayLike) -> Array:
    """The probability that a standard normal number is at most x, elementwise."""
    return apply_inexact("ndtr", f.ndtr_p, x)


def log_ndtr(x: ArrayLike) -> Array:
    """The logarithm of `ndtr`, elementwise; it and its derivatives keep their digits far in the tail."""
    return apply_inexact("log_ndtr", f.log_ndtr_p, x)


def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`, elementwise; infinite at 0 and 1, nan beyond."""
    return apply_inexact("ndtri", f.ndtri_p, p)


def bernoulli(n: int) -> Array:
    """Bernoulli's numbers B_0 to B_n, B_1 = -1/2, each rounded once.

    Raises: TypeError if n is no integer, ValueError if it is negative.
    Source: DLMF 24.5.3.
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"bernoulli: n must not be negative, but is {n}.")
    found = [Fraction(1)]
    for m in range(1, n + 1):
        even = m == 1 or m % 2 == 0
        terms = [math.comb(m + 1, k) * b for k, b in enumerate(found) if b and even]
        found.append(-sum(terms, Fraction(0)) / (m + 1))
    return tnp.asarray([_nearest(b) for b in found], dtype=dtypes.default_dtype("f"))


def _nearest(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def expit(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), elementwise."""
    return apply_inexact("expit", logistic_p, x)


def logit(x: ArrayLike) -> Array:
    """The inverse of expit, log(x / (1 - x)), elementwise."""
    x = inexact("logit", array_operand("logit", x))
    return tnp.log(x) - tnp.log1p(-x)
