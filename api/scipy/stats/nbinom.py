"""The negative binomial distribution: k failures before the n-th success, of probability p each, for n > 0."""

from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import elementwise, formula_of, is_integer, on_support, only
from tapeless.scipy.stats.saddle_point import log_negative_binomial
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["logpmf", "pmf"]


@elementwise(valid="n > 0 and 0 < p <= 1")
def at_k(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array: ...


@at_k
def logpmf(k: Any, n: Any, p: Any, loc: Any) -> Any:
    """Compute the logarithm of the negative binomial probability of k, elementwise; -inf if k is impossible."""
    valid = (n > 0) & (p > 0) & (p <= 1)
    y, n, p = only(valid, k - loc), tnp.where(valid, n, 1), tnp.where(valid, p, 0.5)
    inside = (y >= 0) & is_integer(y)
    return on_support(y, inside, -np.inf, 0, lambda y: log_negative_binomial(y, n, p, 1 - p))


@at_k
def pmf(k: Any, n: Any, p: Any, loc: Any) -> Any:
    """Compute the negative binomial probability (pmf) of k, elementwise; 0 if k is impossible."""
    return tnp.exp(formula_of(logpmf)(k, n, p, loc))


_complete_namespace(globals())
