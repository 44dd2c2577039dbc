"""The wrapped Cauchy distribution of angles from 0 to 2 pi, for 0 < c < 1.

Its density is (1 - c²) / (2 pi (1 + c² - 2 c cos(y))) / scale, y = (x - loc) / scale.
"""

import math
import typing as _typing
from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import evaluated, exponential, on_support, standardized
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["logpdf", "pdf"]


def logpdf(x: ArrayLike, c: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the logarithm of the wrapped Cauchy density at x, elementwise; -inf outside of the support.

    Operands broadcast; the result is nan unless 0 < c < 1 and scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("wrapcauchy.logpdf", _logpdf, x, c, loc, scale)


def pdf(x: ArrayLike, c: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Compute the wrapped Cauchy density (pdf) at x, elementwise; 0 outside of the support.

    Operands broadcast; the result is nan unless 0 < c < 1 and scale > 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("wrapcauchy.pdf", _pdf, x, c, loc, scale)


def _logpdf(x: Any, c: Any, loc: Any, scale: Any) -> Any:
    valid = (c > 0) & (c < 1)
    y, c = standardized(x, loc, scale, valid), tnp.where(valid, c, 0.5)

    def formula(y: Any) -> Any:
        nearness = tnp.square(1 - c) + 4 * c * tnp.square(tnp.sin(0.5 * y))  # 1 + c² - 2 c cos(y)
        return tnp.log1p(-c) + tnp.log1p(c) - math.log(2 * math.pi) - tnp.log(nearness) - tnp.log(scale)

    return on_support(y, (y >= 0) & (y <= 2 * math.pi), -np.inf, 1, formula)


_pdf = exponential(_logpdf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
