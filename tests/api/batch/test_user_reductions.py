"""lax.reduce and lax.reduce_window by any function: against NumPy, against JAX, and in every transformation."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 5, 4)).astype(np.float32)
# Products of matrices [[a, b], [0, 1]]: associative, and not commutative.
PAIR = (RNG.normal(size=(5, 2)).astype(np.float32), RNG.normal(size=(5, 2)).astype(np.float32))


def affine(f: Any, g: Any) -> Any:
    return f[0] * g[0], f[0] * g[1] + f[1]


def softplus_sum(x: Any, y: Any) -> Any:
    return tnp.logaddexp(x, y)


@pytest.mark.parametrize("axes", [(0,), (1, 2), (0, 1, 2), ()])
def test_reduce(axes: tuple[int, ...]):
    expected = np.logaddexp.reduce(X, axis=axes) if axes else X
    found = tl.jit(lambda x: lax.reduce(x, -np.inf, softplus_sum, axes))(X)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    known = [(lax.add, np.add), (lax.mul, np.multiply), (lax.max, np.maximum), (lax.min, np.minimum)]
    both = [(f, lambda x, y, f=f: f(x, y)) for f, _ in known]
    every = tl.jit(lambda x: [[lax.reduce(x, 0.5, f, axes) for f in fs] for fs in both])(X)
    for pair, (_, g) in zip(every, known, strict=True):
        for found in pair:
            np.testing.assert_allclose(found, g(0.5, g.reduce(X, axis=axes) if axes else X), rtol=1e-4, atol=1e-5)


def test_order_is_kept_and_structures_are_taken():
    a, b = lax.reduce(PAIR, (np.float32(1), np.float32(0)), affine, [0])
    rows = [(PAIR[0][i], PAIR[1][i]) for i in range(5)]
    for found, expected in zip((a, b), functools.reduce(affine, rows), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_weak_types():
    for f in (lax.add, lambda x, y: x + y):
        for x, init, weak in ((2, 1, True), (2, tnp.int32(1), False), (tnp.int32(2), 1, False)):
            assert lax.reduce(tnp.broadcast_to(x, (3,)), init, f, (0,)).weak_type == weak


def test_integers_booleans_and_nothing():
    i = np.array([[5, 3], [6, 7]], np.int32)
    for f, g in ((lax.bitwise_and, np.bitwise_and), (lax.bitwise_or, np.bitwise_or), (lax.bitwise_xor, np.bitwise_xor)):
        np.testing.assert_array_equal(lax.reduce(i, -1 if f is lax.bitwise_and else 0, f, (0,)), g.reduce(i))
    np.testing.assert_array_equal(lax.reduce(i > 4, False, lambda x, y: x | y, (1,)), [True, True])
    empty = lax.reduce(np.zeros((0, 2), np.float32), 3.0, lambda x, y: x * y, (0,))
    np.testing.assert_array_equal(empty, [3.0, 3.0])
    assert lax.reduce(np.zeros((0, 2), np.float32), 3.0, lax.max, (0,)).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("f", [softplus_sum, lambda x, y: x * y + x + y], ids=["logaddexp", "polynomial"])
def test_transformations(f: Any):
    def reduced(x):
        return lax.reduce(x, -np.inf if f is softplus_sum else 0.0, f, (0,)).sum()

    def looped(x):
        return functools.reduce(f, [x[i] for i in range(x.shape[0])]).sum()

    for transform in (tl.grad, tl.vmap, lambda g: tl.vmap(tl.grad(g), 1), lambda g: tl.jacfwd(tl.grad(g))):
        ours, plain = (tl.jit(transform(g))(X[:, :2, :2]) for g in (reduced, looped))
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-5)


WINDOWS: list[dict[str, Any]] = [
    {"window_dimensions": (2, 3)},
    {"window_dimensions": (2, 2), "window_strides": (1, 2), "padding": "SAME"},
    {"window_dimensions": (3, 2), "padding": ((1, 0), (2, -1)), "window_dilation": (1, 2)},
    {"window_dimensions": (2, 2), "base_dilation": (2, 1), "padding": ((0, 1), (1, 1))},
    {"window_dimensions": (9, 1)},
]


def by_loop(x: Any, init: float, f: Any, padded: Any, dimensions: Any, strides: Any, dilation: Any) -> Any:
    starts = [
        range(0, n - (w - 1) * d, s) for n, w, s, d in zip(padded.shape, dimensions, strides, dilation, strict=True)
    ]
    out = np.zeros([len(s) for s in starts], x.dtype)
    for at, corner in zip(np.ndindex(*out.shape), itertools.product(*starts), strict=True):
        places = [c + np.arange(w) * d for c, w, d in zip(corner, dimensions, dilation, strict=True)]
        out[at] = functools.reduce(f, padded[np.ix_(*places)].ravel(), init)
    return out


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_windows(window: dict[str, Any]):
    x, init = X[0], np.float32(-np.inf)
    pads = (
        lax.padtype_to_pads(x.shape, window["window_dimensions"], window.get("window_strides", (1, 1)), "SAME")
        if (window.get("padding") == "SAME")
        else window.get("padding", ((0, 0), (0, 0)))
    )
    gaps = window.get("base_dilation", (1, 1))
    padded = np.asarray(lax.pad(x, init, [(lo, hi, g - 1) for (lo, hi), g in zip(pads, gaps, strict=True)]))
    shape = window["window_dimensions"], window.get("window_strides", (1, 1)), window.get("window_dilation", (1, 1))
    expected = by_loop(x, init, np.logaddexp, padded, *shape)
    sums = [lambda x, f=f: lax.reduce_window(x, 0.0, f, **window) for f in (lax.add, lambda a, b: a + b)]

    @tl.jit
    def computed(x: Any) -> Any:
        gradients = [tl.grad(lambda x, f=f: (f(x) ** 2).sum())(x) for f in sums]
        return lax.reduce_window(x, -np.inf, softplus_sum, **window), [f(x) for f in sums], gradients

    found, values, gradients = computed(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(*gradients, rtol=1e-4, atol=1e-5)


def test_agreement_with_jax():
    jax = pytest.importorskip("jax")
    for ours, theirs in (
        (lax.reduce(X, 1.0, lambda x, y: x * y, (1,)), jax.lax.reduce(X, 1.0, lambda x, y: x * y, (1,))),
        (
            lax.reduce_window(X[0], 1.0, lambda x, y: x * y, (2, 2), (1, 2), "SAME"),
            jax.lax.reduce_window(X[0], np.float32(1), lambda x, y: x * y, (2, 2), (1, 2), "SAME"),
        ),
    ):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_what_is_refused():
    with raises(ValueError, "reduce: operands of one shape are wanted, not float32[3,5,4], float32[5,4]."):
        lax.reduce((X, X[0]), (0.0, 0.0), affine, (0,))
    with pytest.raises(ValueError, match=r"reduce: operands and initial values differ in structure\.\n  "):
        lax.reduce((X, X), 0.0, affine, (0,))
    with raises(TypeError, "reduce: an initial value must be a scalar of float32, as operands are, not int32[]."):
        lax.reduce(X, np.array(0, np.int32), softplus_sum, (0,))
    with raises(TypeError, "reduce: the computation must give float32[] of float32[] and float32[], but gave bool[]."):
        lax.reduce(X, 0.0, lambda x, y: x > y, (0,))
    with raises(TypeError, "reduce: computation must be a function, not 3."):
        lax.reduce(X, 0.0, 3, (0,))


def test_small_names():
    assert lax.padtype_to_pads((5, 4), (2, 2), (1, 2), "SAME") == [(0, 1), (0, 0)]
    assert lax.padtype_to_pads((5, 4), (2, 2), (1, 2), "VALID") == [(0, 0), (0, 0)]
    of_arrays = lax.padtype_to_pads(np.array([5, 4]), np.array([2, 2]), np.array([1, 2]), "SAME")
    assert of_arrays == [(0, 1), (0, 0)] and {type(n) for pair in of_arrays for n in pair} == {int}
    keys, values = lax.sort_key_val(np.array([3, 1, 2]), np.array([0.3, 0.1, 0.2]))
    np.testing.assert_array_equal(keys, [1, 2, 3])
    np.testing.assert_array_equal(values, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(lax.reciprocal(np.array([2.0, 4.0])), [0.5, 0.25])
    np.testing.assert_array_equal(tl.vmap(tl.grad(lax.reciprocal))(np.array([2.0, 4.0])), [-0.25, -0.0625])
    np.testing.assert_array_equal(lax.index_in_dim(X, -1, 1), X[:, -1:])
    np.testing.assert_array_equal(lax.index_in_dim(X, 2, 2, keepdims=False), X[:, :, 2])
    with raises(IndexError, "index_in_dim: index 5 is out of range for axis 1 of float32[3,5,4]."):
        lax.index_in_dim(X, 5, 1)
