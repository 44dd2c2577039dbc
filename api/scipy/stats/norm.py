"""The normal distribution: density exp(-y²/2) / sqrt(2 pi) / scale, y = (x - loc) / scale."""

import math
import typing as _typing
from typing import Any

from tapeless.scipy.special_functions.from_lax import log_ndtr, ndtr, ndtri
from tapeless.scipy.stats.evaluation import evaluated, exponential, only, standardized
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the normal density at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("norm.logpdf", _logpdf, x, loc, scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the normal density (pdf) at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("norm.pdf", _pdf, x, loc, scale)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the normal distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("norm.cdf", _cdf, x, loc, scale)


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of `cdf` at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("norm.logcdf", _logcdf, x, loc, scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the normal survival function at x, elementwise: the probability of more than x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("norm.sf", _sf, x, loc, scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the survival function `sf` at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("norm.logsf", _logsf, x, loc, scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the normal quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("norm.ppf", _ppf, q, loc, scale)


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the inverse of the survival function `sf` at q, elementwise; nan unless q is from 0 to 1.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("norm.isf", _isf, q, loc, scale)


def _logpdf(x: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale)
    return -0.5 * (y * y) - tnp.log(scale) - 0.5 * math.log(2 * math.pi)


def _cdf(x: Any, loc: Any, scale: Any) -> Any:
    return ndtr(standardized(x, loc, scale))


def _sf(x: Any, loc: Any, scale: Any) -> Any:
    return ndtr(-standardized(x, loc, scale))


def _logcdf(x: Any, loc: Any, scale: Any) -> Any:
    return log_ndtr(standardized(x, loc, scale))


def _logsf(x: Any, loc: Any, scale: Any) -> Any:
    return log_ndtr(-standardized(x, loc, scale))


def _ppf(q: Any, loc: Any, scale: Any) -> Any:
    return only(scale > 0, ndtri(q) * scale + loc)


def _isf(q: Any, loc: Any, scale: Any) -> Any:
    return only(scale > 0, loc - ndtri(q) * scale)


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
