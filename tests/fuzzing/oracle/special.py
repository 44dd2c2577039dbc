"""Special functions, SciPy's where it has them. What it lacks, and complex steps, by series and continued fractions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from tests.fuzzing.oracle.elementwise import holomorphic, real_only, sloped, with_tangent
from tests.fuzzing.oracle.interpreter import NotHolomorphicError, Run, is_stepped, meaning, meanings
from tests.fuzzing.oracle.values import Values

meanings["erf"] = holomorphic(sp.erf)
meanings["erfc"] = holomorphic(sp.erfc, lambda z: 1 - sp.erf(z))
meanings["erf_inv"] = sloped(sp.erfinv, lambda x: np.sqrt(np.pi) / 2 * np.exp(sp.erfinv(x) ** 2))
# SciPy's i0 and i1 of infinities are nan.
meanings["bessel_i0"] = sloped(lambda x: np.where(np.isinf(x), np.inf, sp.i0(x)), sp.i1)
meanings["bessel_i1"] = sloped(lambda x: np.where(np.isinf(x), x, sp.i1(x)), lambda x: (sp.i0(x) + sp.iv(2, x)) / 2)
meanings["bessel_i0e"] = sloped(sp.i0e, lambda x: sp.i1e(x) - np.sign(x) * sp.i0e(x))
meanings["bessel_i1e"] = real_only(sp.i1e)


@meaning("lgamma")
def _lgamma(run: Run, eqn: Any, x: Values) -> Any:
    """log |gamma|, infinite at the integers that are not positive."""
    if not is_stepped(x):
        return np.where(x == -np.inf, np.inf, sp.gammaln(x))
    if np.any(x.real <= 0):
        raise NotHolomorphicError("lgamma")
    return with_tangent(sp.gammaln(x.real), sp.loggamma(x).imag)


@meaning("digamma")
def _digamma(run: Run, eqn: Any, x: Values) -> Any:
    """nan at the integers that are not positive, between infinities of both signs."""
    value = np.where((x.real <= 0) & (x.real == np.floor(x.real)), np.nan, sp.psi(x.real))
    return value if not is_stepped(x) else with_tangent(value, sp.psi(x).imag)


def _polygamma(m: Values, x: Values) -> Values:
    """Of order 0 digamma; else by Hurwitz's zeta function."""
    m, x = np.broadcast_arrays(m, x)
    sign = np.where(m % 2 == 0, -1.0, 1.0)
    higher = sign * sp.gamma(m + 1) * sp.zeta(m + 1, x)
    return np.where(m == 0, sp.psi(x), np.where((m > 0) & (m == np.floor(m)), higher, np.nan))


meanings["polygamma"] = real_only(_polygamma)
meanings["zeta"] = real_only(sp.zeta)

# ---- incomplete gamma functions --------------------------------------------------------------------------------


def _series(a: Any, x: Any) -> Any:
    """P(a, x) for x below a + 1. Source: DLMF 8.7.1, 8.8."""
    term = total = np.ones(np.broadcast_shapes(np.shape(a), np.shape(x)), complex)
    for n in range(1, 2000):
        term = term * x / (a + n)
        total = total + term
        if np.all(np.abs(term.real) <= 1e-18 * np.abs(total.real)):
            break
    return _weight(a, x) * total / a


def _fraction(a: Any, x: Any) -> Any:
    """Q(a, x) for x above a + 1, by Lentz's algorithm. Source: DLMF 8.9.2."""
    b = x + 1 - a
    c, d = np.full(np.shape(b), 1e300 + 0j), 1 / b
    h = d
    for n in range(1, 2000):
        factor = -n * (n - a)
        b = b + 2
        d, c = 1 / (factor * d + b), b + factor / c
        h = h * d * c
        if np.all(np.abs((d * c).real - 1) <= 1e-16):
            break
    return _weight(a, x) * h


def _weight(a: Any, x: Any) -> Any:
    """x^a exp(-x) / gamma(a), of complex numbers."""
    return np.exp(a * np.log(x) - x - sp.loggamma(a))


def _lower(a: Any, x: Any) -> tuple[Any, Any]:
    """P(a, x) as (value, sign): itself below a + 1; above, Q with the sign of its derivative."""
    small = np.real(x) < np.real(a) + 1
    inner = np.where(small, x, np.real(a) / 2 + 0j)
    outer = np.where(small, np.real(a) + 2 + 0j, x)
    return np.where(small, _series(a, inner), _fraction(a, outer)), np.where(small, 1, -1)


_STEP = 1e-150


def _by_a(a: Values, x: Values) -> Values:
    """dP/da by a complex step, for a > 0 and x > 0."""
    value, sign = _lower(a + 1j * _STEP, x + 0j)
    return sign * value.imag / _STEP


def _by_order(a: Values, x: Values) -> Values:
    """dP/da: 0 at x = 0 and at infinity; nan unless a > 0 and x >= 0."""
    a, x = np.broadcast_arrays(a, x)
    proper = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    inside = _by_a(np.where(proper, a, 1.0), np.where(proper, x, 1.0))
    edge = (a > 0) & ((x == 0) | (x == np.inf))
    return np.where(proper, inside, np.where(edge, 0.0, np.nan))


