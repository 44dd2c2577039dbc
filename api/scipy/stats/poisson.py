"""The Poisson distribution: k = 0, 1, 2, ... has probability mu^k exp(-mu) / k!, for mu >= 0."""

import math
import typing as _typing
from typing import Any

import numpy as np

from tapeless.scipy.special_functions.entropies import xlogy
from tapeless.scipy.special_functions.from_lax import gammaincc, gammaln
from tapeless.scipy.stats.evaluation import evaluated, exponential, is_integer, on_support, only
from tapeless.scipy.stats.saddle_point import log_poisson
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Compute the logarithm of the Poisson probability of k, elementwise; -inf if k is impossible.

    Operands broadcast; the result is nan unless mu >= 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("poisson.logpmf", _logpmf, k, mu, loc)


def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Compute the Poisson probability (pmf) of k, elementwise; 0 if k is impossible.

    Operands broadcast; the result is nan unless mu >= 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("poisson.pmf", _pmf, k, mu, loc)


def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Compute the Poisson distribution function (cdf) at k, elementwise: the probability of at most k.

    Operands broadcast; the result is nan unless mu >= 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("poisson.cdf", _cdf, k, mu, loc)


def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Compute the entropy of the Poisson distribution in nats, elementwise.

    Operands broadcast; the result is nan unless mu >= 0.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    """
    return evaluated("poisson.entropy", _entropy, mu, loc)


def _logpmf(k: Any, mu: Any, loc: Any) -> Any:
    y, mu = only(mu >= 0, k - loc), tnp.where(mu >= 0, mu, 1)
    inside = (y >= 0) & (y < np.inf) & is_integer(y)
    return on_support(y, inside, -np.inf, 0, lambda y: log_poisson(y, mu, y + 1))


def _cdf(k: Any, mu: Any, loc: Any) -> Any:
    y, mu = only(mu >= 0, k - loc), tnp.where(mu >= 0, mu, 1)
    inside = (y >= 0) & (y < np.inf)
    return on_support(y, inside, tnp.where(y < 0, 0, 1), 0, lambda y: gammaincc(tnp.floor(y) + 1, mu))


def _entropy(mu: Any, loc: Any) -> Any:
    """Compute the entropy by a sum over k up to 250 where mu < 100, else by an asymptotic series.

    Source: Evans, Boersma, Blachman & Jacobs 1988, "The entropy of a Poisson distribution", SIAM Review 30.
    """
    mu = only(mu >= 0, mu) + 0 * loc
    near = ~(mu >= 100)
    few = tnp.where(near, mu, 1)
    k = tnp.arange(250, dtype=mu.dtype).reshape((250,) + (1,) * mu.ndim)
    logarithms = xlogy(k, few) - gammaln(k + 1) - few
    there = logarithms > -np.inf
    finite = tnp.where(there, logarithms, 0)
    by_sum = tnp.sum(tnp.where(there, -finite * tnp.exp(finite), only(logarithms == logarithms, 0)), axis=0)
    r = 1 / tnp.where(near, 100, mu)
    tail = r * (1 / 12 + r * (1 / 24 + r * (19 / 360 + r * 9 / 80)))
    return tnp.where(near, by_sum, 0.5 * math.log(2 * math.pi * math.e) - 0.5 * tnp.log(r) - tail)


_pmf = exponential(_logpmf)


if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
