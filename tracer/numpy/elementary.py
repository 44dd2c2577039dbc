"""Elementary functions, elementwise: exponentials, logarithms, trigonometric and hyperbolic functions."""

from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.arithmetic import broadcast_scalar, select
from tapeless.tracer.numpy.promotion import apply2_inexact, apply_inexact, inexact, promoted_inexact
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives import special

# ---- exponentials and logarithms -----------------------------------------------------------------------------


def exp(x: ArrayLike, /) -> Array:
    """Compute e to the power x, elementwise."""
    return apply_inexact("exp", lax.exp_p, x)


def exp2(x: ArrayLike, /) -> Array:
    """Compute 2 to the power x, elementwise."""
    return apply_inexact("exp2", lax.exp2_p, x)


def expm1(x: ArrayLike, /) -> Array:
    """Compute exp(x) - 1, exact near 0, elementwise."""
    return apply_inexact("expm1", lax.expm1_p, x)


def log(x: ArrayLike, /) -> Array:
    """Compute the natural logarithm of x, elementwise; nan for negative real numbers."""
    return apply_inexact("log", lax.log_p, x)


def log1p(x: ArrayLike, /) -> Array:
    """Compute the natural logarithm of 1 + x, exact near 0, elementwise."""
    return apply_inexact("log1p", lax.log1p_p, x)


def log2(x: ArrayLike, /) -> Array:
    """Compute the logarithm of x to base 2, elementwise; nan for negative real numbers."""
    return _scaled_log(inexact("log2", x), base=2.0)


def log10(x: ArrayLike, /) -> Array:
    """Compute the logarithm of x to base 10, elementwise; nan for negative real numbers."""
    return _scaled_log(inexact("log10", x), base=10.0)


@core.compound
def _scaled_log(x: Any, *, base: float) -> Array:
    return _divided(lax.log(x), float(np.log(base)))


def _divided(x: Any, divisor: float) -> Array:
    """Divide x by a real number; complex x by parts, as a complex divisor would make nan beside an infinite part."""
    if not dtypes.is_complex(x.dtype):
        return lax.div(x, divisor)
    return lax.complex(lax.div(lax.real(x), divisor), lax.div(lax.imag(x), divisor))


def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute log(exp(x1) + exp(x2)), elementwise, without overflow; the principal value for complex numbers."""
    return _logaddexp(*promoted_inexact("logaddexp", x1, x2))


def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute log2(2^x1 + 2^x2), elementwise, without overflow."""
    return _logaddexp2(*promoted_inexact("logaddexp2", x1, x2))


@core.compound
def _logaddexp(x: Any, y: Any) -> Array:
    """Compute log(exp(x) + exp(y)), smooth where x = y: an |x - y| would have a kink there.

    Equal infinities stay, with half of the derivative for each.
    """
    if dtypes.is_complex(x.dtype):
        return _complex_logaddexp(x, y)
    less = lax.lt(x, y)
    high, low = select(less, y, x), select(less, x, y)
    return lax.add(high, lax.log1p(lax.exp(lax.difference(low, high))))


def _complex_logaddexp(x: Any, y: Any) -> Array:
    less = lax.lt(lax.real(x), lax.real(y))
    high, low = select(less, y, x), select(less, x, y)
    found = lax.add(high, lax.log1p(lax.exp(lax.sub(low, high))))
    return lax.complex(lax.real(found), _wrapped(lax.imag(found)))


def _wrapped(angle: Array) -> Array:
    """Wrap an angle to (-pi, pi], the range of the imaginary part of a logarithm."""
    turns = lax.ceil(lax.div(lax.sub(angle, np.pi), 2 * np.pi))
    return lax.sub(angle, lax.mul(turns, 2 * np.pi))


@core.compound
def _logaddexp2(x: Any, y: Any) -> Array:
    scale = float(np.log(2.0))
    return _divided(_logaddexp(*(_divided(v, 1 / scale) for v in (x, y))), scale)


# ---- trigonometric -------------------------------------------------------------------------------------------


def sin(x: ArrayLike, /) -> Array:
    """Compute the sine of x in radians, elementwise."""
    return apply_inexact("sin", lax.sin_p, x)


def cos(x: ArrayLike, /) -> Array:
    """Compute the cosine of x in radians, elementwise."""
    return apply_inexact("cos", lax.cos_p, x)


def tan(x: ArrayLike, /) -> Array:
    """Compute the tangent of x in radians, elementwise."""
    return apply_inexact("tan", lax.tan_p, x)


