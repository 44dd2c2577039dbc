"""Exponential, sine and cosine integrals, Fresnel's integrals, the dilogarithm: names of `jax.scipy.special`.

All are elementwise, of real numbers; integers become floating point, complex numbers are refused with a TypeError.
Their derivatives are what is integrated.
"""

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.promotion import apply_inexact, array_operand, inexact
from tapeless.tracer.primitives import integrals as i


def exp1(x: ArrayLike) -> Array:
    """The integral of exp(-t) / t from x to infinity, elementwise: infinite at 0, nan below. Source: DLMF 6.2.1."""
    return apply_inexact("exp1", i.exp1_p, x)


def expi(x: ArrayLike) -> Array:
    """The principal value of the integral of exp(t) / t from -infinity to x, elementwise; -inf at 0.

    Source: DLMF 6.2.5.
    """
    return apply_inexact("expi", i.expi_p, x)


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and cosine integrals, elementwise.

    Returns: the integral of sin(t) / t from 0 to x, and that of -cos(t) / t from |x| to infinity.
    Source: DLMF 6.2.9, 6.2.11.
    """
    x = inexact("sici", array_operand("sici", x))
    return i.sine_integral(x), i.cosine_integral(x)


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals of sin(pi t² / 2) and of cos(pi t² / 2) from 0 to x, elementwise.

    Source: DLMF 7.2.7, 7.2.8.
    """
    x = inexact("fresnel", array_operand("fresnel", x))
    return i.fresnel_sine(x), i.fresnel_cosine(x)


def spence(x: ArrayLike) -> Array:
    """The integral of log(t) / (1 - t) from 1 to x, elementwise: the dilogarithm of 1 - x; nan where x is negative.

    Source: DLMF 25.12.2.
    """
    return apply_inexact("spence", i.spence_p, x)
