"""Special functions: error function, gamma and its relatives, Bessel functions. All are elementwise and real.

Operands have one shape and one floating point dtype, or rank 0. Source: Abramowitz & Stegun 1964, chapters 6, 7, 9, 23.
"""

import math
from typing import Any, Final

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import kinds
from tapeless.tracer.primitives.elementwise import (
    abs,
    add,
    div,
    eq,
    exp,
    log,
    lt,
    max,
    mul,
    neg,
    select_n,
    square,
    sub,
)
from tapeless.tracer.primitives.gamma_functions import kl_div
from tapeless.tracer.primitives.operands import align_operands, constant
from tapeless.tracer.types import aval_of


def _floating(name: str) -> Primitive:
    return Primitive(name, kinds.same(name, kinds.FLOAT))


erf_p: Final = _floating("erf")
erfc_p: Final = _floating("erfc")
erf_inv_p: Final = _floating("erf_inv")
lgamma_p: Final = _floating("lgamma")
digamma_p: Final = _floating("digamma")
polygamma_p: Final = _floating("polygamma")
zeta_p: Final = _floating("zeta")
igamma_p: Final = _floating("igamma")
igammac_p: Final = _floating("igammac")
igamma_grad_a_p: Final = _floating("igamma_grad_a")
random_gamma_grad_p: Final = _floating("random_gamma_grad")
betainc_p: Final = _floating("betainc")
betaincc_p: Final = _floating("betaincc")
bessel_i0_p: Final = _floating("bessel_i0")
bessel_i1_p: Final = _floating("bessel_i1")
bessel_i0e_p: Final = _floating("bessel_i0e")
bessel_i1e_p: Final = _floating("bessel_i1e")


def erf(x: ArrayLike) -> Array:
    """Compute the error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x. Source: A&S 7.1.1."""
    return erf_p.bind(x)[0]


def erfc(x: ArrayLike) -> Array:
    """Compute 1 - erf(x) without cancellation. Source: A&S 7.1.2."""
    return erfc_p.bind(x)[0]


def erf_inv(x: ArrayLike) -> Array:
    """Compute the inverse of the error function; infinite at -1 and 1, nan beyond."""
    return erf_inv_p.bind(x)[0]


def lgamma(x: ArrayLike) -> Array:
    """Compute log |gamma(x)|. Source: A&S 6.1."""
    return lgamma_p.bind(x)[0]


def digamma(x: ArrayLike) -> Array:
    """Compute the derivative of log gamma. Source: A&S 6.3.1."""
    return digamma_p.bind(x)[0]


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Compute the derivative of order m of digamma at x; m holds integers, in the dtype of x. Source: A&S 6.4.1."""
    return polygamma_p.bind(*align_operands(m, x))[0]


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Compute the Hurwitz zeta function: the sum over k >= 0 of (q + k)^-x; x > 1. Source: A&S 23.2.1, DLMF 25.11.1."""
    return zeta_p.bind(*align_operands(x, q))[0]


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized lower incomplete gamma function P(a, x); nan if a < 0 or x < 0 or a = x = 0.

    Source: A&S 6.5.1.
    """
    return igamma_p.bind(*align_operands(a, x))[0]


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized upper incomplete gamma function, 1 - igamma(a, x). Source: A&S 6.5.3."""
    return igammac_p.bind(*align_operands(a, x))[0]


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the derivative of igamma by its first operand; nan unless a > 0 and x >= 0."""
    return igamma_grad_a_p.bind(*align_operands(a, x))[0]


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the derivative with respect to a of a sample x of the gamma distribution of shape a, at its quantile.

    dx/da = -(dP/da) / (dP/dx). Source: Figurnov, Mohamed & Mnih 2018, implicit reparameterization.
    """
    return random_gamma_grad_p.bind(*align_operands(a, x))[0]


