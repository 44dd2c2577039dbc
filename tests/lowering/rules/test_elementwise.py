"""Powers of integers, in which every bit of the exponent counts."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless import lax

EXPONENTS = np.array([0, 1, 2, 63, 64, 65, 100, 127])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_large_powers_of_integers(dtype: Any):
    """Modulo the range of the dtype, as NumPy's."""
    y = EXPONENTS.astype(dtype)
    for base in (3, 31, 2, 0, 1):
        x = np.full_like(y, base)
        np.testing.assert_array_equal(lax.pow(x, y), np.power(x, y))


def test_greatest_exponent():
    x, y = np.array([3, 7], np.uint8), np.array([255, 254], np.uint8)
    np.testing.assert_array_equal(tl.jit(lax.pow)(x, y), [pow(3, 255, 256), pow(7, 254, 256)])


def test_negative_powers_of_integers():
    """Only those of 1 and -1 are integers; 0 is left of others."""
    x = np.array([1, -1, -1, 2, -3, 0, 5], np.int32)
    y = np.array([-4, -3, -2, -1, -2, -1, np.iinfo(np.int32).min], np.int32)
    np.testing.assert_array_equal(lax.pow(x, y), [1, -1, 1, 0, 0, 0, 0])
