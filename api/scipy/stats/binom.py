"""The binomial distribution: k successes in n trials, each of probability p.

n is a whole number, at least 0.
"""

from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import elementwise, formula_of, is_integer, on_support, only
from tapeless.scipy.stats.saddle_point import log_binomial
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["logpmf", "pmf"]


@elementwise(valid="n is a whole number >= 0, and 0 <= p <= 1")
def at_k(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array: ...


@at_k
def logpmf(k: Any, n: Any, p: Any, loc: Any) -> Any:
    """Compute the logarithm of the binomial probability of k, elementwise; -inf if k is impossible."""
    valid = (n >= 0) & is_integer(n) & (p >= 0) & (p <= 1)
    y, n, p = only(valid, k - loc), tnp.where(valid, n, 0), tnp.where(valid, p, 0.5)
    inside = (y >= 0) & (y <= n) & is_integer(y)
    return on_support(y, inside, -np.inf, 0, lambda y: log_binomial(y, n - y, p, 1 - p))


@at_k
def pmf(k: Any, n: Any, p: Any, loc: Any) -> Any:
    """Compute the binomial probability (pmf) of k, elementwise; 0 if k is impossible."""
    return tnp.exp(formula_of(logpmf)(k, n, p, loc))


_complete_namespace(globals())
