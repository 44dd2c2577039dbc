"""The beta distribution: density y^(a-1) (1-y)^(b-1) / B(a, b) / scale, 0 <= y = (x - loc) / scale <= 1; a, b > 0."""

from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import between, elementwise, formula_of, log_probability, on_support, standardize
from tapeless.scipy.stats.saddle_point import is_large, log_gamma, log_powers
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.primitives.special import betainc, betaincc

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@elementwise(valid="a, b, scale > 0")
def at_x(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@at_x
def logpdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the beta density at x, elementwise; -inf outside of the support."""
    valid = (a > 0) & (b > 0)
    y, a, b = standardize(x, loc, scale, valid), tnp.where(valid, a, 1), tnp.where(valid, b, 1)

    def formula(y: Any) -> Any:
        n = a + b - 1
        powers = log_powers(n, (a - 1, y, 1 - y), (b - 1, 1 - y, y)) + tnp.log(tnp.where(is_large(n), n, 1))
        return powers - log_gamma(a - 1, a) - log_gamma(b - 1, b) + log_gamma(n, a + b) - tnp.log(scale)

    return on_support(y, (y >= 0) & (y <= 1), -np.inf, 0.5, formula)


@at_x
def pdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the beta density (pdf) at x, elementwise; 0 outside of the support."""
    return tnp.exp(formula_of(logpdf)(x, a, b, loc, scale))


@at_x
def cdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the beta distribution function (cdf) at x, elementwise: the probability of at most x."""
    y = standardize(x, loc, scale, (a > 0) & (b > 0))
    return between(y, 0, 1, (0, 1), lambda y: betainc(a, b, y))


@at_x
def logcdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of `cdf` at x, elementwise."""
    y = standardize(x, loc, scale, (a > 0) & (b > 0))
    return between(y, 0, 1, (-np.inf, 0), lambda y: log_probability(betainc(a, b, y), betaincc(a, b, y)))


@at_x
def sf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the beta survival function at x, elementwise: the probability of more than x."""
    y = standardize(x, loc, scale, (a > 0) & (b > 0))
    return between(y, 0, 1, (1, 0), lambda y: betaincc(a, b, y))


@at_x
def logsf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the survival function `sf` at x, elementwise."""
    y = standardize(x, loc, scale, (a > 0) & (b > 0))
    return between(y, 0, 1, (0, -np.inf), lambda y: log_probability(betaincc(a, b, y), betainc(a, b, y)))


_complete_namespace(globals())
