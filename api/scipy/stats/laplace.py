"""The Laplace distribution: density exp(-|y|) / (2 scale), y = (x - loc) / scale."""

import math
from typing import Any

from tapeless.scipy.stats.evaluation import at_x, formula_of, standardize
from tapeless.tracer import numpy as tnp
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "logpdf", "pdf"]


@at_x
def logpdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the Laplace density at x, elementwise."""
    return -tnp.abs(standardize(x, loc, scale)) - math.log(2) - tnp.log(scale)


@at_x
def pdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the Laplace density (pdf) at x, elementwise."""
    return tnp.exp(formula_of(logpdf)(x, loc, scale))


@at_x
def cdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the Laplace distribution function (cdf) at x, elementwise: the probability of at most x."""
    y = standardize(x, loc, scale)
    tail = 0.5 * tnp.exp(tnp.where(y > 0, -y, y))  # -|y| has no derivative at 0
    return tnp.where(y > 0, 1 - tail, tail)


_complete_namespace(globals())
