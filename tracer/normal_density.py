"""The normal distribution, under the names of `jax.scipy.stats.norm`."""

import math

from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.special import erfc

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at x of the normal distribution with mean `loc` and deviation `scale`."""
    return -0.5 * tnp.square(_standard(x, loc, scale)) - tnp.log(scale) - 0.5 * math.log(2 * math.pi)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at x of the normal distribution with mean `loc` and deviation `scale`."""
    return tnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number drawn from the normal distribution is at most x."""
    return 0.5 * erfc(-_standard(x, loc, scale) * math.sqrt(0.5))


def _standard(x: ArrayLike, loc: ArrayLike, scale: ArrayLike) -> Array:
    return tnp.divide(tnp.subtract(x, loc), scale)
