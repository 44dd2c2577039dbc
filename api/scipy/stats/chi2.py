"""The chi-squared distribution with df > 0 degrees of freedom: the gamma distribution of a = df/2 at scale 2 scale."""

from typing import Any

from tapeless.scipy.stats import gamma
from tapeless.scipy.stats.evaluation import elementwise, formula_of
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@elementwise(valid="df, scale > 0")
def at_x(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@at_x
def logpdf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the chi-squared density at x, elementwise; -inf outside of the support."""
    return formula_of(gamma.logpdf)(x, df / 2, loc, 2 * scale)


@at_x
def pdf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """Compute the chi-squared density (pdf) at x, elementwise; 0 outside of the support."""
    return formula_of(gamma.pdf)(x, df / 2, loc, 2 * scale)


@at_x
def cdf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """Compute the chi-squared distribution function (cdf) at x, elementwise: the probability of at most x."""
    return formula_of(gamma.cdf)(x, df / 2, loc, 2 * scale)


@at_x
def logcdf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of `cdf` at x, elementwise."""
    return formula_of(gamma.logcdf)(x, df / 2, loc, 2 * scale)


@at_x
def sf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """Compute the chi-squared survival function at x, elementwise: the probability of more than x."""
    return formula_of(gamma.sf)(x, df / 2, loc, 2 * scale)


@at_x
def logsf(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """Compute the logarithm of the survival function `sf` at x, elementwise."""
    return formula_of(gamma.logsf)(x, df / 2, loc, 2 * scale)


_complete_namespace(globals())
