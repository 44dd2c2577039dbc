"""Student's t distribution with df > 0 degrees of freedom: density proportional to (1 + y²/df)^(-(df + 1)/2)."""

import math
import typing as _typing
from typing import Any

import numpy as np

from tapeless.scipy.special_functions.gamma_relatives import poch
from tapeless.scipy.stats.evaluation import evaluated, exponential, log1p_square, standardized
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["logpdf", "pdf"]


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the Student's t density at x, elementwise.

    Operands broadcast; the result is nan unless df, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("t.logpdf", _logpdf, x, df, loc, scale)


def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the Student's t density (pdf) at x, elementwise.

    Operands broadcast; the result is nan unless df, scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("t.pdf", _pdf, x, df, loc, scale)


def _logpdf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    y, normal = standardized(x, loc, scale, df > 0), df == np.inf
    df = tnp.where((df > 0) & ~normal, df, 1)
    constant = tnp.log(poch(0.5 * df, 0.5)) - 0.5 * tnp.log(math.pi * df)
    power = 0.5 * (df + 1) * log1p_square(y / tnp.sqrt(df))
    limit = -0.5 * math.log(2 * math.pi) - 0.5 * (y * y)
    return tnp.where(normal, limit, constant - power) - tnp.log(scale)


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
