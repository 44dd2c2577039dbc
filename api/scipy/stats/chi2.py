"""The chi-squared distribution with df > 0 degrees of freedom: the gamma distribution of a = df/2 at scale 2 scale."""

import typing as _typing
from typing import Any

from tapeless.scipy.stats import gamma
from tapeless.scipy.stats.evaluation import evaluated
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the chi-squared density at x, elementwise; -inf outside of the support.

    Operands broadcast; the result is nan unless df, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("chi2.logpdf", _logpdf, x, df, loc, scale)


def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the chi-squared density (pdf) at x, elementwise; 0 outside of the support.

    Operands broadcast; the result is nan unless df, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("chi2.pdf", _pdf, x, df, loc, scale)


def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the chi-squared distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless df, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("chi2.cdf", _cdf, x, df, loc, scale)


def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of `cdf` at x, elementwise.

    Operands broadcast; the result is nan unless df, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("chi2.logcdf", _logcdf, x, df, loc, scale)


def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the chi-squared survival function at x, elementwise: the probability of more than x.

    Operands broadcast; the result is nan unless df, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("chi2.sf", _sf, x, df, loc, scale)


def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the survival function `sf` at x, elementwise.

    Operands broadcast; the result is nan unless df, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("chi2.logsf", _logsf, x, df, loc, scale)


def _logpdf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


def _pdf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    return gamma.pdf(x, df / 2, loc, 2 * scale)


def _cdf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    return gamma.cdf(x, df / 2, loc, 2 * scale)


def _logcdf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


def _sf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    return gamma.sf(x, df / 2, loc, 2 * scale)


def _logsf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    return gamma.logsf(x, df / 2, loc, 2 * scale)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
