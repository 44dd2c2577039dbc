"""The gamma distribution: density y^(a-1) exp(-y) / gamma(a) / scale, y = (x - loc) / scale >= 0, for a > 0."""

import typing as _typing
from typing import Any

import numpy as np

from tapeless.scipy.special_functions.from_lax import gammainc, gammaincc
from tapeless.scipy.stats.evaluation import (
    between,
    evaluated,
    exponential,
    log_probability,
    on_support,
    standardized,
)
from tapeless.scipy.stats.saddle_point import log_poisson
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the gamma density at x, elementwise; -inf outside of the support.

    Operands broadcast; the result is nan unless a, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gamma.logpdf", _logpdf, x, a, loc, scale)


def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the gamma density (pdf) at x, elementwise; 0 outside of the support.

    Operands broadcast; the result is nan unless a, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gamma.pdf", _pdf, x, a, loc, scale)


def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the gamma distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless a, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gamma.cdf", _cdf, x, a, loc, scale)


def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of `cdf` at x, elementwise.

    Operands broadcast; the result is nan unless a, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gamma.logcdf", _logcdf, x, a, loc, scale)


def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the gamma survival function at x, elementwise: the probability of more than x.

    Operands broadcast; the result is nan unless a, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gamma.sf", _sf, x, a, loc, scale)


def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the survival function `sf` at x, elementwise.

    Operands broadcast; the result is nan unless a, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("gamma.logsf", _logsf, x, a, loc, scale)


def _logpdf(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    y, a = standardized(x, loc, scale, a > 0), tnp.where(a > 0, a, 1)

    def formula(y: Any) -> Any:
        return log_poisson(a - 1, y, a) - tnp.log(scale)

    return on_support(y, (y >= 0) & (y < np.inf), -np.inf, 1, formula)


def _cdf(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale, a > 0)
    return between(y, 0, np.inf, (0, 1), lambda y: gammainc(a, y))


def _sf(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale, a > 0)
    return between(y, 0, np.inf, (1, 0), lambda y: gammaincc(a, y))


def _logcdf(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale, a > 0)
    return between(y, 0, np.inf, (-np.inf, 0), lambda y: log_probability(gammainc(a, y), gammaincc(a, y)))


def _logsf(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale, a > 0)
    return between(y, 0, np.inf, (0, -np.inf), lambda y: log_probability(gammaincc(a, y), gammainc(a, y)))


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
