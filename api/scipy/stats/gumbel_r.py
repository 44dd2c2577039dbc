"""The Gumbel distribution of maxima: distribution function exp(-exp(-y)), y = (x - loc) / scale."""

import typing as _typing
from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import (
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
    """Compute the logarithm of the maximum Gumbel density at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gumbel_r.logpdf", _logpdf, x, loc, scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the maximum Gumbel density (pdf) at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gumbel_r.pdf", _pdf, x, loc, scale)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the maximum Gumbel distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gumbel_r.cdf", _cdf, x, loc, scale)


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of `cdf` at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gumbel_r.logcdf", _logcdf, x, loc, scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the maximum Gumbel survival function at x, elementwise: the probability of more than x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gumbel_r.sf", _sf, x, loc, scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the survival function `sf` at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gumbel_r.logsf", _logsf, x, loc, scale)


def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the maximum Gumbel quantile at p, elementwise: the inverse of `cdf`; nan unless p is from 0 to 1.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gumbel_r.ppf", _ppf, p, loc, scale)


def _logpdf(x: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale)
    return on_support(y, tnp.isfinite(y), -np.inf, 0, lambda y: -y - tnp.exp(-y)) - tnp.log(scale)


def _cdf(x: Any, loc: Any, scale: Any) -> Any:
    return tnp.exp(_logcdf(x, loc, scale))


def _logcdf(x: Any, loc: Any, scale: Any) -> Any:
    return -tnp.exp(-standardized(x, loc, scale))


def _sf(x: Any, loc: Any, scale: Any) -> Any:
    return -tnp.expm1(_logcdf(x, loc, scale))


def _logsf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute log(1 - exp(-t)) with t = exp(-y), as -y - t/2 where t is small."""
    y = -standardized(x, loc, scale)
    small = y < -20
    return tnp.where(small, y - 0.5 * tnp.exp(tnp.where(small, y, 0)), log1m_exp(tnp.exp(tnp.where(small, 0, y))))


def _ppf(p: Any, loc: Any, scale: Any) -> Any:
    return only(scale > 0, loc - scale * quantile(p, lambda p: tnp.log(-tnp.log(p))))


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
