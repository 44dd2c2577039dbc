"""The beta-binomial distribution: k successes in n trials, whose success probability is beta(a, b) distributed."""

from typing import Any

import numpy as np

from tapeless.scipy.stats.evaluation import elementwise, formula_of, is_integer, on_support, only
from tapeless.scipy.stats.saddle_point import log_negative_binomial
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["logpmf", "pmf"]


@elementwise(valid="n is a whole number >= 0, and a, b > 0")
def at_k(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array: ...


@at_k
def logpmf(k: Any, n: Any, a: Any, b: Any, loc: Any) -> Any:
    """Compute the logarithm of the beta-binomial probability of k, elementwise; -inf if k is impossible."""
    valid = (n >= 0) & is_integer(n) & (a > 0) & (b > 0)
    y, n, a, b = only(valid, k - loc), *(tnp.where(valid, v, 1) for v in (n, a, b))

    def formula(y: Any) -> Any:
        p, q = (a + b) / (a + b + n), n / (a + b + n)
        of_each = log_negative_binomial(y, a, p, q) + log_negative_binomial(n - y, b, p, q)
        return of_each - log_negative_binomial(n, a + b, p, q)

    return on_support(y, (y >= 0) & (y <= n) & is_integer(y), -np.inf, 0, formula)


@at_k
def pmf(k: Any, n: Any, a: Any, b: Any, loc: Any) -> Any:
    """Compute the beta-binomial probability (pmf) of k, elementwise; 0 if k is impossible."""
    return tnp.exp(formula_of(logpmf)(k, n, a, b, loc))


_complete_namespace(globals())
