"""The truncated normal distribution: the standard normal on [a, b], a < b, shifted by loc and scaled by scale."""

import math
from typing import Any

import numpy as np

from tapeless.scipy.special_functions.from_lax import erf, log_ndtr, ndtr
from tapeless.scipy.stats.evaluation import (
    clip_to_interval,
    elementwise,
    formula_of,
    log1m_exp,
    log_probability,
    on_support,
    standardize,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@elementwise(valid="a < b and scale > 0")
def at_x(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@at_x
def logpdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the truncated normal density at x, elementwise; -inf outside of the support."""
    y = standardize(x, loc, scale, a < b)

    def formula(y: Any) -> Any:
        return -0.5 * (y * y) - 0.5 * math.log(2 * math.pi) - _log_mass(a, b) - tnp.log(scale)

    return on_support(y, (y >= a) & (y <= b), -np.inf, 0, formula)


@at_x
def pdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the truncated normal density (pdf) at x, elementwise; 0 outside of the support."""
    return tnp.exp(formula_of(logpdf)(x, a, b, loc, scale))


@at_x
def cdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the truncated normal distribution function (cdf) at x, elementwise: the probability of at most x."""
    return tnp.exp(formula_of(logcdf)(x, a, b, loc, scale))


@at_x
def logcdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of `cdf` at x, elementwise."""
    y = clip_to_interval(standardize(x, loc, scale, a < b), a, b)
    low, high = _log_mass(a, y) - _log_mass(a, b), _log_mass(y, b) - _log_mass(a, b)
    by_complement = low > -0.1
    return tnp.where(by_complement, tnp.log1p(-tnp.exp(tnp.where(by_complement, high, -1))), low)


@at_x
def sf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the truncated normal survival function at x, elementwise: the probability of more than x."""
    return tnp.exp(formula_of(logsf)(x, a, b, loc, scale))


@at_x
def logsf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the survival function `sf` at x, elementwise."""
    return formula_of(logcdf)(-x, -b, -a, -loc, scale)


def _log_mass(a: Any, b: Any) -> Any:
    """Compute the logarithm of the probability of a <= y <= b, by the lower tail if both are above 0."""
    empty, right = a >= b, a > 0
    a, b = tnp.where(empty, -1, a), tnp.where(empty, 1, b)
    a, b = tnp.where(right, -b, a), tnp.where(right, -a, b)
    tail = b <= 0
    low, high = _log_ndtr(a), _log_ndtr(tnp.where(tail, b, 0))
    below = high + log1m_exp(tnp.where(high > -np.inf, high - low, np.inf))
    a, b = tnp.where(tail, -1, a), tnp.where(tail, 1, b)
    across = log_probability(0.5 * (erf(b / math.sqrt(2)) - erf(a / math.sqrt(2))), ndtr(a) + ndtr(-b))
    return tnp.where(empty, -np.inf, tnp.where(tail, below, across))


def _log_ndtr(x: Any) -> Any:
    """Compute log_ndtr, with derivative 0 at -inf."""
    there = x > -np.inf
    return tnp.where(there | (x != x), log_ndtr(tnp.where(there, x, 0)), -np.inf)


_complete_namespace(globals())
