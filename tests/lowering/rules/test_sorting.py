"""The largest elements, where their order is not that of their bits."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless import lax


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3b11fnuz", "float16", "bfloat16", "float32", "float64"])
def test_every_nan_is_largest(dtype: Any):
    """A nan with its sign set, too: that is what 0/0 is on x86."""
    negative = np.copysign(np.nan, -1.0)
    x = tl.numpy.asarray(np.array([1, negative, 3, np.nan, -7, negative]), dtype)
    values, places = lax.top_k(x, 5)
    np.testing.assert_array_equal(places, [1, 3, 5, 2, 0])
    np.testing.assert_array_equal(np.asarray(values, float), [np.nan, np.nan, np.nan, 3, 1])


def test_what_division_gives_is_largest():
    values, places = tl.jit(lambda x: lax.top_k(x / x, 2))(np.array([1.0, 0.0, 2.0], np.float32))
    np.testing.assert_array_equal(values, [np.nan, 1])
    np.testing.assert_array_equal(places, [1, 0])


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_largest_of_four_bits(dtype: Any):
    x = tl.numpy.asarray(np.array([1, 7, 0, 7, 3]), dtype)
    values, places = lax.top_k(x, 3)
    assert values.dtype == dtype
    np.testing.assert_array_equal(np.asarray(values, int), [7, 7, 3])
    np.testing.assert_array_equal(places, [1, 3, 4])
