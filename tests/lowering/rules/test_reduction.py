"""Extremes of complex numbers: a nan in either part, of either operand, wins."""

import itertools
from typing import Any

import numpy as np
import pytest

import tapeless.numpy as tnp

PARTS = (np.nan, np.inf, -np.inf, 1.0, -2.0)
NUMBERS = np.array([complex(x, y) for x in PARTS for y in PARTS])


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_nan_wins(name: str):
    x, y = (np.array(v) for v in zip(*itertools.product(NUMBERS, NUMBERS)))
    np.testing.assert_array_equal(np.isnan(getattr(tnp, name)(x, y)), np.isnan(x) | np.isnan(y))


@pytest.mark.parametrize("reduce", [tnp.max, tnp.min])
def test_nan_wins_wherever_it_stands(reduce: Any):
    for at in range(4):
        x = np.array([complex(9, 1), complex(np.inf, 2), complex(-3, 0), complex(-np.inf, 0)])
        x[at] = complex(-5, np.nan)
        assert np.isnan(reduce(x)), x
