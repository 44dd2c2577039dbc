"""The exponential distribution: density exp(-y) / scale where y = (x - loc) / scale is at least 0."""

from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import (
    at_q,
    at_x,
    clip_to_interval,
    formula_of,
    log1m_exp,
    on_support,
    only,
    quantile,
    standardize,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@at_x
def logpdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the exponential density at x, elementwise; -inf outside of the support."""
    y = standardize(x, loc, scale)
    return on_support(y, y >= 0, -np.inf, 1, lambda y: -y) - tnp.log(scale)


@at_x
def pdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the exponential density (pdf) at x, elementwise; 0 outside of the support."""
    return tnp.exp(formula_of(logpdf)(x, loc, scale))


@at_x
def cdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the exponential distribution function (cdf) at x, elementwise: the probability of at most x."""
    return -tnp.expm1(formula_of(logsf)(x, loc, scale))


@at_x
def logcdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of `cdf` at x, elementwise."""
    y = standardize(x, loc, scale)
    return on_support(y, y >= 0, -np.inf, 1, log1m_exp)


@at_x
def sf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the exponential survival function at x, elementwise: the probability of more than x."""
    return tnp.exp(formula_of(logsf)(x, loc, scale))


@at_x
def logsf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the survival function `sf` at x, elementwise."""
    return -clip_to_interval(standardize(x, loc, scale), 0, np.inf)


@at_q
def ppf(q: Any, loc: Any, scale: Any) -> Any:
    """Compute the exponential quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1."""
    return only(scale > 0, loc + scale * quantile(q, lambda q: -tnp.log1p(-q)))


_complete_namespace(globals())
