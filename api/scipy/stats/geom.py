"""The geometric distribution: the first success, of probability p each trial, is in trial k = 1, 2, ..."""

import typing as _typing
from typing import Any

import numpy as np

from tapeless.scipy.special_functions.entropies import xlog1py
from tapeless.scipy.stats.evaluation import evaluated, exponential, is_integer, on_support, only
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["logpmf", "pmf"]


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Compute the logarithm of the geometric probability of k, elementwise; -inf if k is impossible.

    Operands broadcast; the result is nan unless 0 < p <= 1.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("geom.logpmf", _logpmf, k, p, loc)


def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Compute the geometric probability (pmf) of k, elementwise; 0 if k is impossible.

    Operands broadcast; the result is nan unless 0 < p <= 1.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("geom.pmf", _pmf, k, p, loc)


def _logpmf(k: Any, p: Any, loc: Any) -> Any:
    valid = (p > 0) & (p <= 1)
    y, p = only(valid, k - loc), tnp.where(valid, p, 0.5)
    return on_support(y, (y >= 1) & is_integer(y), -np.inf, 1, lambda y: xlog1py(y - 1, -p) + tnp.log(p))


_pmf = exponential(_logpmf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
