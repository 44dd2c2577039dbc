"""The Bernoulli distribution: 1 with probability p, else 0."""

import typing as _typing
from typing import Any

import numpy as np

from tapeless.scipy.special_functions.entropies import xlog1py, xlogy
from tapeless.scipy.stats.evaluation import evaluated, on_support, only, quantile
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Compute the logarithm of the Bernoulli probability of k, elementwise; -inf if k is impossible.

    Operands broadcast; the result is nan unless 0 <= p <= 1.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("bernoulli.logpmf", _logpmf, k, p, loc)


def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Compute the Bernoulli probability (pmf) of k, elementwise; 0 if k is impossible.

    Operands broadcast; the result is nan unless 0 <= p <= 1.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("bernoulli.pmf", _pmf, k, p, loc)


def cdf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Compute the Bernoulli distribution function (cdf) at k, elementwise: the probability of at most k.

    Operands broadcast; the result is nan unless 0 <= p <= 1.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("bernoulli.cdf", _cdf, k, p, loc)


def ppf(q: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Compute the Bernoulli quantile at q, elementwise: the inverse of `cdf`; nan unless q is from 0 to 1.

    Operands broadcast; the result is nan unless 0 <= p <= 1.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("bernoulli.ppf", _ppf, q, p, loc)


def _logpmf(k: Any, p: Any, loc: Any) -> Any:
    valid = (p >= 0) & (p <= 1)
    y, p = only(valid, k - loc), tnp.where(valid, p, 0.5)
    return on_support(y, (y == 0) | (y == 1), -np.inf, 0, lambda y: xlogy(y, p) + xlog1py(1 - y, -p))


def _cdf(k: Any, p: Any, loc: Any) -> Any:
    y = only((p >= 0) & (p <= 1), k - loc)
    return tnp.where(y < 0, 0, tnp.where(y >= 1, 1, only(y == y, 1 - p)))


def _ppf(q: Any, p: Any, loc: Any) -> Any:
    return only((p >= 0) & (p <= 1), loc + quantile(q, lambda q: tnp.where(q <= 1 - p, 0.0, 1.0)))


def _pmf(k: Any, p: Any, loc: Any) -> Any:
    y = only((p >= 0) & (p <= 1), k - loc)
    return on_support(y, (y == 0) | (y == 1), 0, 0, lambda y: tnp.where(y == 1, p, tnp.where(y == 0, 1 - p, y)))


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