def arcsin(x: ArrayLike, /) -> Array:
    """Compute the inverse sine of x, in radians, elementwise; nan for real x outside of [-1, 1]."""
    return apply_inexact("arcsin", lax.asin_p, x)


def arccos(x: ArrayLike, /) -> Array:
    """Compute the inverse cosine of x, in radians, elementwise; nan for real x outside of [-1, 1]."""
    return apply_inexact("arccos", lax.acos_p, x)


def arctan(x: ArrayLike, /) -> Array:
    """Compute the inverse tangent of x, in radians, elementwise."""
    return apply_inexact("arctan", lax.atan_p, x)


def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the angle of the point (x2, x1), elementwise, in radians from -π to π.

    Raises: TypeError for complex numbers.
    """
    return apply2_inexact("arctan2", lax.atan2_p, x1, x2)


@one_program
def sinc(x: ArrayLike, /) -> Array:
    """Compute sin(πx) / (πx), elementwise; 1 at 0, where derivatives up to the ninth are exact."""
    return _sinc(inexact("sinc", x))


@core.compound
def _sinc(x: Any) -> Array:
    """Compute sinc by its series near 0: a quotient masked at the one point 0 would have wrong derivatives there."""
    angle = lax.mul(x, np.pi)
    near = lax.lt(lax.abs(angle), 0.1)
    z = lax.square(select(near, angle, 0.0))
    series = broadcast_scalar(lax.mul(z, 0.0), z.shape)
    for coefficient in (1 / 362880, -1 / 5040, 1 / 120, -1 / 6, 1.0):
        series = lax.add(lax.mul(series, z), coefficient)
    safe = select(near, 1.0, angle)
    return select(near, series, lax.div(lax.sin(safe), safe))


def deg2rad(x: ArrayLike, /) -> Array:
    """Convert degrees to radians, elementwise."""
    return lax.mul(inexact("deg2rad", x), np.pi / 180)


def rad2deg(x: ArrayLike, /) -> Array:
    """Convert radians to degrees, elementwise."""
    return lax.mul(inexact("rad2deg", x), 180 / np.pi)


radians = deg2rad
degrees = rad2deg

# ---- hyperbolic ----------------------------------------------------------------------------------------------


def sinh(x: ArrayLike, /) -> Array:
    """Compute the hyperbolic sine of x, elementwise."""
    return apply_inexact("sinh", lax.sinh_p, x)


def cosh(x: ArrayLike, /) -> Array:
    """Compute the hyperbolic cosine of x, elementwise."""
    return apply_inexact("cosh", lax.cosh_p, x)


def tanh(x: ArrayLike, /) -> Array:
    """Compute the hyperbolic tangent of x, elementwise."""
    return apply_inexact("tanh", lax.tanh_p, x)


def arcsinh(x: ArrayLike, /) -> Array:
    """Compute the inverse hyperbolic sine of x, elementwise."""
    return apply_inexact("arcsinh", lax.asinh_p, x)


def arccosh(x: ArrayLike, /) -> Array:
    """Compute the inverse hyperbolic cosine of x, elementwise; nan for real x below 1."""
    return apply_inexact("arccosh", lax.acosh_p, x)


def arctanh(x: ArrayLike, /) -> Array:
    """Compute the inverse hyperbolic tangent of x, elementwise; nan for real x outside of [-1, 1]."""
    return apply_inexact("arctanh", lax.atanh_p, x)


acos = arccos
acosh = arccosh
asin = arcsin
asinh = arcsinh
atan = arctan
atanh = arctanh
atan2 = arctan2


# ---- others --------------------------------------------------------------------------------------------------


@one_program
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the step function: 0 where x1 < 0, x2 where x1 is 0, 1 where x1 > 0, nan for nan, elementwise.

    Raises: TypeError for complex numbers.
    """
    return _heaviside(*promoted_inexact("heaviside", x1, x2))


@core.compound
def _heaviside(x: Any, y: Any) -> Array:
    shape = np.broadcast_shapes(x.shape, y.shape)
    step = select(lax.lt(x, 0), 0.0, select(lax.gt(x, 0), 1.0, x))
    return select(broadcast_scalar(lax.eq(x, 0), shape), broadcast_scalar(y, shape), broadcast_scalar(step, shape))


def i0(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind, order 0, elementwise.

    It is infinite at infinity, where NumPy gives nan. Raises: TypeError for complex numbers.
    """
    return apply_inexact("i0", special.bessel_i0_p, x)
