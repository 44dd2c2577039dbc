"""The uniform distribution from loc to loc + scale."""

from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import (
    at_q,
    at_x,
    clip_to_interval,
    formula_of,
    on_support,
    only,
    quantile,
    standardize,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


@at_x
def logpdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the uniform density at x, elementwise; -inf outside of the support."""
    y = standardize(x, loc, scale)
    return on_support(y, (y >= 0) & (y <= 1), -np.inf, 0.5, lambda y: 0 * y) - tnp.log(scale)


@at_x
def pdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the uniform density (pdf) at x, elementwise; 0 outside of the support."""
    return tnp.exp(formula_of(logpdf)(x, loc, scale))


@at_x
def cdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the uniform distribution function (cdf) at x, elementwise: the probability of at most x."""
    return clip_to_interval(standardize(x, loc, scale), 0, 1)


@at_q
def ppf(q: Any, loc: Any, scale: Any) -> Any:
    """Compute the uniform quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1."""
    return only(scale > 0, loc + scale * quantile(q, lambda q: q))


_complete_namespace(globals())
