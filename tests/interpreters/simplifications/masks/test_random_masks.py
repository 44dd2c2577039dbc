"""Random masks: dropout masks single elements, and no residual by what a mask leaves of a sum."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.test_order_of_growth import before_emission, primitives

LAYERS, N = 3, 6
X, W = np.ones((4, N), np.float32), np.full((LAYERS, N, N), 0.1, np.float32)
IMAGES, KERNELS = np.ones((2, 5, 5, 3), np.float32), np.full((LAYERS, 3, 3, 3, 3), 0.1, np.float32)


def kept(key: Any, shape: tuple[int, ...]) -> Any:
    return tl.random.bernoulli(key, 0.9, shape)


def dropout(x: Any, key: Any) -> Any:
    return tnp.where(kept(key, x.shape), x / 0.9, 0)


def network(w: Any, x: Any, key: Any, drop: Callable[..., Any] = dropout) -> Any:
    for each in w:
        key, now = tl.random.split(key)
        x = drop(tnp.tanh(x @ each), now)
    return tnp.sum(x)


def scanned(w: Any, x: Any, key: Any) -> Any:
    def step(carry: Any, each: Any) -> Any:
        x, key = carry
        key, now = tl.random.split(key)
        return (dropout(tnp.tanh(x @ each), now), key), None

    return tnp.sum(lax.scan(step, (x, key), w)[0][0])


def convolutions(w: Any, x: Any, key: Any) -> Any:
    for each in w:
        key, now = tl.random.split(key)
        names = ("NHWC", "HWIO", "NHWC")
        x = dropout(lax.conv_general_dilated(x, each, (1, 1), "SAME", dimension_numbers=names), now)
    return tnp.sum(x**2)


def attention(w: Any, x: Any, key: Any) -> Any:
    q, k, v = (x @ each for each in w)
    weights = tl.nn.softmax(q @ k.T)
    return tnp.sum(tnp.tanh(dropout(dropout(weights, key) @ v, key)))


def mapped(w: Any, x: Any, key: Any) -> Any:
    return tnp.sum(tl.vmap(network, (None, 0, 0))(w, tnp.stack([x, x]), tl.random.split(key)))


PROGRAMS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "layers": (network, W, X),
    "layers of a jitted function": (lambda w, x, key: network(w, x, key, tl.jit(dropout)), W, X),
    "a scan of layers": (scanned, W, X),
    "convolutions": (convolutions, KERNELS, IMAGES),
    "attention": (attention, W, X),
    "layers of a batch": (mapped, W, X),
}


def reductions(f: Callable[..., Any], *args: Any) -> int:
    """Count the masks that a gradient reduces."""
    program = before_emission(tl.make_jaxpr(tl.value_and_grad(f))(*args).jaxpr)
    return primitives(program).count("reduce_or")


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_random_mask_is_reduced(name: str):
    f, w, x = PROGRAMS[name]
    assert reductions(f, w, x, tl.random.PRNGKey(0)) == 0


def test_a_mask_that_is_given_is_reduced():
    """Nothing says that it leaves something of every sum."""
    assert reductions(lambda w, x, mask: tnp.sum(tnp.where(mask, x @ w[0], 0)), W, X, X > 0) == 1


def test_a_mask_that_compares_random_bits_with_data_is_reduced():
    """An example whose bound is 0 is dropped as a whole."""

    def f(w: Any, x: Any, bound: Any, key: Any) -> Any:
        return tnp.sum(tnp.where(tl.random.uniform(key, x.shape) < bound[:, None], tnp.sqrt(x) @ w[0], 0))

    x, bound = np.ones_like(X), np.array([0.0, 1, 1, 1], np.float32)
    x[0] = 0
    gradient = tl.jit(tl.grad(f, 1))(W, x, bound, tl.random.PRNGKey(0))
    np.testing.assert_array_equal(gradient[0], 0)


@pytest.mark.parametrize("transformed", [lambda f: f, tl.jit])
def test_what_dropout_discards_does_no_harm(transformed: Callable[..., Any]):
    key = tl.random.PRNGKey(1)
    mask = np.asarray(kept(key, X.shape))
    assert not mask.all()
    x = np.where(mask, 1, 0).astype(np.float32)  # the derivative of the square root is infinite where it is dropped
    gradient = tl.grad(transformed(lambda x: tnp.sum(dropout(tnp.sqrt(x), key))))(x)
    np.testing.assert_allclose(gradient, np.where(mask, 0.5 / 0.9, 0), rtol=1e-6)


def test_a_long_chain_of_random_values():
    """It is followed only so far back."""

    def f(w: Any, x: Any, key: Any) -> Any:
        noise = tl.random.normal(key, x.shape)
        for _ in range(2000):
            noise = noise * 0.5 + noise
        return tnp.sum(tnp.where(noise > 0, x @ w[0], 0))

    assert reductions(tl.jit(f), W, X, tl.random.PRNGKey(0)) in (0, 1)


@pytest.mark.parametrize("transformed", [lambda f: f, tl.jit])
def test_functions_with_rules_of_their_own(transformed: Callable[..., Any]):
    """Those of Python are no programs while values are computed."""
    own = tl.custom_jvp(tnp.tanh)
    own.defjvp(lambda x, t: (tnp.tanh(x[0]), t[0]))
    key, x = tl.random.PRNGKey(2), tnp.asarray(X)

    def f(x: Any) -> Any:
        noise = own(tl.random.normal(key, x.shape))
        return tnp.sum(tnp.where(noise > 0, x, 0))

    expected = np.asarray(tl.random.normal(key, X.shape)) > 0
    np.testing.assert_array_equal(tl.grad(transformed(f))(x), expected)
