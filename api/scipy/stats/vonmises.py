"""The von Mises distribution of angles: density exp(kappa cos(y)) / (2 pi I0(kappa)) / scale, for kappa >= 0."""

import math
import typing as _typing
from typing import Any

from tapeless.scipy.special_functions.from_lax import i0e
from tapeless.scipy.stats.evaluation import evaluated, exponential, standardized
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["logpdf", "pdf"]


def logpdf(x: ArrayLike, kappa: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the von Mises density at x, elementwise.

    Operands broadcast; the result is nan unless kappa >= 0 and scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("vonmises.logpdf", _logpdf, x, kappa, loc, scale)


def pdf(x: ArrayLike, kappa: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the von Mises density (pdf) at x, elementwise.

    Operands broadcast; the result is nan unless kappa >= 0 and scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("vonmises.pdf", _pdf, x, kappa, loc, scale)


def _logpdf(x: Any, kappa: Any, loc: Any, scale: Any) -> Any:
    y, kappa = standardized(x, loc, scale, kappa >= 0), tnp.where(kappa >= 0, kappa, 0)
    return -2 * kappa * tnp.square(tnp.sin(0.5 * y)) - tnp.log(i0e(kappa)) - math.log(2 * math.pi) - tnp.log(scale)


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
