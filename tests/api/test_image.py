"""`image.resize` and `image.scale_and_translate`: against JAX, and what every kernel does to images that are simple."""

import itertools
from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.image import ResizeMethod, resize, scale_and_translate

pytestmark = pytest.mark.usefixtures("eager_by_steps")

SMOOTH = ["linear", "cubic", "lanczos3", "lanczos5", "area", "cubic-pytorch"]
X = np.random.default_rng(0).normal(size=(5, 6, 2))
SHAPES = [(3, 9, 2), (0, 1, 2)]
PLACES = [([1.3, 0.4], [0.5, -1.0])]
EVERY = list(itertools.product(SMOOTH, (True, False)))


def test_constants_stay_and_areas_are_means():
    ones = np.ones((4, 5))
    found = tl.jit(lambda: [resize(ones, s, m, antialias=a) for m, a in EVERY for s in ((7, 3),)])()
    for y in found:
        np.testing.assert_allclose(y, np.ones(y.shape), rtol=1e-12)
    means = X.reshape(5, 3, 2, 2).mean(2)
    np.testing.assert_allclose(resize(X, (5, 3, 2), "area"), means, rtol=1e-12)
    ramp = resize(np.arange(4.0), (8,), "linear")
    np.testing.assert_allclose(ramp, [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3], rtol=1e-12)
    moved = scale_and_translate(np.arange(1.0, 5), (4,), (0,), np.ones(1), np.ones(1), "cubic", antialias=False)
    np.testing.assert_allclose(moved, [0, 1, 2, 3], atol=1e-12)


def test_nearest_elements_are_exact():
    x = np.arange(7)
    for n in (1, 2, 3, 7, 10, 21):
        wanted = [7 * (2 * i + 1) // (2 * n) for i in range(n)]
        assert resize(x, (n,), ResizeMethod.NEAREST).tolist() == wanted
    assert resize(x.astype(np.int8), (3,), "nearest").dtype == np.int8
    assert resize(x.astype(np.int8), (3,), "linear").dtype == np.float32
    assert resize(x.astype(np.float16), (3,), "linear").dtype == np.float16


def test_agreement_with_jax():
    jax = pytest.importorskip("jax")
    x = X.astype(np.float32)

    def every(image: Any) -> Any:
        sizes = [image.resize(x, s, m, antialias=a) for m, a in EVERY for s in SHAPES]
        moved = [
            image.scale_and_translate(x, (7, 6, 2), (0, 1), np.float32(s), np.float32(t), m, antialias=a)
            for m, a in EVERY
            if (m, a) != ("cubic-pytorch", False)
            for s, t in PLACES
        ]
        return sizes, moved

    ours, theirs = tl.jit(lambda: every(tl.image))(), jax.jit(lambda: every(jax.image))()
    for y, z in zip(tl.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(y, z, rtol=2e-5, atol=2e-5)


def test_derivatives():
    places = np.array([1.31, 0.47]), np.array([0.51, -1.03])
    f = tl.jit(lambda x, s, t: scale_and_translate(x, (3, 3), (0, 1), s, t, "lanczos3"))
    tl.testing.check_grads(f, (X[:3, :3, 0], *places), 1, rtol=1e-4)


def test_bad_input():
    for message, call in {
        r"resize: shape must have 3 sizes, of axes of float64\[5,6,2\]": lambda: resize(X, (2, 2), "linear"),
        "resize: method must be one of nearest, linear": lambda: resize(X, X.shape, "other"),
        "method 'nearest' is there for resize only": lambda: scale_and_translate(X, X.shape, (0,), [1], [0], "nearest"),
        "must have one number for each of the axes": lambda: scale_and_translate(
            X, X.shape, (0,), np.ones(2), np.ones(2), "linear"
        ),
        "axes that are not resampled keep their size": lambda: scale_and_translate(
            X, (5, 5, 2), (0,), np.ones(1), np.ones(1), "linear"
        ),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
