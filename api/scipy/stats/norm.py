"""The normal distribution: density exp(-y²/2) / sqrt(2 pi) / scale, y = (x - loc) / scale."""

import math
from typing import Any

from tapeless.scipy.special_functions.from_lax import log_ndtr, ndtr, ndtri
from tapeless.scipy.stats.evaluation import at_q, at_x, formula_of, only, standardize
from tapeless.tracer import numpy as tnp
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@at_x
def logpdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the normal density at x, elementwise."""
    y = standardize(x, loc, scale)
    return -0.5 * (y * y) - tnp.log(scale) - 0.5 * math.log(2 * math.pi)


@at_x
def pdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the normal density (pdf) at x, elementwise."""
    return tnp.exp(formula_of(logpdf)(x, loc, scale))


@at_x
def cdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the normal distribution function (cdf) at x, elementwise: the probability of at most x."""
    return ndtr(standardize(x, loc, scale))


@at_x
def logcdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of `cdf` at x, elementwise."""
    return log_ndtr(standardize(x, loc, scale))


@at_x
def sf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the normal survival function at x, elementwise: the probability of more than x."""
    return ndtr(-standardize(x, loc, scale))


@at_x
def logsf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the survival function `sf` at x, elementwise."""
    return log_ndtr(-standardize(x, loc, scale))


@at_q
def ppf(q: Any, loc: Any, scale: Any) -> Any:
    """Compute the normal quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1."""
    return only(scale > 0, ndtri(q) * scale + loc)


@at_q
def isf(q: Any, loc: Any, scale: Any) -> Any:
    """Compute the inverse of the survival function `sf` at q, elementwise; nan unless q is from 0 to 1."""
    return only(scale > 0, loc - ndtri(q) * scale)


_complete_namespace(globals())
