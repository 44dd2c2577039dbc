"""The Poisson distribution: k = 0, 1, 2, ... has probability mu^k exp(-mu) / k!, for mu >= 0."""

import math
from typing import Any

import numpy as np

from tapeless.scipy.special_functions.entropies import xlogy
from tapeless.scipy.special_functions.from_lax import gammaincc, gammaln
from tapeless.scipy.stats.evaluation import elementwise, formula_of, is_integer, on_support, only
from tapeless.scipy.stats.saddle_point import log_poisson
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


@elementwise(valid="mu >= 0")
def at_k(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array: ...


@elementwise(valid="mu >= 0")
def of_mu(mu: ArrayLike, loc: ArrayLike = 0) -> Array: ...


@at_k
def logpmf(k: Any, mu: Any, loc: Any) -> Any:
    """Compute the logarithm of the Poisson probability of k, elementwise; -inf if k is impossible."""
    y, mu = only(mu >= 0, k - loc), tnp.where(mu >= 0, mu, 1)
    inside = (y >= 0) & (y < np.inf) & is_integer(y)
    return on_support(y, inside, -np.inf, 0, lambda y: log_poisson(y, mu, y + 1))


@at_k
def pmf(k: Any, mu: Any, loc: Any) -> Any:
    """Compute the Poisson probability (pmf) of k, elementwise; 0 if k is impossible."""
    return tnp.exp(formula_of(logpmf)(k, mu, loc))


@at_k
def cdf(k: Any, mu: Any, loc: Any) -> Any:
    """Compute the Poisson distribution function (cdf) at k, elementwise: the probability of at most k."""
    y, mu = only(mu >= 0, k - loc), tnp.where(mu >= 0, mu, 1)
    inside = (y >= 0) & (y < np.inf)
    return on_support(y, inside, tnp.where(y < 0, 0, 1), 0, lambda y: gammaincc(tnp.floor(y) + 1, mu))


@of_mu
def entropy(mu: Any, loc: Any) -> Any:
    """Compute the entropy of the Poisson distribution in nats, elementwise."""
    # By a sum over k up to 250 where mu < 100, else by an asymptotic series.
    # Source: Evans, Boersma, Blachman & Jacobs 1988, "The entropy of a Poisson distribution", SIAM Review 30.
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


_complete_namespace(globals())
