"""The Laplace distribution: density exp(-|y|) / (2 scale), y = (x - loc) / scale."""

import math
import typing as _typing
from typing import Any

from tapeless.scipy.stats.evaluation import evaluated, exponential, standardized
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the Laplace density at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("laplace.logpdf", _logpdf, x, loc, scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the Laplace density (pdf) at x, elementwise.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("laplace.pdf", _pdf, x, loc, scale)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the Laplace distribution function (cdf) at x, elementwise: the probability of at most x.

    Operands broadcast; the result is nan unless scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("laplace.cdf", _cdf, x, loc, scale)


def _logpdf(x: Any, loc: Any, scale: Any) -> Any:
    return -tnp.abs(standardized(x, loc, scale)) - math.log(2) - tnp.log(scale)


def _cdf(x: Any, loc: Any, scale: Any) -> Any:
    y = standardized(x, loc, scale)
    tail = 0.5 * tnp.exp(tnp.where(y > 0, -y, y))  # -|y| has no derivative at 0
    return tnp.where(y > 0, 1 - tail, tail)


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
