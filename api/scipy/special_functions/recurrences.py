"""Functions by recurrences: Bessel's of the first kind, exponential integrals of any order, spherical harmonics."""

import math
import operator
from typing import Any

import numpy as np

from tapeless.control_flow.branches_and_loops import fori_loop
from tapeless.control_flow.scan import scan
from tapeless.custom.jvp import custom_jvp
from tapeless.scipy.special_functions.from_lax import digamma, gammaln
from tapeless.scipy.special_functions.gamma_relatives import check_real
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.errors import ConcretizationTypeError
from tapeless.tracer.numpy.promotion import array_operand, broadcast, inexact, mixing_inside, promoted_inexact_dtypes
from tapeless.tracer.primitives.operands import known_elements

_TERMS, _LEVELS = 25, 100  # enough for eps of float64: of the series up to 1, of the continued fraction above 1


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Compute the Bessel functions of the first kind of orders 0 to v, elementwise.

    Args:
      z: real.
      v: the highest order.
      n_iter: the order above which they count as 0: to be well above |z| and v. For |z| up to 25, 50 is enough for the
        precision of float64.
    Returns: [v + 1, ..], floating point; nan where |z| is too large for n_iter, above 36 for 50.
    Raises: TypeError for complex numbers, or if v or n_iter is no integer; ValueError unless 0 <= v <= n_iter.
    Source: Olver & Sookne 1972, "Note on backward recurrence algorithms"; DLMF 10.6.1, 10.12.4.
    """
    x = array_operand("bessel_jn", inexact("bessel_jn", z))
    check_real("bessel_jn", x)
    top, last = operator.index(v), operator.index(n_iter)
    if not 0 <= top <= last:
        raise ValueError(f"bessel_jn: orders up to v={top} want v of at least 0 and n_iter of at least v, not {last}.")

    def ratio(above: Any, k: Any) -> tuple[Any, Any]:
        """Compute J_k / J_(k - 1) from the next ratio: no number gets large."""
        found = x / (2 * k - x * above)
        return found, found

    orders = np.arange(1, last + 1).astype(x.dtype)
    _, ratios = scan(ratio, tnp.zeros_like(x), orders, reverse=True)
    products = tnp.concatenate([tnp.ones_like(x)[None], tnp.cumprod(ratios, axis=0)])
    found = products[: top + 1] / (2 * tnp.sum(products[::2], axis=0) - 1)
    return tnp.where(abs(x) <= _largest_argument(last + 1), found, np.nan)


def _largest_argument(n: int) -> float:
    """Return the z up to which J_n(z), taken as 0, is known to be below 0.01: at most (z / 2)^n / n!."""
    return 2 * math.exp((math.log(0.01) + math.lgamma(n + 1)) / n)


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute the exponential integral of order n, of exp(-x t) / t^n over t from 1 on, elementwise.

    Args:
      n: whole numbers, at least 0; it has no derivative by them.
      x: real, at least 0.
    Returns: floating point; infinite at 0 for n up to 1, nan where n or x is negative.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    Source: DLMF 8.19.2, 8.19.8 and 8.19.17; the derivative 8.19.13.
    """
    order, value = (array_operand("expn", v) for v in broadcast("expn", *promoted_inexact_dtypes("expn", n, x)))
    check_real("expn", value)
    return _expn(order, value)


@custom_jvp
def _expn(n: Any, x: Any) -> Any:
    inside = (n >= 0) & (x >= 0) & (x < np.inf)
    small = inside & (x <= 1) & (x > 0)
    large = inside & (x > 1)
    found = tnp.where(small, _series(n, tnp.where(small, x, 1)), _fraction(n, tnp.where(large, x, 2)))
    at_zero = tnp.where(n > 1, 1 / tnp.where(n > 1, n - 1, 1), np.inf)
    found = tnp.where(n == 0, tnp.exp(-x) / tnp.where(x == 0, 1, x), found)
    found = tnp.where(x == 0, at_zero, tnp.where(x == np.inf, 0, found))
    return tnp.where((n >= 0) & (x >= 0), found, np.nan)


@_expn.defjvp
def _expn_jvp(primals: Any, tangents: Any) -> Any:
    (n, x), (_, t) = primals, tangents
    found = _expn(n, x)
    before = tnp.where(n == 0, (tnp.exp(-x) + found) / x, _expn(tnp.maximum(n - 1, 0), x))
    return found, -t * before


def _series(n: Any, x: Any) -> Any:
    """Compute (-x)^(n-1) / (n-1)! (psi(n) - log x) less the sum of (-x)^k / (k! (k - n + 1)), k other than n - 1."""

    def add(k: Any, state: Any) -> Any:
        total, term = state
        below = k + 1 - n
        total = total - tnp.where(below == 0, 0, term / tnp.where(below == 0, 1, below))
        return total, term * -x / (k + 1)

    shape = tnp.zeros_like(n * x)
    total, _ = fori_loop(0, _TERMS, lambda k, s: add(k.astype(x.dtype), s), (shape, tnp.ones_like(shape)))
    m = tnp.maximum(n, 1)
    sign = tnp.where(tnp.floor(0.5 * m) * 2 == m, -1, 1)
    log = tnp.log(x)
    return total + sign * tnp.exp((m - 1) * log - gammaln(m)) * (digamma(m) - log)


def _fraction(n: Any, x: Any) -> Any:
    """Compute exp(-x) over x + n - n / (x + n + 2 - 2 (n + 1) / (x + n + 4 - ..)), from the end."""

    def level(i: Any, below: Any) -> Any:
        k = (_LEVELS - i).astype(x.dtype)
        return k * (n + k - 1) / (x + n + 2 * k - below)

    return tnp.exp(-x) / (x + n - fori_loop(0, _LEVELS, level, tnp.zeros_like(n * x)))


