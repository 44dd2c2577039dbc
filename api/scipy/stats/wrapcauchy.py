"""The wrapped Cauchy distribution of angles from 0 to 2 pi, for 0 < c < 1.

Its density is (1 - c²) / (2 pi (1 + c² - 2 c cos(y))) / scale, y = (x - loc) / scale.
"""

import math
from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import elementwise, formula_of, on_support, standardize
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["logpdf", "pdf"]


@elementwise(valid="0 < c < 1 and scale > 0")
def at_x(x: ArrayLike, c: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@at_x
def logpdf(x: Any, c: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the wrapped Cauchy density at x, elementwise; -inf outside of the support."""
    valid = (c > 0) & (c < 1)
    y, c = standardize(x, loc, scale, valid), tnp.where(valid, c, 0.5)

    def formula(y: Any) -> Any:
        nearness = tnp.square(1 - c) + 4 * c * tnp.square(tnp.sin(0.5 * y))  # 1 + c² - 2 c cos(y)
        return tnp.log1p(-c) + tnp.log1p(c) - math.log(2 * math.pi) - tnp.log(nearness) - tnp.log(scale)

    return on_support(y, (y >= 0) & (y <= 2 * math.pi), -np.inf, 1, formula)


@at_x
def pdf(x: Any, c: Any, loc: Any, scale: Any) -> Any:
    """Compute the wrapped Cauchy density (pdf) at x, elementwise; 0 outside of the support."""
    return tnp.exp(formula_of(logpdf)(x, c, loc, scale))


_complete_namespace(globals())
