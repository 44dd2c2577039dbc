"""The logistic distribution: distribution function 1 / (1 + exp(-y)), y = (x - loc) / scale."""

import typing as _typing
from typing import Any

from tapeless.scipy.special_functions.from_lax import expit, logit
from tapeless.scipy.stats.evaluation import evaluated, exponential, only, quantile, standardized
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the logistic density at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("logistic.logpdf", _logpdf, x, loc, scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logistic density (pdf) at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("logistic.pdf", _pdf, x, loc, scale)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logistic distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("logistic.cdf", _cdf, x, loc, scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logistic survival function at x, elementwise: the probability of more than x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("logistic.sf", _sf, x, loc, scale)


def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logistic quantile at x, elementwise: the inverse of `cdf`; nan unless x is from 0 to 1.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("logistic.ppf", _ppf, x, loc, scale)


def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the inverse of the survival function `sf` at x, elementwise; nan unless x is from 0 to 1.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("logistic.isf", _isf, x, loc, scale)


def _logpdf(x: Any, loc: Any, scale: Any) -> Any:
    y = tnp.abs(standardized(x, loc, scale))
    return -y - 2 * tnp.log1p(tnp.exp(-y)) - tnp.log(scale)


def _cdf(x: Any, loc: Any, scale: Any) -> Any:
    return expit(standardized(x, loc, scale))


def _sf(x: Any, loc: Any, scale: Any) -> Any:
    return expit(-standardized(x, loc, scale))


def _ppf(x: Any, loc: Any, scale: Any) -> Any:
    return only(scale > 0, loc + scale * quantile(x, logit))


def _isf(x: Any, loc: Any, scale: Any) -> Any:
    return only(scale > 0, loc - scale * quantile(x, logit))


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
