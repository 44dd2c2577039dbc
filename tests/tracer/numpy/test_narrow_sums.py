"""Sums and products of numbers of 16 and 8 bits are accumulated in 32 bits, and rounded once."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("total", [tnp.sum, tnp.nansum, tnp.add.reduce, lambda x: tnp.trace(tnp.diag(x))])
def test_a_long_sum_is_rounded_once(total: Any, dtype: Any):
    x = np.full(2000, 0.1, dtype)
    expected = x.astype(np.float64).sum().astype(dtype)
    for found in (total(tnp.asarray(x)), tl.jit(total)(x)):
        assert found.dtype == dtype and float(found) == float(expected)


def test_the_gradient_is_of_the_dtype():
    x = tnp.ones(5, tnp.float16)
    assert tl.grad(lambda x: tnp.sum(x * x))(x).dtype == np.float16


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logarithms_of_long_sums_are_rounded_once(name: str, dtype: Any):
    x = np.random.default_rng(0).normal(size=500).astype(dtype)
    ours, theirs = getattr(tnp, name), getattr(np, name)
    expected = theirs.reduce(x.astype(np.float64)).astype(dtype)
    assert float(ours.reduce(x)) == float(ours.accumulate(x)[-1]) == float(expected)


# ---- every primitive that adds or multiplies -----------------------------------------------------------------

NARROW = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
N, PLACES = 512, np.zeros(512, np.int32)


def windows(x: Any, neutral: float, op: Any) -> Any:
    return lax.reduce_window(x, x.dtype.type(neutral), op, (N // 2,), (N // 4,), "VALID")[:2]


def rounded(x: Any, dtype: Any) -> Any:
    """float64 to float32 to `dtype`: what a float32 accumulator gives."""
    return np.asarray(x, np.float32).astype(dtype)


SUMS = {
    "lax.reduce_sum": lambda x: lax.reduce_sum(x, (0,)),
    "lax.reduce": lambda x: lax.reduce(x, x.dtype.type(0), lax.add, (0,)),
    "lax.cumsum": lambda x: lax.cumsum(x)[-1],
    "lax.cumsum, reversed": lambda x: lax.cumsum(x, reverse=True)[0],
    "einsum": lambda x: tnp.einsum("i->", x),
    "at.add": lambda x: tnp.zeros(1, x.dtype).at[PLACES].add(x)[0],
    "at.add in a long array": lambda x: tnp.zeros(2 * N * N, x.dtype).at[PLACES].add(x)[0],
    "at.subtract": lambda x: -tnp.zeros(1, x.dtype).at[PLACES].subtract(x)[0],
    "add.at": lambda x: tnp.add.at(tnp.zeros(1, x.dtype), PLACES, x, inplace=False)[0],
    "add.reduceat": lambda x: tnp.add.reduceat(x, np.array([0]))[0],
    "segment_sum": lambda x: tl.ops.segment_sum(x, PLACES, 1)[0],
    "bincount": lambda x: tnp.bincount(PLACES, x, length=1)[0],
    "gradient of a lookup": lambda x: tl.grad(lambda table: tnp.sum(table[PLACES] * x))(tnp.ones(1, x.dtype))[0],
    "gradient of take": lambda x: tl.grad(lambda t: tnp.sum(tnp.take(t, PLACES) * x))(tnp.ones(1, x.dtype))[0],
    "gradient of a scalar": lambda x: tl.grad(lambda s: tnp.sum(s * x))(tnp.ones((), x.dtype)),
    "gradients of lookups": lambda x: tl.vmap(tl.grad(lambda table, i: tnp.sum(table[i] * x)), (None, 0))(
        tnp.ones(3, x.dtype), PLACES[None]
    )[0, 0],
}


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("total", SUMS.values(), ids=SUMS)
def test_every_sum_is_rounded_once(total: Any, dtype: Any):
    x = (np.random.default_rng(0).integers(0, 9, N) / 32).astype(dtype)  # whose sums are exact in float32
    expected = rounded(x.astype(np.float64).sum(), dtype)
    for found in (total(tnp.asarray(x)), tl.jit(total)(x)):
        assert found.dtype == dtype and float(found) == float(expected)


@pytest.mark.parametrize("dtype", NARROW)
def test_sums_over_windows_are_rounded_once(dtype: Any):
    x = (np.random.default_rng(0).integers(0, 9, N) / 32).astype(dtype)
    expected = rounded(np.array([x[: N // 2], x[N // 4 : 3 * N // 4]], np.float64).sum(1), dtype)
    for found in (windows(tnp.asarray(x), 0, lax.add), tl.jit(lambda x: windows(x, 0, lax.add))(x)):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", NARROW)
def test_gradients_of_overlapping_maxima_are_rounded_once(dtype: Any):
    """One element is the maximum of all windows."""
    x = np.zeros(63, dtype)
    x[31] = 1
    weights = (np.random.default_rng(0).integers(1, 9, 32) / 32).astype(dtype)

    def loss(x: Any) -> Any:
        return tnp.sum(lax.reduce_window(x, dtype(-1), lax.max, (32,), (1,), "VALID") * weights)

    expected = rounded(weights.astype(np.float64).sum(), dtype)
    for found in (tl.grad(loss)(x), tl.jit(tl.grad(loss))(x)):
        assert float(found[31]) == float(expected) == float(tnp.sum(found))


PRODUCTS = {
    "prod": tnp.prod,
    "lax.reduce_prod": lambda x: lax.reduce_prod(x, (0,)),
    "lax.cumprod": lambda x: lax.cumprod(x)[-1],
    "at.multiply": lambda x: tnp.ones(1, x.dtype).at[PLACES[:64]].multiply(x)[0],
    "multiply.reduceat": lambda x: tnp.multiply.reduceat(x, np.array([0]))[0],
    "lax.reduce_window": lambda x: lax.reduce_window(x, x.dtype.type(1), lax.mul, (64,), (1,), "VALID")[0],
}


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_every_product_is_rounded_once(product: Any, dtype: Any):
    x = np.ones(64, dtype)
    x[::7], x[3::7] = 1.25, 0.75
    expected = rounded(x.astype(np.float64).prod(), dtype)
    for found in (product(tnp.asarray(x)), tl.jit(product)(x)):
        assert found.dtype == dtype and float(found) == float(expected)


# ---- scatters into arrays that are longer than what is added -------------------------------------------------


@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("name", ["add", "multiply"])
@pytest.mark.parametrize("shape, axes", [((5000,), 1), ((300, 40), 1), ((60, 70), 2), ((9, 40, 30), 2)])
def test_updates_of_one_place_are_combined_first(shape: tuple[int, ...], axes: int, name: str, mode: str):
    r = np.random.default_rng(0)
    x = (r.integers(1, 5, shape) / 4).astype(ml_dtypes.bfloat16)
    places = tuple(r.integers(0, 3, (2, 4)) for _ in range(axes))
    places[0][0, 1] = 10**6  # dropped, or the last
    y = (r.integers(3, 6, (2, 4, *shape[axes:])) / 4).astype(ml_dtypes.bfloat16)
    kept = np.ones((2, 4), bool) if mode == "clip" else places[0] < shape[0]
    inside = tuple(np.minimum(i, n - 1)[kept] for i, n in zip(places, shape))
    expected = x.astype(np.float64)
    getattr(np, name).at(expected, inside, y[kept].astype(np.float64))

    def f(x: Any, y: Any, *places: Any) -> Any:
        return getattr(x.at[places], name)(y, mode=mode)

    for found in (f(tnp.asarray(x), y, *map(tnp.asarray, places)), tl.jit(f)(x, y, *places)):
        np.testing.assert_array_equal(found, rounded(expected, x.dtype))


def test_windows_that_overlap_in_parts():
    """They are no single places, so that the operand is converted."""
    numbers = lax.ScatterDimensionNumbers((1,), (), (0,))
    places, y = np.array([[0], [1], [0]], np.int32), np.ones((3, 2), np.float16)
    found = lax.scatter_add(tnp.full(4000, 2048, np.float16), places, y, numbers)
    np.testing.assert_array_equal(found[:4], [2050, 2052, 2048, 2048])
