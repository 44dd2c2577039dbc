"""Student's t distribution with df > 0 degrees of freedom: density proportional to (1 + y²/df)^(-(df + 1)/2)."""

import math
from typing import Any

import numpy as np

from tapeless.scipy.special_functions.gamma_relatives import poch
from tapeless.scipy.stats.evaluation import elementwise, formula_of, log1p_square, standardize
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["logpdf", "pdf"]


@elementwise(valid="df, scale > 0")
def at_x(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@at_x
def logpdf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the Student's t density at x, elementwise."""
    y, normal = standardize(x, loc, scale, df > 0), df == np.inf
    df = tnp.where((df > 0) & ~normal, df, 1)
    constant = tnp.log(poch(0.5 * df, 0.5)) - 0.5 * tnp.log(math.pi * df)
    power = 0.5 * (df + 1) * log1p_square(y / tnp.sqrt(df))
    limit = -0.5 * math.log(2 * math.pi) - 0.5 * (y * y)
    return tnp.where(normal, limit, constant - power) - tnp.log(scale)


@at_x
def pdf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """Compute the Student's t density (pdf) at x, elementwise."""
    return tnp.exp(formula_of(logpdf)(x, df, loc, scale))


_complete_namespace(globals())
