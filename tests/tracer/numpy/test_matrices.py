"""Triangles and diagonals of matrices beside NumPy's."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp

MATRIX = np.arange(6.0, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("k", [-(2**70), -(2**31), -3, -2, -1, 0, 1, 2, 3, 4, 2**31, 2**70])
def test_diagonals_inside_and_outside(k):
    """NumPy has no diagonals beyond 64 bits; those outside the matrix are alike."""
    near = max(-5, min(k, 5))
    for mine, theirs in (
        (tnp.eye(2, 3, k), np.eye(2, 3, near)),
        (tnp.tri(2, 3, k), np.tri(2, 3, near)),
        (tnp.tril(MATRIX, k), np.tril(MATRIX, near)),
        (tnp.triu(MATRIX, k), np.triu(MATRIX, near)),
    ):
        np.testing.assert_array_equal(mine, theirs)


def test_traced_diagonals():
    """Of narrow and unsigned dtypes, too, and far outside the matrix."""
    made = tl.jit(lambda k: (tnp.eye(3, 4, k), tnp.tri(3, 4, k, int)))
    for k in (0, 1, -2, 2**31 - 1, -(2**31), np.int8(-128), np.uint8(255), np.uint8(2)):
        near = max(-5, min(int(k), 5))
        for mine, theirs in zip(made(k), (np.eye(3, 4, near), np.tri(3, 4, near)), strict=True):
            np.testing.assert_array_equal(mine, theirs)
