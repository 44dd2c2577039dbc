"""Distributions made of other samplers: the samples of jax.random, derivatives by parameters, what is refused."""

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import random
from tapeless.random import gamma_family

F32 = np.float32
Case = Callable[[Any, Any], Any]
MEAN, COVARIANCE = np.array([1, 2], F32), np.array([[2, 0.3], [0.3, 1]], F32)
OUTCOMES = np.array([0.2, 0.5, 0.3], F32)

# The same call of either library. Softmax, norms and einsum sum in an order of their own.
CASES: dict[str, Case] = {
    "gamma": lambda r, k: r.gamma(k, np.array([0.1, 0.5, 1, 3, 20], F32), (40, 5)),
    "gamma of one number": lambda r, k: r.gamma(k, 0.3),
    "gamma, none": lambda r, k: r.gamma(k, 2.0, (0, 3)),
    "loggamma": lambda r, k: r.loggamma(k, np.array([0.001, 0.5, 1, 3, 20], F32), (20, 5)),
    "beta": lambda r, k: r.beta(k, np.array([0.5, 2], F32), 3.0, (50, 2)),
    "dirichlet": lambda r, k: r.dirichlet(k, np.array([0.5, 2, 1], F32), (50,)),
    "dirichlet of a batch": lambda r, k: r.dirichlet(k, np.ones((4, 3), F32)),
    "chisquare": lambda r, k: r.chisquare(k, 3.0, (50,)),
    "f": lambda r, k: r.f(k, 3.0, 5.0, (50,)),
    "t": lambda r, k: r.t(k, 3.0, (50,)),
    "generalized_normal": lambda r, k: r.generalized_normal(k, 1.5, (50,)),
    "ball": lambda r, k: r.ball(k, 3, 2, (50,)),
    "ball of sums": lambda r, k: r.ball(k, 4, p=1.0),
    "lognormal": lambda r, k: r.lognormal(k, np.array([0.5, 2], F32), (50, 2)),
    "maxwell": lambda r, k: r.maxwell(k, (50,)),
    "double_sided_maxwell": lambda r, k: r.double_sided_maxwell(k, 1.0, 2.0, (50,)),
    "double_sided_maxwell of a batch": lambda r, k: r.double_sided_maxwell(k, np.arange(3, dtype=F32), 2.0),
    "pareto": lambda r, k: r.pareto(k, np.array([0.5, 2], F32)),
    "rayleigh": lambda r, k: r.rayleigh(k, np.array([0.5, 2], F32), (50, 2)),
    "triangular": lambda r, k: r.triangular(k, -1.0, 0.3, 2.0, (50,)),
    "wald": lambda r, k: r.wald(k, np.array([0.5, 2], F32), (50, 2)),
    "weibull_min": lambda r, k: r.weibull_min(k, 2.0, 1.7, (50,)),
    "geometric": lambda r, k: r.geometric(k, np.array([0.05, 0.5, 0.9], F32), (50, 3)),
    "multivariate_normal": lambda r, k: r.multivariate_normal(k, MEAN, COVARIANCE, (50,)),
    "multivariate_normal by eigh": lambda r, k: r.multivariate_normal(k, MEAN, COVARIANCE, method="eigh"),
    "multivariate_normal by svd": lambda r, k: r.multivariate_normal(
        k, np.zeros((5, 2), F32), COVARIANCE, method="svd"
    ),
    "poisson": lambda r, k: r.poisson(k, np.array([0, 0.5, 3, 9.9, 10, 50, 1e4], F32), (30, 7)),
    "poisson of int16": lambda r, k: r.poisson(k, 4.0, (60,), "int16"),
    "binomial": lambda r, k: r.binomial(k, np.array([0, 5, 10, 1e4, np.inf, -1, 7.5], F32), np.array(RATES, F32)),
    "multinomial": lambda r, k: r.multinomial(k, 50.0, OUTCOMES),
    "multinomial of a batch": lambda r, k: r.multinomial(k, np.array([5, 200], F32), OUTCOMES, shape=(2, 3)),
}
RATES = [[0.1], [0.5], [0.9], [np.nan], [-0.2]]
needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="compared with jax")


