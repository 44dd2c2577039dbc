"""The exponential distribution: density exp(-y) / scale where y = (x - loc) / scale is at least 0."""

import typing as _typing
from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import (
    clipped,
    evaluated,
    exponential,
    log1m_exp,
    on_support,
    only,
    quantile,
    standardized,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the exponential density at x, elementwise; -inf outside of the support.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("expon.logpdf", _logpdf, x, loc, scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the exponential density (pdf) at x, elementwise; 0 outside of the support.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("expon.pdf", _pdf, x, loc, scale)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the exponential distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("expon.cdf", _cdf, x, loc, scale)


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of `cdf` at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("expon.logcdf", _logcdf, x, loc, scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the exponential survival function at x, elementwise: the probability of more than x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("expon.sf", _sf, x, loc, scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the survival function `sf` at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("expon.logsf", _logsf, x, loc, scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the exponential quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("expon.ppf", _ppf, q, loc, scale)


def _logpdf(x: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale)
    return on_support(y, y >= 0, -np.inf, 1, lambda y: -y) - tnp.log(scale)


def _cdf(x: Any, loc: Any, scale: Any) -> Any:
    return -tnp.expm1(_logsf(x, loc, scale))


def _logcdf(x: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale)
    return on_support(y, y >= 0, -np.inf, 1, log1m_exp)


def _sf(x: Any, loc: Any, scale: Any) -> Any:
    return tnp.exp(_logsf(x, loc, scale))


def _logsf(x: Any, loc: Any, scale: Any) -> Any:
    return -clipped(standardized(x, loc, scale), 0, np.inf)


def _ppf(q: Any, loc: Any, scale: Any) -> Any:
    return only(scale > 0, loc + scale * quantile(q, lambda q: -tnp.log1p(-q)))


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