def _density(a: Values, x: Values) -> Values:
    """dP/dx."""
    return np.exp(sp.xlogy(a - 1, x) - x - sp.gammaln(a))


def _negative(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, x: -f(a, x)


meanings["igamma"] = sloped(sp.gammainc, _by_order, _density)
meanings["igammac"] = sloped(sp.gammaincc, _negative(_by_order), _negative(_density))
meanings["igamma_grad_a"] = real_only(_by_order)
meanings["random_gamma_grad"] = real_only(lambda a, x: -_by_order(a, x) / _density(a, x))


# ---- the incomplete beta function ------------------------------------------------------------------------------


def _beta_density(a: Values, b: Values, x: Values) -> Values:
    """The derivative by x."""
    return np.exp(sp.xlogy(a - 1, x) + sp.xlog1py(b - 1, -x) - sp.betaln(a, b))


def _unknown(a: Values, b: Values, x: Values) -> Values:
    """In the place of the derivatives by the parameters, which nothing here computes."""
    raise NotHolomorphicError("betainc")


def _of_proper_parameters(tail: Callable[..., Values]) -> Callable[..., Values]:
    def value(a: Values, b: Values, x: Values) -> Values:
        proper = (a > 0) & (b > 0) & (a < np.inf) & (b < np.inf) & (x >= 0) & (x <= 1)
        return np.where(proper, tail(*(np.where(proper, v, 0.5) for v in (a, b, x))), np.nan)

    return value


meanings["betainc"] = sloped(_of_proper_parameters(sp.betainc), _unknown, _unknown, _beta_density)
meanings["betaincc"] = sloped(_of_proper_parameters(sp.betaincc), _unknown, _unknown, _negative(_beta_density))


# ---- others, by SciPy's values and the formulas of their derivatives --------------------------------------------

_ROOT_2_PI = np.sqrt(2 * np.pi)
meanings["gamma"] = sloped(sp.gamma, lambda x: sp.gamma(x) * sp.psi(x))
meanings["beta"] = sloped(
    sp.beta,
    lambda a, b: sp.beta(a, b) * (sp.psi(a) - sp.psi(a + b)),
    lambda a, b: sp.beta(a, b) * (sp.psi(b) - sp.psi(a + b)),
)
meanings["betaln"] = sloped(sp.betaln, lambda a, b: sp.psi(a) - sp.psi(a + b), lambda a, b: sp.psi(b) - sp.psi(a + b))
meanings["comb"] = sloped(
    sp.binom,
    lambda n, k: sp.binom(n, k) * (sp.psi(n + 1) - sp.psi(n - k + 1)),
    lambda n, k: sp.binom(n, k) * (sp.psi(n - k + 1) - sp.psi(k + 1)),
)
meanings["poch"] = sloped(
    sp.poch,
    lambda z, m: sp.poch(z, m) * (sp.psi(z + m) - sp.psi(z)),
    lambda z, m: sp.poch(z, m) * sp.psi(z + m),
)
meanings["xlogy"] = sloped(sp.xlogy, lambda x, y: np.log(y), lambda x, y: x / y)
meanings["xlog1py"] = sloped(sp.xlog1py, lambda x, y: np.log1p(y), lambda x, y: x / (1 + y))
meanings["kl_div"] = sloped(sp.kl_div, lambda p, q: np.log(p / q), lambda p, q: 1 - p / q)
meanings["erfcx"] = sloped(sp.erfcx, lambda x: 2 * x * sp.erfcx(x) - 2 / np.sqrt(np.pi))
meanings["dawsn"] = sloped(sp.dawsn, lambda x: 1 - 2 * x * sp.dawsn(x))
meanings["ndtr"] = sloped(sp.ndtr, lambda x: np.exp(-(x**2) / 2) / _ROOT_2_PI)
meanings["log_ndtr"] = sloped(sp.log_ndtr, lambda x: np.exp(-(x**2) / 2 - sp.log_ndtr(x)) / _ROOT_2_PI)
meanings["ndtri"] = sloped(sp.ndtri, lambda p: _ROOT_2_PI * np.exp(sp.ndtri(p) ** 2 / 2))
meanings["erfinv"] = sloped(sp.erfinv, lambda x: np.sqrt(np.pi) / 2 * np.exp(sp.erfinv(x) ** 2))
meanings["exp1"] = sloped(sp.exp1, lambda x: -np.exp(-x) / x)
meanings["expi"] = sloped(sp.expi, lambda x: np.exp(x) / x)
meanings["sine_integral"] = sloped(lambda x: sp.sici(x)[0], lambda x: np.sinc(x / np.pi))
meanings["cosine_integral"] = sloped(lambda x: sp.sici(x)[1], lambda x: np.cos(x) / x)
meanings["fresnel_sine"] = sloped(lambda x: sp.fresnel(x)[0], lambda x: np.sin(np.pi * x**2 / 2))
meanings["fresnel_cosine"] = sloped(lambda x: sp.fresnel(x)[1], lambda x: np.cos(np.pi * x**2 / 2))
meanings["spence"] = sloped(sp.spence, lambda x: np.log(x) / (1 - x))
