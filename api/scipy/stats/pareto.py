"""The Pareto distribution: density b / y^(b + 1) / scale where y = (x - loc) / scale is at least 1, for b > 0."""

from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import (
    clip_to_interval,
    elementwise,
    formula_of,
    log1m_exp,
    on_support,
    only,
    quantile,
    standardize,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@elementwise(valid="b, scale > 0")
def at_x(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@elementwise(valid="b, scale > 0")
def at_q(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@at_x
def logpdf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the Pareto density at x, elementwise; -inf outside of the support."""
    y = standardize(x, loc, scale, b > 0)
    return on_support(y, y >= 1, -np.inf, 1, lambda y: tnp.log(b) - (b + 1) * tnp.log(y)) - tnp.log(scale)


@at_x
def pdf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the Pareto density (pdf) at x, elementwise; 0 outside of the support."""
    return tnp.exp(formula_of(logpdf)(x, b, loc, scale))


@at_x
def cdf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the Pareto distribution function (cdf) at x, elementwise: the probability of at most x."""
    return -tnp.expm1(formula_of(logsf)(x, b, loc, scale))


@at_x
def logcdf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of `cdf` at x, elementwise."""
    y = standardize(x, loc, scale, b > 0)
    return on_support(y, y >= 1, -np.inf, 2, lambda y: log1m_exp(b * tnp.log(y)))


@at_x
def sf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the Pareto survival function at x, elementwise: the probability of more than x."""
    return tnp.exp(formula_of(logsf)(x, b, loc, scale))


@at_x
def logsf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the survival function `sf` at x, elementwise."""
    return -b * tnp.log(clip_to_interval(standardize(x, loc, scale, b > 0), 1, np.inf))


@at_q
def ppf(q: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the Pareto quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1."""
    return only((scale > 0) & (b > 0), loc + scale * quantile(q, lambda q: tnp.exp(-tnp.log1p(-q) / b)))


_complete_namespace(globals())
