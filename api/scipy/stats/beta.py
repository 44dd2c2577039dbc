"""The beta distribution: density y^(a-1) (1-y)^(b-1) / B(a, b) / scale, 0 <= y = (x - loc) / scale <= 1; a, b > 0."""

import typing as _typing
from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import (
    between,
    evaluated,
    exponential,
    log_probability,
    on_support,
    standardized,
)
from tapeless.scipy.stats.saddle_point import is_large, log_gamma, log_powers
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late
from tapeless.tracer.primitives.special import betainc, betaincc

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the beta density at x, elementwise; -inf outside of the support.

    Operands broadcast; the result is nan unless a, b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("beta.logpdf", _logpdf, x, a, b, loc, scale)


def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the beta density (pdf) at x, elementwise; 0 outside of the support.

    Operands broadcast; the result is nan unless a, b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("beta.pdf", _pdf, x, a, b, loc, scale)


def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the beta distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless a, b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("beta.cdf", _cdf, x, a, b, loc, scale)


def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of `cdf` at x, elementwise.

    Operands broadcast; the result is nan unless a, b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("beta.logcdf", _logcdf, x, a, b, loc, scale)


def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the beta survival function at x, elementwise: the probability of more than x.

    Operands broadcast; the result is nan unless a, b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("beta.sf", _sf, x, a, b, loc, scale)


def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the survival function `sf` at x, elementwise.

    Operands broadcast; the result is nan unless a, b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("beta.logsf", _logsf, x, a, b, loc, scale)


def _logpdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    valid = (a > 0) & (b > 0)
    y, a, b = standardized(x, loc, scale, valid), tnp.where(valid, a, 1), tnp.where(valid, b, 1)

    def formula(y: Any) -> Any:
        n = a + b - 1
        powers = log_powers(n, (a - 1, y, 1 - y), (b - 1, 1 - y, y)) + tnp.log(tnp.where(is_large(n), n, 1))
        return powers - log_gamma(a - 1, a) - log_gamma(b - 1, b) + log_gamma(n, a + b) - tnp.log(scale)

    return on_support(y, (y >= 0) & (y <= 1), -np.inf, 0.5, formula)


def _cdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale, (a > 0) & (b > 0))
    return between(y, 0, 1, (0, 1), lambda y: betainc(a, b, y))


def _sf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale, (a > 0) & (b > 0))
    return between(y, 0, 1, (1, 0), lambda y: betaincc(a, b, y))


def _logcdf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale, (a > 0) & (b > 0))
    return between(y, 0, 1, (-np.inf, 0), lambda y: log_probability(betainc(a, b, y), betaincc(a, b, y)))


def _logsf(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale, (a > 0) & (b > 0))
    return between(y, 0, 1, (0, -np.inf), lambda y: log_probability(betaincc(a, b, y), betainc(a, b, y)))


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
