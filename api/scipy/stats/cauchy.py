"""The Cauchy distribution: density 1 / (pi (1 + y²)) / scale, y = (x - loc) / scale."""

import math
import typing as _typing
from typing import Any

from tapeless.scipy.stats.evaluation import (
    evaluated,
    exponential,
    log1p_square,
    log_probability,
    only,
    quantile,
    standardized,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the Cauchy density at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("cauchy.logpdf", _logpdf, x, loc, scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the Cauchy density (pdf) at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("cauchy.pdf", _pdf, x, loc, scale)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the Cauchy distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("cauchy.cdf", _cdf, x, loc, scale)


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of `cdf` at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("cauchy.logcdf", _logcdf, x, loc, scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the Cauchy survival function at x, elementwise: the probability of more than x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("cauchy.sf", _sf, x, loc, scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the survival function `sf` at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("cauchy.logsf", _logsf, x, loc, scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the Cauchy quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("cauchy.ppf", _ppf, q, loc, scale)


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the inverse of the survival function `sf` at q, elementwise; nan unless q is from 0 to 1.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("cauchy.isf", _isf, q, loc, scale)


def _logpdf(x: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale)
    return -math.log(math.pi) - tnp.log(scale) - log1p_square(y)


def _cdf(x: Any, loc: Any, scale: Any) -> Any:
    return _below(standardized(x, loc, scale))


def _sf(x: Any, loc: Any, scale: Any) -> Any:
    return _below(-standardized(x, loc, scale))


def _logcdf(x: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale)
    return log_probability(_below(y), _below(-y))


def _logsf(x: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale)
    return log_probability(_below(-y), _below(y))


def _below(y: Any) -> Any:
    """Compute the probability of at most y, without cancellation far below 0."""
    return tnp.arctan2(1, -y) / math.pi


def _ppf(q: Any, loc: Any, scale: Any) -> Any:
    return only(scale > 0, loc + scale * quantile(q, _inverse))


def _isf(q: Any, loc: Any, scale: Any) -> Any:
    return only(scale > 0, loc - scale * quantile(q, _inverse))


def _inverse(q: Any) -> Any:
    """Compute tan(pi (q - 1/2)) from the smaller of q and 1 - q."""
    less = tnp.where(q < 0.5, q, 1 - q)
    tail = less < 0.25
    far = 1 / tnp.tan(math.pi * tnp.where(tail, less, 0.25))
    size = tnp.where(tail, far, tnp.tan(math.pi * (0.5 - tnp.where(tail, 0.25, less))))
    return tnp.where(q < 0.5, -size, size)


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