def igamma_density(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the derivative of igamma by x: the density of the gamma distribution of shape a, with its limits."""
    one, at_zero, at_infinity = constant(1, aval_of(x)), eq(x, 0.0), eq(x, math.inf)
    inner = select_n(at_infinity, select_n(at_zero, x, one), one)
    less, rest = _divisor(inner)
    density = mul(gamma_weight(a, inner, less), div(a, rest))
    return select_n(at_zero, select_n(at_infinity, density, constant(0, aval_of(x))), _at_end(a, one))


def _divisor(x: ArrayLike) -> tuple[Array, Array]:
    """Write x as exp(u) v: with v = 1 where x is small, and x^a may be 0 though x^(a - 1) is not; else with u = 0."""
    small, one = lt(x, 1e-4), constant(1, aval_of(x))
    return log(select_n(small, one, x)), select_n(small, x, one)


def gamma_weight(a: ArrayLike, x: ArrayLike, less: ArrayLike = 0.0) -> Array:
    """Compute x^a exp(-x) / gamma(a + 1); for large a in saddle-point form, in which a log(x) and x do not cancel.

    less: the logarithm of what it is divided by.
    Source: Loader 2000; A&S 6.1.41.
    """
    number = aval_of(a)
    small = sub(sub(mul(a, log(x)), x), lgamma(add(a, 1.0)))
    large_a = select_n(lt(a, 16.0), a, constant(16, number))
    stirling = add(stirling_remainder(large_a), mul(0.5, log(mul(2 * math.pi, large_a))))
    large = neg(add(kl_div(large_a, x), stirling))
    return exp(sub(select_n(lt(a, 16.0), large, small), less))


def stirling_remainder(a: ArrayLike) -> Array:
    """Compute log gamma(a + 1) - a log(a) + a - log(2 pi a) / 2 for a >= 16, by Stirling's series."""
    inverse = div(1.0, a)
    square = mul(inverse, inverse)
    total = mul(1 / 1188, square)
    for c in (-1 / 1680, 1 / 1260, -1 / 360):
        total = mul(add(total, c), square)
    return mul(add(total, 1 / 12), inverse)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized incomplete beta function I_x(a, b); nan unless a, b > 0 and 0 <= x <= 1.

    Where one of a and b is 0 or infinite, it is its limit; where these contradict one another, nan.
    Source: A&S 26.5.1.
    """
    return betainc_p.bind(*_three(a, b, x))[0]


def betaincc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute 1 - betainc(a, b, x) without cancellation, which betainc(b, a, 1 - x) has if x is small."""
    return betaincc_p.bind(*_three(a, b, x))[0]


def _three(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> tuple[ArrayLike, ...]:
    a, b = align_operands(a, b)
    a, x = align_operands(a, x)
    return a, *align_operands(b, x)


def beta_weight(a: ArrayLike, b: ArrayLike, x: ArrayLike, y: ArrayLike, less: ArrayLike = 0.0) -> Array:
    """Compute x^a y^b / (a B(a, b)), 0 < x < 1, y = 1 - x, by `gamma_weight`, so that large a and b do not cancel.

    less: the logarithm of what it is divided by.
    """
    n = add(a, b)
    scale = max(n, 1.0)  # its powers cancel; n x may be too small for a number where x is not
    parts = mul(gamma_weight(a, mul(scale, x), less), gamma_weight(b, mul(scale, y)))
    return mul(div(parts, gamma_weight(n, scale)), div(b, n))


def betainc_density(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute the derivative of betainc by its last operand: the density of the beta distribution, with its limits."""
    at_zero, at_one = eq(x, 0.0), eq(x, 1.0)
    inner = select_n(at_one, select_n(at_zero, x, constant(0.5, aval_of(x))), constant(0.5, aval_of(x)))
    less, rest = _divisor(inner)
    density = div(mul(beta_weight(a, b, inner, sub(1.0, inner), less), a), mul(rest, sub(1.0, inner)))
    return select_n(at_one, select_n(at_zero, density, _at_end(a, b)), _at_end(b, a))


def _at_end(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the density of the beta distribution at 0; for b = 1, of the gamma distribution of shape a."""
    number = aval_of(a)
    return select_n(lt(a, 1.0), select_n(eq(a, 1.0), constant(0, number), b), constant(math.inf, number))


def bessel_i0(x: ArrayLike) -> Array:
    """Compute the modified Bessel function I of order 0. Source: A&S 9.6.10."""
    return bessel_i0_p.bind(x)[0]


def bessel_i1(x: ArrayLike) -> Array:
    """Compute the modified Bessel function I of order 1. Source: A&S 9.6.10."""
    return bessel_i1_p.bind(x)[0]


def bessel_i1_slope(x: ArrayLike) -> Array:
    """Compute the derivative of `bessel_i1`: up to 1 by a power series, beyond as I0 - I1/x. A&S 9.6.10, 9.6.26."""
    number = aval_of(x)
    near = lt(abs(x), 1.0)
    z = mul(square(select_n(near, constant(0, number), x)), 0.25)
    series: Any = constant(1, number)
    for k in range(10, 0, -1):  # terms (2k + 1) z^k / (2 k! (k + 1)!) by their quotients
        series = add(mul(mul(z, (2 * k + 1) / ((2 * k - 1) * k * (k + 1))), series), 1.0)
    far = select_n(near, x, constant(1, number))
    return select_n(near, sub(bessel_i0(far), div(bessel_i1(far), far)), mul(series, 0.5))


def bessel_i0e(x: ArrayLike) -> Array:
    """Compute exp(-|x|) times the modified Bessel function I of order 0. Source: A&S 9.6.10."""
    return bessel_i0e_p.bind(x)[0]


def bessel_i1e(x: ArrayLike) -> Array:
    """Compute exp(-|x|) times the modified Bessel function I of order 1. Source: A&S 9.6.10."""
    return bessel_i1e_p.bind(x)[0]
