"""Results of functions with rules of their own, compared; plain and compiled."""

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
