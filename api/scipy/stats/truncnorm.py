"""The truncated normal distribution: the standard normal on [a, b], a < b, shifted by loc and scaled by scale."""

import math
import typing as _typing
from typing import Any

import numpy as np

from tapeless.scipy.special_functions.from_lax import erf, log_ndtr, ndtr
from tapeless.scipy.stats.evaluation import (
    clipped,
    evaluated,
    exponential,
    log1m_exp,
    log_probability,
    on_support,
    standardized,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the truncated normal density at x, elementwise; -inf outside of the support.

    Operands broadcast; the result is nan unless a < b and scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("truncnorm.logpdf", _logpdf, x, a, b, loc, scale)


def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the truncated normal density (pdf) at x, elementwise; 0 outside of the support.

    Operands broadcast; the result is nan unless a < b and scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("truncnorm.pdf", _pdf, x, a, b, loc, scale)


def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the truncated normal distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless a < b and scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("truncnorm.cdf", _cdf, x, a, b, loc, scale)


def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of `cdf` at x, elementwise.

    Operands broadcast; the result is nan unless a < b and scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("truncnorm.logcdf", _logcdf, x, a, b, loc, scale)


def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the truncated normal survival function at x, elementwise: the probability of more than x.

    Operands broadcast; the result is nan unless a < b and scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("truncnorm.sf", _sf, x, a, b, loc, scale)


def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the survival function `sf` at x, elementwise.

    Operands broadcast; the result is nan unless a < b and scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("truncnorm.logsf", _logsf, x, a, b, loc, scale)


def _logpdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale, a < b)

    def formula(y: Any) -> Any:
        return -0.5 * (y * y) - 0.5 * math.log(2 * math.pi) - _log_mass(a, b) - tnp.log(scale)

    return on_support(y, (y >= a) & (y <= b), -np.inf, 0, formula)


def _logcdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    y = clipped(standardized(x, loc, scale, a < b), a, b)
    low, high = _log_mass(a, y) - _log_mass(a, b), _log_mass(y, b) - _log_mass(a, b)
    by_complement = low > -0.1
    return tnp.where(by_complement, tnp.log1p(-tnp.exp(tnp.where(by_complement, high, -1))), low)


def _logsf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    return _logcdf(-x, -b, -a, -loc, scale)


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


_pdf, _cdf, _sf = exponential(_logpdf), exponential(_logcdf), exponential(_logsf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
