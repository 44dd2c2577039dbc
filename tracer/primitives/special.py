"""Special functions: error function, gamma and its relatives, Bessel functions. All are elementwise and real.

Operands have one shape and one floating point dtype, or rank 0. Source: Abramowitz & Stegun 1964, chapters 6, 7, 9, 23.
"""

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.primitives import kinds
from tapeless.tracer.primitives.elementwise import div, exp, log, mul, neg, sub
from tapeless.tracer.primitives.kinds import same
from tapeless.tracer.primitives.operands import matched

erf_p = same("erf", kinds.FLOAT)
erfc_p = same("erfc", kinds.FLOAT)
erf_inv_p = same("erf_inv", kinds.FLOAT)
lgamma_p = same("lgamma", kinds.FLOAT)
digamma_p = same("digamma", kinds.FLOAT)
polygamma_p = same("polygamma", kinds.FLOAT)
zeta_p = same("zeta", kinds.FLOAT)
igamma_p = same("igamma", kinds.FLOAT)
igammac_p = same("igammac", kinds.FLOAT)
igamma_grad_a_p = same("igamma_grad_a", kinds.FLOAT)
bessel_i0e_p = same("bessel_i0e", kinds.FLOAT)
bessel_i1e_p = same("bessel_i1e", kinds.FLOAT)


def erf(x: ArrayLike) -> Array:
    """Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x. Source: A&S 7.1.1."""
    return erf_p.bind(x)[0]


def erfc(x: ArrayLike) -> Array:
    """1 - erf(x) without cancellation. Source: A&S 7.1.2."""
    return erfc_p.bind(x)[0]


def erf_inv(x: ArrayLike) -> Array:
    """The number whose error function is x; infinite at -1 and 1, nan beyond."""
    return erf_inv_p.bind(x)[0]


def lgamma(x: ArrayLike) -> Array:
    """log |gamma(x)|. Source: A&S 6.1."""
    return lgamma_p.bind(x)[0]


def digamma(x: ArrayLike) -> Array:
    """Derivative of log gamma. Source: A&S 6.3.1."""
    return digamma_p.bind(x)[0]


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Derivative of order m of digamma at x; m holds integers, in the dtype of x. Source: A&S 6.4.1."""
    return polygamma_p.bind(*matched(m, x))[0]


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Hurwitz zeta function: the sum of (q + k)^-x over k = 0, 1, ...; x > 1. Source: A&S 23.2.1, DLMF 25.11.1."""
    return zeta_p.bind(*matched(x, q))[0]


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized lower incomplete gamma function P(a, x); nan unless a > 0 and x >= 0. Source: A&S 6.5.1."""
    return igamma_p.bind(*matched(a, x))[0]


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized upper incomplete gamma function, 1 - igamma(a, x). Source: A&S 6.5.3."""
    return igammac_p.bind(*matched(a, x))[0]


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Derivative of igamma by its first operand."""
    return igamma_grad_a_p.bind(*matched(a, x))[0]


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """Derivative by a of a sample x of the gamma distribution of shape a, its quantile kept.

    dx/da = -(dP/da) / (dP/dx). Source: Figurnov, Mohamed & Mnih 2018, implicit reparameterization.
    """
    return neg(div(igamma_grad_a(a, x), igamma_density(a, x)))


def igamma_density(a: ArrayLike, x: ArrayLike) -> Array:
    """Derivative of igamma by its second operand: the density of the gamma distribution of shape a."""
    return exp(sub(sub(mul(sub(a, 1.0), log(x)), x), lgamma(a)))


def bessel_i0e(x: ArrayLike) -> Array:
    """exp(-|x|) times the modified Bessel function I of order 0. Source: A&S 9.6.10."""
    return bessel_i0e_p.bind(x)[0]


def bessel_i1e(x: ArrayLike) -> Array:
    """exp(-|x|) times the modified Bessel function I of order 1. Source: A&S 9.6.10."""
    return bessel_i1e_p.bind(x)[0]
