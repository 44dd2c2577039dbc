"""The Pareto distribution: density b / y^(b + 1) / scale where y = (x - loc) / scale is at least 1, for b > 0."""

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


def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the Pareto density at x, elementwise; -inf outside of the support.

    Operands broadcast; the result is nan unless b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("pareto.logpdf", _logpdf, x, b, loc, scale)


def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the Pareto density (pdf) at x, elementwise; 0 outside of the support.

    Operands broadcast; the result is nan unless b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("pareto.pdf", _pdf, x, b, loc, scale)


def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the Pareto distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("pareto.cdf", _cdf, x, b, loc, scale)


def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of `cdf` at x, elementwise.

    Operands broadcast; the result is nan unless b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("pareto.logcdf", _logcdf, x, b, loc, scale)


def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the Pareto survival function at x, elementwise: the probability of more than x.

    Operands broadcast; the result is nan unless b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("pareto.sf", _sf, x, b, loc, scale)


def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the survival function `sf` at x, elementwise.

    Operands broadcast; the result is nan unless b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("pareto.logsf", _logsf, x, b, loc, scale)


def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the Pareto quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1.

    Operands broadcast; the result is nan unless b, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("pareto.ppf", _ppf, q, b, loc, scale)


def _logpdf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale, b > 0)
    return on_support(y, y >= 1, -np.inf, 1, lambda y: tnp.log(b) - (b + 1) * tnp.log(y)) - tnp.log(scale)


def _cdf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    return -tnp.expm1(_logsf(x, b, loc, scale))


def _logcdf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale, b > 0)
    return on_support(y, y >= 1, -np.inf, 2, lambda y: log1m_exp(b * tnp.log(y)))


def _sf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    return tnp.exp(_logsf(x, b, loc, scale))


def _logsf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    return -b * tnp.log(clipped(standardized(x, loc, scale, b > 0), 1, np.inf))


def _ppf(q: Any, b: Any, loc: Any, scale: Any) -> Any:
    return only((scale > 0) & (b > 0), loc + scale * quantile(q, lambda q: tnp.exp(-tnp.log1p(-q) / b)))


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
