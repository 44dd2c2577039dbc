"""Exponential, sine, cosine and Fresnel integrals, and the dilogarithm, as in `jax.scipy.special`.

All are elementwise, for real numbers; integers become floating point, complex numbers raise a TypeError. The
derivatives are the integrands.
"""

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import apply_inexact, array_operand, inexact
from tapeless.tracer.primitives import integrals as i


def exp1(x: ArrayLike) -> Array:
    """Compute the exponential integral E1: ∫ exp(-t) / t from x to infinity, elementwise; infinite at 0, nan below.

    Raises: TypeError for complex numbers. Source: DLMF 6.2.1.
    """
    return apply_inexact("exp1", i.exp1_p, x)


def expi(x: ArrayLike) -> Array:
    """Compute the exponential integral Ei: the principal value of ∫ exp(t) / t from -infinity to x, elementwise.

    It is -inf at 0. Raises: TypeError for complex numbers. Source: DLMF 6.2.5.
    """
    return apply_inexact("expi", i.expi_p, x)


@one_program
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the sine and cosine integrals, elementwise.

    Returns: (∫ sin(t) / t from 0 to x, -∫ cos(t) / t from |x| to infinity).
    Raises: TypeError for complex numbers. Source: DLMF 6.2.9, 6.2.11.
    """
    x = inexact("sici", array_operand("sici", x))
    return i.sine_integral(x), i.cosine_integral(x)


@one_program
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the Fresnel integrals of sin(pi t² / 2) and of cos(pi t² / 2) from 0 to x, elementwise, as a pair.

    Raises: TypeError for complex numbers. Source: DLMF 7.2.7, 7.2.8.
    """
    x = inexact("fresnel", array_operand("fresnel", x))
    return i.fresnel_sine(x), i.fresnel_cosine(x)


def spence(x: ArrayLike) -> Array:
    """Compute Spence's function ∫ log(t) / (1 - t) from 1 to x, elementwise: the dilogarithm of 1 - x.

    It is nan for negative x. Raises: TypeError for complex numbers. Source: DLMF 25.12.2.
    """
    return apply_inexact("spence", i.spence_p, x)
