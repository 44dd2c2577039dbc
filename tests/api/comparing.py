"""Results of functions, compared: part by part, bit for bit, or but for roundings; plain and compiled."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl

each_way = pytest.mark.parametrize("way", [lambda f: f, tl.jit], ids=["plain", "jit"])


def assert_same(found: Any, wanted: Any) -> None:
    """Equal bit for bit: what is computed again is what was computed."""
    for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(x, y)
