"""Special functions, as in `jax.scipy.special`, for real numbers; `expit` and `logit` take complex ones, too.

They are functions of `lax` with promoted operands: integers become floating point, and shapes broadcast.
"""

import math
import operator
from fractions import Fraction

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import (
    apply2_inexact,
    apply_inexact,
    array_operand,
    as_array,
    broadcast,
    inexact,
    promoted_inexact_dtypes,
)
from tapeless.tracer.primitives import integrals as i
from tapeless.tracer.primitives import special as s
from tapeless.tracer.primitives.elementwise import logistic_p


def erf(x: ArrayLike) -> Array:
    """Compute the error function, elementwise. Raises: TypeError for complex numbers."""
    return apply_inexact("erf", s.erf_p, x)


def erfc(x: ArrayLike) -> Array:
    """Compute the complementary error function 1 - erf(x), elementwise, without cancellation.

    Raises: TypeError for complex numbers.
    """
    return apply_inexact("erfc", s.erfc_p, x)


def erfinv(x: ArrayLike) -> Array:
    """Compute the inverse of the error function, elementwise; infinite at -1 and 1, nan beyond.

    Raises: TypeError for complex numbers.
    """
    return apply_inexact("erfinv", i.erfinv_p, x)


def gammaln(x: ArrayLike) -> Array:
    """Compute the logarithm of |gamma(x)|, elementwise. Raises: TypeError for complex numbers."""
    return apply_inexact("gammaln", s.lgamma_p, x)


def digamma(x: ArrayLike) -> Array:
    """Compute the digamma function, the derivative of log gamma, elementwise. Raises: TypeError for complex numbers."""
    return apply_inexact("digamma", s.digamma_p, x)


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute the polygamma function, the n-th derivative of digamma, elementwise.

    Raises: TypeError for complex numbers.
    """
    return apply2_inexact("polygamma", s.polygamma_p, n, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Compute the Hurwitz zeta function, the sum of (k + q)^-x over k >= 0, elementwise.

    Raises: TypeError for complex numbers.
    """
    return apply2_inexact("zeta", s.zeta_p, x, q)


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized lower incomplete gamma function, elementwise. Raises: TypeError for complex numbers."""
    return apply2_inexact("gammainc", s.igamma_p, a, x)


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized upper incomplete gamma function, elementwise. Raises: TypeError for complex numbers."""
    return apply2_inexact("gammaincc", s.igammac_p, a, x)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized incomplete beta function, elementwise.

    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    promoted = promoted_inexact_dtypes("betainc", a, b, x)
    return s.betainc_p.bind(*map(as_array, broadcast("betainc", *promoted)))[0]


def i0e(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind, order 0, times exp(-|x|), elementwise.

    Raises: TypeError for complex numbers.
    """
    return apply_inexact("i0e", s.bessel_i0e_p, x)


def i1e(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind, order 1, times exp(-|x|), elementwise.

    Raises: TypeError for complex numbers.
    """
    return apply_inexact("i1e", s.bessel_i1e_p, x)


def i0(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind, order 0, elementwise.

    Raises: TypeError for complex numbers. Source: DLMF 10.25.2.
    """
    return apply_inexact("i0", s.bessel_i0_p, x)


def i1(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind, order 1, elementwise.

    Raises: TypeError for complex numbers. Source: DLMF 10.25.2.
    """
    return apply_inexact("i1", s.bessel_i1_p, x)


def erfcx(x: ArrayLike) -> Array:
    """Compute the scaled complementary error function exp(x²) erfc(x), elementwise, without underflow for large x.

    Raises: TypeError for complex numbers. Source: DLMF 7.2.2.
    """
    return apply_inexact("erfcx", i.erfcx_p, x)


def dawsn(x: ArrayLike) -> Array:
    """Compute Dawson's integral, exp(-x²) ∫ exp(t²) from 0 to x, elementwise.

    Raises: TypeError for complex numbers. Source: DLMF 7.2.5.
    """
    return apply_inexact("dawsn", i.dawsn_p, x)


def ndtr(x: ArrayLike) -> Array:
    """Compute the standard normal distribution function, elementwise. Raises: TypeError for complex numbers."""
    return apply_inexact("ndtr", i.ndtr_p, x)


def log_ndtr(x: ArrayLike) -> Array:
    """Compute the logarithm of `ndtr`, elementwise; it and its derivatives are precise far in the tail.

    Raises: TypeError for complex numbers.
    """
    return apply_inexact("log_ndtr", i.log_ndtr_p, x)


def ndtri(p: ArrayLike) -> Array:
    """Compute the standard normal quantile, the inverse of `ndtr`, elementwise; infinite at 0 and 1, nan beyond.

    Raises: TypeError for complex numbers.
    """
    return apply_inexact("ndtri", i.ndtri_p, p)


def bernoulli(n: int) -> Array:
    """Compute the Bernoulli numbers B_0 to B_n, with B_1 = -1/2, each correctly rounded.

    Returns: [n + 1], of the default float.
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
    """Compute the logistic sigmoid 1 / (1 + exp(-x)), elementwise."""
    return apply_inexact("expit", logistic_p, x)


@one_program
def logit(x: ArrayLike) -> Array:
    """Compute the inverse of `expit`, log(x / (1 - x)), elementwise; infinite at 0 and 1."""
    x = inexact("logit", array_operand("logit", x))
    return tnp.log(x) - tnp.log1p(-x)
