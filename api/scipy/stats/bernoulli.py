"""The Bernoulli distribution: 1 with probability p, else 0."""

from typing import Any

import numpy as np

from tapeless.scipy.special_functions.entropies import xlog1py, xlogy
from tapeless.scipy.stats.evaluation import elementwise, on_support, only, quantile
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


@elementwise(valid="0 <= p <= 1")
def at_k(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array: ...


@elementwise(valid="0 <= p <= 1")
def at_q(q: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array: ...


@at_k
def logpmf(k: Any, p: Any, loc: Any) -> Any:
    """Compute the logarithm of the Bernoulli probability of k, elementwise; -inf if k is impossible."""
    valid = (p >= 0) & (p <= 1)
    y, p = only(valid, k - loc), tnp.where(valid, p, 0.5)
    return on_support(y, (y == 0) | (y == 1), -np.inf, 0, lambda y: xlogy(y, p) + xlog1py(1 - y, -p))


@at_k
def pmf(k: Any, p: Any, loc: Any) -> Any:
    """Compute the Bernoulli probability (pmf) of k, elementwise; 0 if k is impossible."""
    y = only((p >= 0) & (p <= 1), k - loc)
    return on_support(y, (y == 0) | (y == 1), 0, 0, lambda y: tnp.where(y == 1, p, tnp.where(y == 0, 1 - p, y)))


@at_k
def cdf(k: Any, p: Any, loc: Any) -> Any:
    """Compute the Bernoulli distribution function (cdf) at k, elementwise: the probability of at most k."""
    y = only((p >= 0) & (p <= 1), k - loc)
    return tnp.where(y < 0, 0, tnp.where(y >= 1, 1, only(y == y, 1 - p)))


@at_q
def ppf(q: Any, p: Any, loc: Any) -> Any:
    """Compute the Bernoulli quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1."""
    return only((p >= 0) & (p <= 1), loc + quantile(q, lambda q: tnp.where(q <= 1 - p, 0.0, 1.0)))


_complete_namespace(globals())
