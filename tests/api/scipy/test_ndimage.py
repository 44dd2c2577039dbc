"""`scipy.ndimage.map_coordinates` and `scipy.cluster.vq` against SciPy."""

import numpy as np
import pytest

import tapeless as tl
from tapeless.scipy.cluster.vq import vq
from tapeless.scipy.ndimage import map_coordinates

MODES = {
    m: {"constant": "grid-constant", "wrap": "grid-wrap"}.get(m, m)
    for m in "nearest mirror reflect constant wrap".split()
}


def test_values(rng: np.random.Generator):
    nd = pytest.importorskip("scipy.ndimage")
    places = rng.uniform(-6, 10, (2, 3, 20))
    places[0, 0, :2] = [1, 3]
    xs = rng.normal(size=(4, 5)), rng.integers(-9, 9, (4, 5)), rng.normal(size=(1, 5))
    cases = [(x, o, m) for x in xs for o in (0, 1) for m in MODES]
    every = tl.jit(lambda: [map_coordinates(x, list(places), o, m, cval=3) for x, o, m in cases])()
    for found, (x, o, m) in zip(every, cases, strict=True):
        right = nd.map_coordinates(x.astype(float), places, order=o, mode=MODES[m], cval=3)
        assert found.dtype == x.dtype
        np.testing.assert_allclose(
            found, right if x.dtype == float else np.round(right), atol=1e-12, err_msg=f"{o} {m}"
        )


def test_halves_are_rounded_away_from_zero():
    x = np.arange(1.0, 5)
    assert map_coordinates(x, [np.array([0.5, 1.5, -0.5])], 0, cval=9).tolist() == [2, 3, 9]


def test_derivatives(rng: np.random.Generator):
    args = rng.normal(size=(4, 5)), np.array([0.3, 2.2]), np.array([1.7, -0.3])
    tl.testing.check_grads(tl.jit(lambda x, i, j: map_coordinates(x, (i, j), 1, "mirror")), args, 1)


def test_nearest_points(rng: np.random.Generator):
    theirs = pytest.importorskip("scipy.cluster.vq")
    x, codes = rng.normal(size=(7, 2)), rng.normal(size=(3, 2))
    for given in ((x, codes), (x[:, 0], codes[:, 0])):
        for found, right in zip(vq(*given), theirs.vq(*given), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-12)
    assert vq(x, codes)[0].dtype == np.int32


def test_bad_input():
    for message, call in {
        r"one array of places for each axis of float64\[2,2\]": lambda: map_coordinates(np.ones((2, 2)), [1.0], 0),
        "has no elements to interpolate": lambda: map_coordinates(np.ones(0), [1.0], 0),
        r"vq: points \[m, d\]": lambda: vq(np.ones((2, 2)), np.ones((2, 3))),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(NotImplementedError, match="order must be 0 or 1, not 3"):
        map_coordinates(np.ones(2), [1.0], 3)
    with pytest.raises(NotImplementedError, match="mode must be one of constant"):
        map_coordinates(np.ones(2), [1.0], 1, "other")
