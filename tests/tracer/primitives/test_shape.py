"""What the samples do not show of operations on shapes."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_an_iota_longer_than_its_dtype_wraps_around(dtype):
    expected = np.arange(300).astype(dtype)
    np.testing.assert_array_equal(lax.iota(dtype, 300), expected)
    np.testing.assert_array_equal(tl.jit(lambda: lax.broadcasted_iota(dtype, (2, 300), 1)[1, 250:])(), expected[250:])


def test_ranges_fit_their_dtype():
    np.testing.assert_array_equal(tnp.arange(-100, 100, dtype=np.int8), np.arange(-100, 100, dtype=np.int8))
    with pytest.raises(OverflowError, match="the integer 299 does not fit uint8, which holds 0 to 255"):
        tnp.arange(300, dtype=np.uint8)


@pytest.mark.parametrize("shape", [(2, 2), (3, 1), (1, 2)])
def test_broadcasting_to_axes_in_another_order(shape):
    x = np.arange(np.prod(shape)).reshape(shape)
    target = (5, 2, shape[0]) if shape[1] == 1 else (5, shape[1], shape[0])
    for f in (lax.broadcast_in_dim, tl.jit(lax.broadcast_in_dim, static_argnums=(1, 2))):
        np.testing.assert_array_equal(f(x, target, (2, 1)), np.broadcast_to(x.T, target))
        np.testing.assert_array_equal(f(x, shape[::-1], (1, 0)), x.T)
    with pytest.raises(ValueError, match=r"dims \(1, 1\) must be different, one per axis of int64"):
        lax.broadcast_in_dim(x, (2, 2), (1, 1))