def test_the_dtype_that_is_asked_for():
    one, names = F32(1), "beta chisquare f gamma generalized_normal loggamma pareto rayleigh t wald lognormal".split()
    for dtype in ("float16", "float32", "float64"):
        for name in names:
            numbers = [one] * (2 if name in ("beta", "f") else 1)
            draw = partial(getattr(random, name), shape=(3,), dtype=dtype)
            assert tl.eval_shape(draw, random.key(0), *numbers).dtype == dtype, name
        points = tl.eval_shape(partial(random.dirichlet, shape=(2,), dtype=dtype), random.key(0), np.ones(3, F32))
        assert (points.shape, points.dtype) == ((2, 3), dtype)


@needs_jax
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_jax(name: str):
    jax_random = importlib.import_module("jax.random")
    ours, theirs = (
        np.asarray(CASES[name](random, random.key(7))),
        np.asarray(CASES[name](jax_random, jax_random.key(7))),
    )
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(ours, theirs, rtol=4 * np.finfo(F32).eps)  # exponents and quotients, each to an ulp


# Mean and variance, and the mean of the derivative by a parameter.
MOMENTS: dict[str, tuple[Callable[[Any, Any], Any], float, float, float]] = {
    "gamma": (lambda k, a: random.gamma(k, a, (N,)), 0.7, 0.7, 1.0),
    "gamma of a large shape": (lambda k, a: random.gamma(k, a, (N,)), 6.0, 6.0, 1.0),
    "exponential of loggamma": (lambda k, a: tnp.exp(random.loggamma(k, a, (N,))), 2.0, 2.0, 1.0),
    "chisquare": (lambda k, a: random.chisquare(k, a, (N,)), 3.0, 6.0, 1.0),
    "beta": (lambda k, a: random.beta(k, a, 2.0, (N,)), 0.5, 0.05, 0.125),
    "rayleigh": (lambda k, a: random.rayleigh(k, a, (N,)), 1.2533 * 1.5, 0.4292 * 2.25, 1.2533),
    "wald": (lambda k, a: random.wald(k, a, (N,)), 0.5, 0.125, 1.0),
    "poisson of few": (lambda k, a: random.poisson(k, a, (N,)).astype(F32), 3.0, 3.0, 0.0),
    "poisson of many": (lambda k, a: random.poisson(k, a, (N,)).astype(F32), 40.0, 40.0, 0.0),
    "binomial": (lambda k, a: random.binomial(k, 10 * a, 0.3, (N,)), 9.0, 6.3, 0.0),
}
AT = {"gamma": 0.7, "gamma of a large shape": 6.0, "exponential of loggamma": 2.0, "chisquare": 3.0, "beta": 2.0}
AT |= {"rayleigh": 1.5, "wald": 0.5, "poisson of few": 3.0, "poisson of many": 40.0, "binomial": 3.0}
N = 20_000


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name: str):
    sample, mean, variance, slope = MOMENTS[name]
    key, at = random.key(3), F32(AT[name])
    both = tl.jit(lambda a: tl.jvp(lambda a: sample(key, a), (a,), (F32(1),)))(at)
    x, moved = [np.asarray(y, np.float64) for y in both]
    by_parameter = moved.mean()
    deviation = (variance / N) ** 0.5  # of the mean
    assert abs(x.mean() - mean) < 5 * deviation
    assert abs(x.var() / variance - 1) < 0.2  # a fourth moment would say how exact
    assert abs(by_parameter - slope) < 0.1 * max(slope, 0.1)


