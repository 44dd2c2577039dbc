"""The gamma distribution: density y^(a-1) exp(-y) / gamma(a) / scale, y = (x - loc) / scale >= 0, for a > 0."""

from typing import Any

import numpy as np

from tapeless.scipy.special_functions.from_lax import gammainc, gammaincc
from tapeless.scipy.stats.evaluation import between, elementwise, formula_of, log_probability, on_support, standardize
from tapeless.scipy.stats.saddle_point import log_poisson
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@elementwise(valid="a, scale > 0")
def at_x(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@at_x
def logpdf(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the gamma density at x, elementwise; -inf outside of the support."""
    y, a = standardize(x, loc, scale, a > 0), tnp.where(a > 0, a, 1)

    def formula(y: Any) -> Any:
        return log_poisson(a - 1, y, a) - tnp.log(scale)

    return on_support(y, (y >= 0) & (y < np.inf), -np.inf, 1, formula)


@at_x
def pdf(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    """Compute the gamma density (pdf) at x, elementwise; 0 outside of the support."""
    return tnp.exp(formula_of(logpdf)(x, a, loc, scale))


@at_x
def cdf(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    """Compute the gamma distribution function (cdf) at x, elementwise: the probability of at most x."""
    y = standardize(x, loc, scale, a > 0)
    return between(y, 0, np.inf, (0, 1), lambda y: gammainc(a, y))


@at_x
def logcdf(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of `cdf` at x, elementwise."""
    y = standardize(x, loc, scale, a > 0)
    return between(y, 0, np.inf, (-np.inf, 0), lambda y: log_probability(gammainc(a, y), gammaincc(a, y)))


@at_x
def sf(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    """Compute the gamma survival function at x, elementwise: the probability of more than x."""
    y = standardize(x, loc, scale, a > 0)
    return between(y, 0, np.inf, (1, 0), lambda y: gammaincc(a, y))


@at_x
def logsf(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the survival function `sf` at x, elementwise."""
    y = standardize(x, loc, scale, a > 0)
    return between(y, 0, np.inf, (0, -np.inf), lambda y: log_probability(gammaincc(a, y), gammainc(a, y)))


_complete_namespace(globals())
