"""Results of functions, compared: part by part, bit for bit, or but for roundings; plain and compiled."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl

each_way = pytest.mark.parametrize("way", [lambda f: f, tl.jit], ids=["plain", "jit"])


def close(actual, expected, rtol=1e-13):
    """Tuples and dicts are compared part by part; a list stands for an array."""
    if isinstance(expected, (tuple, dict)):
        assert type(actual) is type(expected) and len(actual) == len(expected)
        for key in range(len(expected)) if isinstance(expected, tuple) else expected:
            close(actual[key], expected[key], rtol)
    else:
        np.testing.assert_allclose(np.asarray(actual), expected, rtol=rtol, atol=1e-14)


def assert_same(found: Any, wanted: Any) -> None:
    """Equal bit for bit: what is computed again is what was computed."""
    for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(x, y)


def assert_close(found: Any, wanted: Any) -> None:
    """Equal but for roundings of float32: other programs are compiled, which XLA fuses in other ways."""
    for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5)
