"""The geometric distribution: the first success, of probability p each trial, is in trial k = 1, 2, ..."""

from typing import Any

import numpy as np

from tapeless.scipy.special_functions.entropies import xlog1py
from tapeless.scipy.stats.evaluation import elementwise, formula_of, is_integer, on_support, only
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["logpmf", "pmf"]


@elementwise(valid="0 < p <= 1")
def at_k(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array: ...


@at_k
def logpmf(k: Any, p: Any, loc: Any) -> Any:
    """Compute the logarithm of the geometric probability of k, elementwise; -inf if k is impossible."""
    valid = (p > 0) & (p <= 1)
    y, p = only(valid, k - loc), tnp.where(valid, p, 0.5)
    return on_support(y, (y >= 1) & is_integer(y), -np.inf, 1, lambda y: xlog1py(y - 1, -p) + tnp.log(p))


@at_k
def pmf(k: Any, p: Any, loc: Any) -> Any:
    """Compute the geometric probability (pmf) of k, elementwise; 0 if k is impossible."""
    return tnp.exp(formula_of(logpmf)(k, p, loc))


_complete_namespace(globals())
