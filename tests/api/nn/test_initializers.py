"""Initializers: JAX's numbers for JAX's keys, and, without JAX, the moments and the orthogonality they are made for."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.nn import initializers
from tests.messages import raises

SHAPE = (3, 4, 5)
MADE: dict[str, Any] = {
    "zeros": lambda m: m.zeros,
    "ones": lambda m: m.ones,
    "constant": lambda m: m.constant(np.arange(5)),
    "uniform": lambda m: m.uniform(),
    "normal": lambda m: m.normal(0.5),
    "truncated_normal": lambda m: m.truncated_normal(lower=-1.0),
    **{
        name: lambda m, name=name: getattr(m, name)()
        for name in (
            "glorot_uniform glorot_normal lecun_uniform lecun_normal he_uniform he_normal xavier_uniform xavier_normal "
            "kaiming_uniform kaiming_normal orthogonal delta_orthogonal"
        ).split()
    },
    "axes": lambda m: m.he_normal(in_axis=(0, 1), out_axis=2),
    "batch_axis": lambda m: m.variance_scaling(2.0, "fan_geo_avg", "normal", batch_axis=0),
    "fan_out": lambda m: m.variance_scaling(2.0, "fan_out", "uniform"),
    "columns first": lambda m: m.orthogonal(2.0, column_axis=0),
    "half": lambda m: m.lecun_normal(dtype="float16"),
}
REAL = {"uniform", "truncated_normal"}


@pytest.mark.parametrize("name", MADE)
def test_numbers_of_jax(name: str):
    theirs = pytest.importorskip("jax.nn.initializers")
    jax = pytest.importorskip("jax")
    for dtype in [()] if name == "half" else [(), ("complex64",)] if name not in REAL else [()]:
        ours = MADE[name](initializers)(tl.random.key(7), SHAPE, *dtype)
        expected = MADE[name](theirs)(jax.random.key(7), SHAPE, *dtype)
        assert (ours.shape, ours.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(ours, expected, rtol=2e-3 if name == "half" else 2e-5, atol=1e-6)


def test_variances_are_as_asked_for():
    """Of 60,000 numbers, to five standard errors."""
    key, shape = tl.random.key(0), (200, 300)
    for mode, fan in (("fan_in", 200), ("fan_out", 300), ("fan_avg", 250), ("fan_geo_avg", 60000**0.5)):
        for distribution in ("truncated_normal", "normal", "uniform"):
            for dtype in ("float32", "complex64"):
                x = np.asarray(initializers.variance_scaling(2.0, mode, distribution)(key, shape, dtype))
                np.testing.assert_allclose(np.mean(np.abs(x) ** 2), 2 / fan, rtol=0.03)
                assert abs(np.mean(x)) < 5 * (2 / fan / x.size) ** 0.5


def test_orthogonal():
    for shape in ((6, 4), (4, 6), (2, 3, 4)):
        x = np.asarray(initializers.orthogonal(3.0)(tl.random.key(1), shape)).reshape(-1, shape[-1])
        products = x.T @ x if len(x) >= shape[-1] else x @ x.T
        np.testing.assert_allclose(products, 9 * np.eye(len(products)), atol=1e-5)
    many = np.asarray(tl.random.orthogonal(tl.random.key(1), 3, (5,), m=2))
    np.testing.assert_allclose(np.swapaxes(many, 1, 2) @ many, np.broadcast_to(np.eye(2), (5, 2, 2)), atol=1e-6)
    assert initializers.orthogonal()(tl.random.key(1), (0, 3)).shape == (0, 3)
    window = np.asarray(initializers.delta_orthogonal()(tl.random.key(1), (3, 5, 2, 4)))
    np.testing.assert_allclose(window[1, 2] @ window[1, 2].T, np.eye(2), atol=1e-6)
    assert np.count_nonzero(window) == np.count_nonzero(window[1, 2])


def test_what_is_refused():
    key = tl.random.key(0)
    message = "variance_scaling: mode must be one of 'fan_in', 'fan_out', 'fan_avg', 'fan_geo_avg', not 'fan'."
    with raises(ValueError, message):
        initializers.variance_scaling(1.0, "fan", "normal")
    message = "variance_scaling: distribution must be one of 'truncated_normal', 'normal', 'uniform', not 'beta'."
    with raises(ValueError, message):
        initializers.variance_scaling(1.0, "fan_in", "beta")
    message = "variance_scaling: shape (3,) has no axis -2 of inputs. Name the axes, in_axis= and out_axis=."
    with raises(ValueError, message):
        initializers.he_normal()(key, (3,))
    with raises(ValueError, "orthogonal: a shape of two axes or more is wanted, not (3,)."):
        initializers.orthogonal()(key, (3,))
    with pytest.raises(ValueError, match="delta_orthogonal: a shape of one to three axes"):
        initializers.delta_orthogonal()(key, (3, 3, 2))
    with raises(NotImplementedError, "initializers: out_sharding='here' is not supported, only None."):
        initializers.ones(key, (3,), out_sharding="here")


@pytest.mark.parametrize("initializer", [initializers.zeros, initializers.normal(), initializers.orthogonal()])
def test_the_key_comes_first(initializer: Any):
    with raises(
        TypeError, "initializer: the key comes first, (key, shape): key<fry>[] stands in the place of the shape."
    ):
        initializer((3, 4), tl.random.key(0))
