"""The generalized normal distribution: density beta exp(-|y|^beta) / (2 gamma(1/beta)) / scale, for beta > 0."""

from typing import Any

from tapeless.scipy.special_functions.from_lax import gammainc, gammaincc, gammaln
from tapeless.scipy.stats.evaluation import elementwise, formula_of, standardize
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "logpdf", "pdf"]


@elementwise(valid="beta, scale > 0")
def at_x(x: ArrayLike, beta: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@at_x
def logpdf(x: Any, beta: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the generalized normal density at x, elementwise."""
    y, beta = standardize(x, loc, scale, beta > 0), tnp.where(beta > 0, beta, 1)
    return tnp.log(0.5 * beta) - gammaln(1 / beta) - tnp.power(tnp.abs(y), beta) - tnp.log(scale)


@at_x
def pdf(x: Any, beta: Any, loc: Any, scale: Any) -> Any:
    """Compute the generalized normal density (pdf) at x, elementwise."""
    return tnp.exp(formula_of(logpdf)(x, beta, loc, scale))


@at_x
def cdf(x: Any, beta: Any, loc: Any, scale: Any) -> Any:
    """Compute the generalized normal distribution function (cdf) at x, elementwise: the probability of at most x."""
    y, beta = standardize(x, loc, scale, beta > 0), tnp.where(beta > 0, beta, 1)
    power = tnp.power(tnp.abs(y), beta)
    flat = power < dtypes.finfo(y.dtype).tiny  # it may underflow where the probability up to y does not: DLMF 8.7.1
    power = tnp.where(flat, 1, power)
    across = 0.5 + 0.5 * y * tnp.exp(-gammaln(1 + 1 / beta))
    found = tnp.where(y > 0, 0.5 + 0.5 * gammainc(1 / beta, power), 0.5 * gammaincc(1 / beta, power))
    return tnp.where(flat, across, found)


_complete_namespace(globals())
