"""`RegularGridInterpolator` against SciPy."""

import numpy as np
import pytest

import tapeless as tl
from tapeless.scipy.interpolate import RegularGridInterpolator

RNG = np.random.default_rng(0)
GRID = np.array([0, 1, 2.5, 4]), np.array([-1, 0, 3.0])
VALUES = RNG.normal(size=(4, 3, 2))
PLACES = np.concatenate([[[1, 0], [4, 3], [0, -1]], RNG.uniform(-2, 5, (6, 2))])


def test_values():
    theirs = pytest.importorskip("scipy.interpolate").RegularGridInterpolator
    for method in ("linear", "nearest"):
        for fill in (np.nan, None, 7.0):
            right = theirs(GRID, VALUES, method, bounds_error=False, fill_value=fill)
            found = RegularGridInterpolator(GRID, VALUES, method, fill_value=fill)
            np.testing.assert_allclose(found(PLACES), right(PLACES), rtol=1e-12)
    right, found = theirs(GRID, VALUES, bounds_error=False), RegularGridInterpolator(GRID, VALUES)
    for xi in ((PLACES[:, 0], PLACES[:, 1]), np.array([1.0, 2.0]), PLACES[None, :4].reshape(2, 2, 2)):
        np.testing.assert_allclose(found(xi), right(xi), rtol=1e-12)
    np.testing.assert_allclose(found(PLACES, "nearest"), right(PLACES, "nearest"), rtol=1e-12)
    one = RegularGridInterpolator(GRID[:1], VALUES[:, 0, 0])
    np.testing.assert_allclose(one(PLACES[:, 0]), theirs(GRID[:1], VALUES[:, 0, 0], bounds_error=False)(PLACES[:, 0]))
    assert np.isnan(found(np.array([np.nan, 0]))).all()


def test_derivatives_and_bad_input():
    f = tl.jit(lambda z, x: RegularGridInterpolator(GRID, z, fill_value=None)(x))
    tl.testing.check_grads(f, (VALUES, np.array([[0.3, 0.4], [3.1, 1.2]])), 1)
    with pytest.raises(ValueError, match=r"points float64\[4\] are no grid for values float64\[3\]"):
        RegularGridInterpolator(GRID[:1], np.ones(3))
    with pytest.raises(ValueError, match="method must be 'linear' or 'nearest', not 'cubic'"):
        RegularGridInterpolator(GRID, VALUES, "cubic")
    with pytest.raises(ValueError, match="must have 2 elements in the last axis"):
        RegularGridInterpolator(GRID, VALUES)(np.ones((2, 3)))
    with pytest.raises(NotImplementedError, match="bounds_error=False"):
        RegularGridInterpolator(GRID, VALUES, bounds_error=True)
