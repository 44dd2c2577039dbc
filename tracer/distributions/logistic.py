"""The logistic distribution: distribution function 1 / (1 + exp(-y)), y = (x - loc) / scale."""

from typing import Any

from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.distributions.evaluation import evaluated, exponential, only, quantile, standardized
from tapeless.tracer.special import expit, logit

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at x, elementwise."""
    return evaluated("logistic.logpdf", _logpdf, x, loc, scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at x, elementwise."""
    return evaluated("logistic.pdf", _pdf, x, loc, scale)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x, elementwise."""
    return evaluated("logistic.cdf", _cdf, x, loc, scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x, elementwise."""
    return evaluated("logistic.sf", _sf, x, loc, scale)


def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile: the inverse of `cdf`, elementwise; nan unless x is from 0 to 1."""
    return evaluated("logistic.ppf", _ppf, x, loc, scale)


def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`, elementwise; nan unless x is from 0 to 1."""
    return evaluated("logistic.isf", _isf, x, loc, scale)


def _logpdf(x: Any, loc: Any, scale: Any) -> Any:
    y = tnp.abs(standardized(x, loc, scale))
    return -y - 2 * tnp.log1p(tnp.exp(-y)) - tnp.log(scale)


def _cdf(x: Any, loc: Any, scale: Any) -> Any:
    return expit(standardized(x, loc, scale))


def _sf(x: Any, loc: Any, scale: Any) -> Any:
    return expit(-standardized(x, loc, scale))


def _ppf(x: Any, loc: Any, scale: Any) -> Any:
    return only(scale > 0, loc + scale * quantile(x, logit))


def _isf(x: Any, loc: Any, scale: Any) -> Any:
    return only(scale > 0, loc - scale * quantile(x, logit))


_pdf = exponential(_logpdf)
