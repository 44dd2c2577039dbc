"""The logistic distribution: distribution function 1 / (1 + exp(-y)), y = (x - loc) / scale."""

from typing import Any

from tapeless.scipy.special_functions.from_lax import expit, logit
from tapeless.scipy.stats.evaluation import at_x, formula_of, only, quantile, standardize
from tapeless.tracer import numpy as tnp
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


@at_x
def logpdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the logistic density at x, elementwise."""
    y = tnp.abs(standardize(x, loc, scale))
    return -y - 2 * tnp.log1p(tnp.exp(-y)) - tnp.log(scale)


@at_x
def pdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logistic density (pdf) at x, elementwise."""
    return tnp.exp(formula_of(logpdf)(x, loc, scale))


@at_x
def cdf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logistic distribution function (cdf) at x, elementwise: the probability of at most x."""
    return expit(standardize(x, loc, scale))


@at_x
def sf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logistic survival function at x, elementwise: the probability of more than x."""
    return expit(-standardize(x, loc, scale))


@at_x
def ppf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the logistic quantile at x, elementwise: the inverse of `cdf`; nan unless x is from 0 to 1."""
    return only(scale > 0, loc + scale * quantile(x, logit))


@at_x
def isf(x: Any, loc: Any, scale: Any) -> Any:
    """Compute the inverse of the survival function `sf` at x, elementwise; nan unless x is from 0 to 1."""
    return only(scale > 0, loc - scale * quantile(x, logit))


_complete_namespace(globals())