@one_program
@mixing_inside
def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: None = None,
    n_max: int | None = None,
) -> Array:
    """Compute spherical harmonics, elementwise; with the phase of Condon and Shortley, of norm 1.

    Args:
      n: degrees, whole numbers of at least 0.
      m: orders, whole numbers; the result is 0 where |m| > n.
      theta: the polar angle; beyond 0 to pi it is that of its cosine.
      phi: the azimuth.
      diff_n: None.
      n_max: the largest possible degree; if None the largest of n, which must then be known.
    Returns: complex; the operands broadcast.
    Raises: ConcretizationTypeError if n is traced and `n_max` is None; NotImplementedError for `diff_n`; TypeError for
      complex angles; ValueError if shapes do not broadcast.
    Source: DLMF 14.30.1; Holmes & Featherstone 2002, equation 11, for the recurrence.
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: derivatives are those of tl.jvp: leave diff_n=None.")
    if n_max is None:
        known = known_elements(n if isinstance(n, Array) else np.asarray(n))
        if known is None:
            raise ConcretizationTypeError("sph_harm_y: n is traced.\n  Give n_max, the largest that it may be.")
        n_max = int(known.max(initial=0))
    angles = promoted_inexact_dtypes("sph_harm_y", theta, phi)
    integers = [tnp.asarray(v).astype(angles[0].dtype) for v in (n, m)]
    degree, order, polar, azimuth = (
        array_operand("sph_harm_y", v) for v in broadcast("sph_harm_y", *integers, *angles)
    )
    check_real("sph_harm_y", polar)
    size = tnp.abs(order)
    sine = tnp.sin(polar)
    sine = tnp.where(sine < 0, -sine, sine)  # at the poles with the derivative from within
    legendre = _normalized_legendre(degree, size, tnp.cos(polar), sine, operator.index(n_max))
    signed = tnp.where((order < 0) & (tnp.floor(0.5 * size) * 2 != size), -legendre, legendre)
    found = signed * tnp.exp(1j * (order * azimuth).astype(dtypes.complex_of(polar.dtype)))
    return tnp.where((size <= degree) & (degree <= n_max), found, tnp.where(degree <= n_max, 0, np.nan))


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """Compute the associated Legendre functions of all orders and degrees; with the phase of Condon and Shortley.

    Args:
      m: the highest order, the same as n.
      n: the highest degree.
      z: [k], real, from -1 to 1.
      is_normalized: are they scaled so that the spherical harmonics made of them have norm 1?
    Returns: [m + 1, n + 1, k], floating point, by order and degree; 0 where the order is above the degree.
    Raises: TypeError for complex numbers, or if m or n is no integer; ValueError unless z has one axis, and m is n.
    Source: DLMF 14.30.1, and `sph_harm_y`.

    >>> lpmn_values(2, 2, tnp.array([0.5]), True).shape
    (3, 3, 1)
    """
    x = array_operand("lpmn_values", inexact("lpmn_values", z))
    check_real("lpmn_values", x)
    top = operator.index(n)
    if operator.index(m) != top or top < 0:
        raise ValueError(f"lpmn_values: the highest order, m={m}, and degree, n={n}, must be the same, and at least 0.")
    if x.ndim != 1:
        raise ValueError(f"lpmn_values: z must have one axis, not {x.ndim}.")
    order, degree = np.mgrid[: top + 1, : top + 1, :1][:2]
    below = order <= degree
    norms = [[_norm(k, j) for k in range(top + 1)] for j in range(top + 1)]
    scale = np.where(below, 1 if is_normalized else 1 / np.array(norms)[..., None], 0).astype(x.dtype)
    orders, degrees = order.astype(x.dtype), degree.astype(x.dtype)
    return tnp.where(below, scale * _normalized_legendre(degrees, orders, x, tnp.sqrt(1 - x * x), top), 0)


def _norm(degree: int, order: int) -> float:
    """Return what the associated Legendre function is multiplied by so that its spherical harmonic has norm 1."""
    over = math.lgamma(degree - order + 1) - math.lgamma(degree + order + 1) if order <= degree else 0.0
    return math.sqrt((2 * degree + 1) / (4 * math.pi)) * math.exp(over / 2)


def _normalized_legendre(n: Any, m: Any, x: Any, y: Any, top: int) -> Any:
    """Compute the associated Legendre function of degree n and order m >= 0 at x, of norm 1 on the sphere.

    y: the square root of 1 - x^2.
    """

    def step(state: Any, degree: Any) -> tuple[Any, None]:
        before, here = state
        diagonal = -tnp.sqrt((2 * degree + 1) / (2 * degree)) * y * here
        gap = tnp.where(degree > m, degree * degree - m * m, 1)
        a = tnp.sqrt((4 * degree * degree - 1) / gap)
        rest = tnp.where(degree > m + 1, tnp.square(degree - 1) - m * m, 0)
        b = tnp.sqrt((2 * degree + 1) * rest / (tnp.where(degree > 1, 2 * degree - 3, 1) * gap))
        above = a * x * here - b * before
        after = tnp.where(degree <= m, diagonal, above)
        going = degree <= n
        return (tnp.where(going, here, before), tnp.where(going, after, here)), None

    begin = tnp.zeros_like(n * m * x)
    degrees = np.arange(1, top + 1).astype(x.dtype)
    (_, found), _ = scan(step, (begin, begin + math.sqrt(0.25 / math.pi)), degrees)
    return found
