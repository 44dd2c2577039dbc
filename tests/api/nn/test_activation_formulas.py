"""Activations against their formulas in float64, and what they refuse."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import nn
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X = np.array([-30.0, -6.0, -3.0, -1.0, -0.2, 0.4, 1.0, 3.0, 6.0, 30.0])
FORMULAS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "relu6": lambda x: np.clip(x, 0, 6),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "squareplus": lambda x: (x + np.sqrt(x**2 + 4)) / 2,
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "standardize": lambda x: (x - x.mean()) / np.sqrt(x.var() + 1e-5),
    "glu": lambda x: x[:5] / (1 + np.exp(-x[5:])),
    "logmeanexp": lambda x: np.log(np.mean(np.exp(x))),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name: str):
    np.testing.assert_allclose(getattr(nn, name)(X), FORMULAS[name](X), rtol=1e-12, atol=1e-13)
    small = np.asarray(getattr(nn, name)(X.astype(np.float16)))
    assert small.dtype == np.float16


@pytest.mark.parametrize("dtype, tolerance", [("bfloat16", 1e-2), ("float16", 1e-2), ("float32", 1e-4)])
def test_standardize_computes_moments_in_float32_at_least(dtype: str, tolerance: float):
    """The tolerance of narrow dtypes is half an ulp of values up to 4, that of float32 an ulp of the mean."""
    x = tnp.array(np.random.default_rng(0).normal(0, 1, (3, 64)) + np.array([[0.0], [8.0], [100.0]]), dtype)
    exact = np.asarray(x).astype(np.float64)
    expected = (exact - exact.mean(-1, keepdims=True)) / np.sqrt(exact.var(-1, keepdims=True) + 1e-5)
    for algorithm in ("stable",) if dtype == "float32" else ("stable", "fast"):
        y = nn.standardize(x, algorithm=algorithm)
        assert y.dtype == dtype
        np.testing.assert_allclose(np.asarray(y).astype(np.float64), expected, atol=tolerance)


def test_standardize_keeps_the_promoted_dtype():
    x = tnp.ones(3, tnp.float16)
    assert nn.standardize(x, mean=np.float16(1), variance=1.0).dtype == tnp.float16
    assert nn.standardize(x, mean=np.ones(3, np.float32)).dtype == tnp.float32
    assert nn.standardize(np.array([1, 2], np.int32)).dtype == tnp.float32


def test_log1mexp_has_no_cancellation():
    x = np.array([1e-12, 1e-3, 0.5, 0.7, 3.0, 40.0])
    exact = [np.log(1e-12), np.log(-np.expm1(-1e-3)), np.log(-np.expm1(-0.5)), np.log1p(-np.exp(-0.7))]
    np.testing.assert_allclose(nn.log1mexp(x)[:4], exact, rtol=1e-12)
    np.testing.assert_allclose(nn.log1mexp(x)[4:], np.log1p(-np.exp(-x[4:])), rtol=1e-12)
    np.testing.assert_allclose(tl.jit(tl.vmap(tl.grad(nn.log1mexp)))(x), 1 / np.expm1(x), rtol=1e-12)
    assert np.isnan(nn.log1mexp(-1.0)) and nn.log1mexp(0.0) == -np.inf


def test_what_is_refused():
    with raises(ValueError, "glu: axis 0 of float64[3] has an odd size."):
        nn.glu(X[:3])
    with raises(ValueError, "standardize: algorithm must be 'fast' or 'stable', not 'slow'."):
        nn.standardize(X, algorithm="slow")
