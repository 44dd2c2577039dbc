"""The Gumbel distribution of minima: distribution function 1 - exp(-exp(y)), y = (x - loc) / scale."""

from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import (
    at_x,
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


@elementwise(valid="scale > 0")
def at_p(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@at_x
def logpdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the minimum Gumbel density at x, elementwise."""
    y = -standardize(x, loc, scale)
    return on_support(y, tnp.isfinite(y), -np.inf, 0, lambda y: -y - tnp.exp(-y)) - tnp.log(scale)


@at_x
def pdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the minimum Gumbel density (pdf) at x, elementwise."""
    return tnp.exp(formula_of(logpdf)(x, loc, scale))


@at_x
def cdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the minimum Gumbel distribution function (cdf) at x, elementwise: the probability of at most x."""
    return -tnp.expm1(formula_of(logsf)(x, loc, scale))


@at_x
def logcdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of `cdf` at x, elementwise."""
    # log(1 - exp(-t)) with t = exp(y) is y - t/2 where t is small.
    y = standardize(x, loc, scale)
    small = y < -20
    return tnp.where(small, y - 0.5 * tnp.exp(tnp.where(small, y, 0)), log1m_exp(tnp.exp(tnp.where(small, 0, y))))


@at_x
def sf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the minimum Gumbel survival function at x, elementwise: the probability of more than x."""
    return tnp.exp(formula_of(logsf)(x, loc, scale))


@at_x
def logsf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the survival function `sf` at x, elementwise."""
    return -tnp.exp(standardize(x, loc, scale))


@at_p
def ppf(p: Any, loc: Any, scale: Any) -> Any:
    """Compute the minimum Gumbel quantile at p, elementwise: the inverse of `cdf`; nan unless p is from 0 to 1."""
    return only(scale > 0, loc + scale * quantile(p, lambda p: tnp.log(-tnp.log1p(-p))))


_complete_namespace(globals())
