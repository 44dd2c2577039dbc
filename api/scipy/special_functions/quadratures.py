"""Functions by quadrature or rational approximation, with derivatives of their own: Owen's T, Faddeeva's w."""

import math
from typing import Any

import numpy as np

from tapeless.custom.jvp import custom_jvp
from tapeless.scipy.special_functions.from_lax import erf, erfc
from tapeless.scipy.special_functions.gamma_relatives import check_real
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import array_operand, broadcast, inexact, mixing_inside, promoted_inexact_dtypes

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@one_program
@mixing_inside
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Compute Owen's T function, elementwise: exp(-h² (1 + x²) / 2) / (2 pi (1 + x²)), integrated over x from 0 to a.

    Returns: floating point. Its error is below 1e-13 of the largest value for that h, in float64.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    Source: Owen 1956, "Tables for computing bivariate normal probabilities"; Gauss' quadrature of 64 points.
    """
    first, second = (
        array_operand("owens_t", v) for v in broadcast("owens_t", *promoted_inexact_dtypes("owens_t", h, a))
    )
    check_real("owens_t", first)
    return _owens_t(first, second)


@custom_jvp
def _owens_t(h: Any, a: Any) -> Any:
    """Integrate; where a > 1 by T(h, a) + T(a h, 1 / a)."""
    p, q = tnp.abs(h), tnp.abs(a)
    steep = q > 1
    product = tnp.where(steep & (p > 0), q * tnp.where(steep, p, 1), 0)
    inner = _integral(tnp.where(steep, product, p), tnp.where(steep, 1 / tnp.where(steep, q, 1), q))
    low, high = p * math.sqrt(0.5), product * math.sqrt(0.5)
    central = 0.25 - 0.25 * erf(low) * erf(high)
    tails = 0.25 * (erfc(low) + erfc(high) - erfc(low) * erfc(high))
    found = tnp.where(steep, tnp.where(product <= 0.67, central, tails) - inner, inner)
    return tnp.sign(a) * found + 0 * (h != h)


@_owens_t.defjvp
def _owens_t_jvp(primals: Any, tangents: Any) -> Any:
    (h, a), (dh, da) = primals, tangents
    by_h = -tnp.exp(-0.5 * h * h) * erf(a * h * math.sqrt(0.5)) / (2 * math.sqrt(2 * math.pi))
    by_a = tnp.exp(-0.5 * (1 + a * a) * h * h) / (2 * math.pi * (1 + a * a))
    return _owens_t(h, a), by_h * dh + by_a * da


def _integral(h: Any, a: Any) -> Any:
    """Integrate where 0 <= a <= 1."""
    half = 0.5 * a[..., None]
    x = half * (1 + _POINTS).astype(a.dtype)
    values = tnp.exp(-0.5 * tnp.square(h)[..., None] * (1 + x * x)) / (1 + x * x)
    return tnp.sum(values * (half * _WEIGHTS.astype(a.dtype)), axis=-1) / (2 * math.pi)


# ---- Faddeeva's function -------------------------------------------------------------------------------------


def _weideman(n: int) -> tuple[float, np.ndarray[Any, Any]]:
    """Compute the scale and the coefficients of the rational approximation with n terms, the highest first."""
    scale = math.sqrt(n / math.sqrt(2))
    angles = np.pi * np.arange(-2 * n + 1, 2 * n) / (2 * n)
    t = scale * np.tan(angles / 2)
    values = np.concatenate([[0.0], np.exp(-t * t) * (scale * scale + t * t)])
    return scale, np.real(np.fft.fft(np.fft.fftshift(values)))[1 : n + 1][::-1] / (4 * n)


_SCALE, _COEFFICIENTS = _weideman(64)


@one_program
def wofz(z: ArrayLike) -> Array:
    """Compute Faddeeva's function exp(-z²) erfc(-i z), elementwise.

    Args:
      z: complex, or real.
    Returns: complex; below the real axis it overflows where exp(-z²) does. Its error is below 1e-13 of its absolute
      value in the upper half plane in complex128.
    Source: Weideman 1994, "Computation of the complex error function", with 64 terms; DLMF 7.2.3 and 7.10.2.
    """
    x = array_operand("wofz", inexact("wofz", z))
    return _wofz(x if dtypes.is_complex(x.dtype) else x.astype(dtypes.complex_of(x.dtype)))


@custom_jvp
def _wofz(z: Any) -> Any:
    vanishing = _is_where_wofz_vanishes(z)
    z = tnp.where(vanishing, 0, z)
    upper = tnp.imag(z) >= 0
    turned = tnp.where(upper, z, -z)
    denominator = _SCALE - 1j * turned
    ratio = (_SCALE + 1j * turned) / denominator
    total = tnp.zeros_like(ratio)
    for c in _COEFFICIENTS:
        total = total * ratio + float(c)
    found = 2 * total / (denominator * denominator) + (1 / math.sqrt(math.pi)) / denominator
    return tnp.where(vanishing, 0, tnp.where(upper, found, 2 * tnp.exp(-z * z) - found))


def _is_where_wofz_vanishes(z: Any) -> Any:
    """Tell where the real part is infinite, or the imaginary part is +inf, and the other is a number."""
    re, im = tnp.real(z), tnp.imag(z)
    return tnp.isinf(re) & (abs(im) < np.inf) | (im == np.inf) & (re == re)


@_wofz.defjvp
def _wofz_jvp(primals: Any, tangents: Any) -> Any:
    (z,), (t,) = primals, tangents
    found = _wofz(z)
    vanishing = _is_where_wofz_vanishes(z)
    slope = 2j / math.sqrt(math.pi) - 2 * tnp.where(vanishing, 0, z) * found
    return found, t * tnp.where(vanishing, 0, slope)
