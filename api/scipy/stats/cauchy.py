"""The Cauchy distribution: density 1 / (pi (1 + y²)) / scale, y = (x - loc) / scale."""

import math
from typing import Any

from tapeless.scipy.stats.evaluation import (
    at_q,
    at_x,
    formula_of,
    log1p_square,
    log_probability,
    only,
    quantile,
    standardize,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@at_x
def logpdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the Cauchy density at x, elementwise."""
    y = standardize(x, loc, scale)
    return -math.log(math.pi) - tnp.log(scale) - log1p_square(y)


@at_x
def pdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the Cauchy density (pdf) at x, elementwise."""
    return tnp.exp(formula_of(logpdf)(x, loc, scale))


@at_x
def cdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the Cauchy distribution function (cdf) at x, elementwise: the probability of at most x."""
    return _below(standardize(x, loc, scale))


@at_x
def logcdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of `cdf` at x, elementwise."""
    y = standardize(x, loc, scale)
    return log_probability(_below(y), _below(-y))


@at_x
def sf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the Cauchy survival function at x, elementwise: the probability of more than x."""
    return _below(-standardize(x, loc, scale))


@at_x
def logsf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the survival function `sf` at x, elementwise."""
    y = standardize(x, loc, scale)
    return log_probability(_below(-y), _below(y))


@at_q
def ppf(q: Any, loc: Any, scale: Any) -> Any:
    """Compute the Cauchy quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1."""
    return only(scale > 0, loc + scale * quantile(q, _inverse))


@at_q
def isf(q: Any, loc: Any, scale: Any) -> Any:
    """Compute the inverse of the survival function `sf` at q, elementwise; nan unless q is from 0 to 1."""
    return only(scale > 0, loc - scale * quantile(q, _inverse))


def _below(y: Any) -> Any:
    """Compute the probability of at most y, without cancellation far below 0."""
    return tnp.arctan2(1, -y) / math.pi


def _inverse(q: Any) -> Any:
    """Compute tan(pi (q - 1/2)) from the smaller of q and 1 - q."""
    less = tnp.where(q < 0.5, q, 1 - q)
    tail = less < 0.25
    far = 1 / tnp.tan(math.pi * tnp.where(tail, less, 0.25))
    size = tnp.where(tail, far, tnp.tan(math.pi * (0.5 - tnp.where(tail, 0.25, less))))
    return tnp.where(q < 0.5, -size, size)


_complete_namespace(globals())
