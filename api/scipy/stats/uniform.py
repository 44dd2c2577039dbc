"""The uniform distribution from loc to loc + scale."""

import typing as _typing
from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import (
    clipped,
    evaluated,
    exponential,
    on_support,
    only,
    quantile,
    standardized,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the uniform density at x, elementwise; -inf outside of the support.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("uniform.logpdf", _logpdf, x, loc, scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the uniform density (pdf) at x, elementwise; 0 outside of the support.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("uniform.pdf", _pdf, x, loc, scale)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the uniform distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("uniform.cdf", _cdf, x, loc, scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the uniform quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("uniform.ppf", _ppf, q, loc, scale)


def _logpdf(x: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale)
    return on_support(y, (y >= 0) & (y <= 1), -np.inf, 0.5, lambda y: 0 * y) - tnp.log(scale)


def _cdf(x: Any, loc: Any, scale: Any) -> Any:
    return clipped(standardized(x, loc, scale), 0, 1)


def _ppf(q: Any, loc: Any, scale: Any) -> Any:
    return only(scale > 0, loc + scale * quantile(q, lambda q: q))


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