@pytest.mark.parametrize("name", ["gamma", "loggamma", "beta", "wald", "t", "pareto"])
def test_derivatives(name: str):
    """In both modes, mapped and compiled."""

    def sample(a: Any) -> Any:
        more = (2.0,) if name == "beta" else ()
        return getattr(random, name)(random.key(1), a, *more, shape=(6,))

    a, weights = F32(1.7), np.linspace(0.5, 1.5, 6, dtype=F32)
    pushed = tl.jvp(sample, (a,), (F32(1),))[1]
    pulled = tl.grad(lambda a: tnp.sum(sample(a) * weights))(a)
    np.testing.assert_allclose(tnp.sum(pushed * weights), pulled, rtol=1e-5)  # a few ulp of float32, here and below
    np.testing.assert_allclose(tl.jit(tl.jacfwd(sample))(a), pushed, rtol=1e-4)
    each = tl.vmap(tl.jacfwd(sample))(np.array([a, a], F32))
    np.testing.assert_allclose(each, np.stack([pushed] * 2), rtol=1e-4)
    if name in ("wald", "pareto"):  # gamma numbers move along their quantiles, not as they are accepted
        h = F32(1e-3)
        moved = (np.asarray(sample(a + h)) - np.asarray(sample(a - h))) / (2 * h)
        np.testing.assert_allclose(moved, pushed, rtol=2e-2, atol=2e-3)  # differences of float32


def test_the_dtype_of_keys():
    assert random.key_dtype() == random.key(0).dtype
    assert random.key_dtype("rbg") == random.key(0, impl="rbg").dtype
    with pytest.raises(
        ValueError, match="key_dtype: the generators are threefry2x32, rbg, unsafe_rbg; there is no 'x'"
    ):
        random.key_dtype("x")


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "no key": (lambda k: random.gamma(3, 1.0), TypeError, "gamma: 3 is not a key"),
    "no float": (lambda k: random.gamma(k, 1.0, dtype="int32"), TypeError, "gamma: the dtype must be floating point"),
    "another shape": (
        lambda k: random.beta(k, np.ones(3, F32), 1.0, (2,)),
        ValueError,
        r"beta: a, of shape \(3,\), does not broadcast to shape \(2,\)",
    ),
    "no axis": (lambda k: random.dirichlet(k, 1.0), ValueError, "dirichlet: alpha must have an axis"),
    "no outcomes": (lambda k: random.multinomial(k, 5, 0.5), ValueError, "multinomial: p must have an axis"),
    "no method": (
        lambda k: random.multivariate_normal(k, MEAN, COVARIANCE, method="lu"),
        ValueError,
        "multivariate_normal: the method must be",
    ),
    "another size": (
        lambda k: random.multivariate_normal(k, MEAN, np.eye(3, dtype=F32)),
        ValueError,
        r"not of shapes \(2,\) and \(3, 3\)",
    ),
    "counts of floats": (lambda k: random.poisson(k, 3.0, dtype="float32"), TypeError, "poisson: the dtype must be"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str):
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call(random.key(0))


def test_derivatives_at_tiny_parameters_are_finite():
    """Samples are 0 or 1 there, as exp(-infinity), and their derivatives 0; those of logarithms are large."""
    key, a = tl.random.key(0), np.array([1e-30, 1e-10, 1e-4, 0.3], np.float32)

    def draws(a):
        return tl.random.chisquare(key, a), tl.random.beta(key, a, a[::-1]), tl.random.dirichlet(key, a)

    def derivatives(a):
        values, pull = tl.vjp(draws, a)
        return values, tl.jvp(draws, (a,), (tnp.ones_like(a),))[1], pull(values)

    assert all(np.isfinite(x).all() for x in tl.tree.leaves(tl.jit(derivatives)(a)))
    a, y = np.array([0.01, 0.01, 0.3]), np.array([-36.5, -37.5, -37.2])
    slopes = gamma_family._loggamma_slope(a, y)  # -dF/da / (dF/dy) of F = gammainc(a, exp(y)), by mpmath
    np.testing.assert_allclose(slopes, [3593.911454213133, 3693.911454213133, 123.43603037044402], rtol=1e-12)
