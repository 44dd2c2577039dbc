"""Extremes of complex numbers: a nan in either part, of either operand, wins. Groups of long reductions."""

import itertools
import re
from typing import Any

import numpy as np
import pytest

import tapeless as tl
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


def test_groups_of_a_column_are_so_short_that_their_loop_is_unrolled():
    """XLA vectorises a reduction of columns if it unrolls the loop: with an exponential, of some 16 elements."""
    for n in (*range(33, 72), 300, 360, 512, 997):
        text = tl.jit(lambda x: tnp.exp(x).sum(0)).lower(np.zeros((n, 64), np.float32)).as_text()
        groups = [int(k) for k in re.findall(r"tensor<\d+x(\d+)x64xf32>, tensor<f32>\) -> tensor<\d+x64xf32>", text)]
        assert max(groups) <= (20 if any(n % k == 0 for k in range(5, 21)) else 32), (n, groups)
        assert len(groups) == 1 or not any(n % k == 0 for k in range(5, 33)), (n, groups)
