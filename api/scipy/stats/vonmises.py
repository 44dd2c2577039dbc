"""The von Mises distribution of angles: density exp(kappa cos(y)) / (2 pi I0(kappa)) / scale, for kappa >= 0."""

import math
from typing import Any

from tapeless.scipy.special_functions.from_lax import i0e
from tapeless.scipy.stats.evaluation import elementwise, formula_of, standardize
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["logpdf", "pdf"]


@elementwise(valid="kappa >= 0 and scale > 0")
def at_x(x: ArrayLike, kappa: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@at_x
def logpdf(x: Any, kappa: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the von Mises density at x, elementwise."""
    y, kappa = standardize(x, loc, scale, kappa >= 0), tnp.where(kappa >= 0, kappa, 0)
    return -2 * kappa * tnp.square(tnp.sin(0.5 * y)) - tnp.log(i0e(kappa)) - math.log(2 * math.pi) - tnp.log(scale)


@at_x
def pdf(x: Any, kappa: Any, loc: Any, scale: Any) -> Any:
    """Compute the von Mises density (pdf) at x, elementwise."""
    return tnp.exp(formula_of(logpdf)(x, kappa, loc, scale))


_complete_namespace(globals())
