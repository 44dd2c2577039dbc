"""Reductions of large arrays, compiled as users compile, against NumPy in float64: sizes at which XLA changes its ways.

XLA's defects that these sizes meet: `sums_of_products`, `maximum_of_nan`, `window_of_one_element`, `sum_of_bytes`.
"""

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

pytestmark = pytest.mark.usefixtures("optimized")

M, B = np.array([[1, -2, 0.5], [0.25, 1, -1], [2, 0, 1.5]]), np.array([0.5, -1, 2])
OF_PRODUCTS = {
    "sum of squares": lambda np, y: np.sum(y**2, -1),
    "sum of squared residuals": lambda np, y: np.sum((y - B.astype(y.dtype)) ** 2, -1),
    "max": lambda np, y: np.max(y, -1),
    "mean of absolute values": lambda np, y: np.mean(np.abs(y), -1),
    "norm": lambda np, y: np.sqrt(np.sum(y * y, -1)),
}
EPS = {"float32": 1e-5, "float64": 1e-13}  # sums of three terms below 100, with cancellation in products


@pytest.mark.parametrize(("dtype", "n"), [("float32", 40001), ("float64", 20001)])
@pytest.mark.parametrize("name", OF_PRODUCTS)
def test_products_with_a_small_matrix_are_reduced(name: str, dtype: str, n: int, rng: np.random.Generator):
    x, m = rng.normal(size=(n, 3)).astype(dtype), M.astype(dtype)
    wanted = OF_PRODUCTS[name](np, x.astype(np.float64) @ M.T)

    def f(p: Any) -> Any:
        return OF_PRODUCTS[name](tnp, m @ p)

    def whole(x: Any) -> Any:
        return lax.scan(lambda carry, x: (carry, tl.vmap(f)(x)), 0, x[None])[1][0]

    program = tl.vmap(f) if dtype == "float64" else whole if name == "max" else tl.vmap(tl.value_and_grad(f))
    found = tl.jit(program)(x)
    values = found[0] if isinstance(found, tuple) else found
    np.testing.assert_allclose(values, wanted, rtol=EPS[dtype], atol=EPS[dtype] * 100)


@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 1, 2, 2, 8, 8, 8), 3), ((2, 1, 3, 1, 2, 4, 8, 8), (2, 4)), ((1, 4) * 4, 1)]
)
def test_sums_over_axes_of_seven_and_eight(shape: tuple[int, ...], axis: Any, rng: np.random.Generator):
    """XLA's fusion of these products with their sums ends the process."""
    x = rng.normal(size=shape).astype(np.float32)
    y = tl.jit(lambda a, b: (a * b).sum(axis))(x, x + 1)
    np.testing.assert_allclose(y, (x * (x + 1)).sum(axis), rtol=1e-5, atol=1e-5)  # sums of some terms below 20


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize(
    ("window", "strides", "dilation", "window_dilation"),
    [((3, 3), (1, 1), (2, 2), (1, 1)), ((2, 1), (2, 1), (1, 2), (1, 1)), ((2, 3), (1, 2), (3, 1), (2, 2))],
)
def test_windows_of_dilated_arrays(
    window: Any, strides: Any, dilation: Any, window_dilation: Any, dtype: str, rng: np.random.Generator
):
    x = rng.integers(0, 100, (64, 128)).astype(dtype)
    ends = (-np.inf, np.inf) if dtype == "float32" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    spread = np.zeros([(n - 1) * d + 1 for n, d in zip(x.shape, dilation, strict=True)], dtype)
    spread[:: dilation[0], :: dilation[1]] = x
    holes = np.ones(spread.shape, bool)
    holes[:: dilation[0], :: dilation[1]] = False
    reach = [(n - 1) * d + 1 for n, d in zip(window, window_dilation, strict=True)]
    at = (slice(None, None, strides[0]), slice(None, None, strides[1]))
    at = (*at, slice(None, None, window_dilation[0]), slice(None, None, window_dilation[1]))
    rows = [(lax.max, np.max, ends[0]), (lax.min, np.min, ends[1]), (lax.add, np.sum, 0)]

    def f(x: Any) -> Any:
        dilations = {"base_dilation": dilation, "window_dilation": window_dilation}
        starts = [np.asarray(start, dtype) for *_, start in rows]
        return [
            lax.reduce_window(x, start, combine, window, strides, "VALID", **dilations)
            for (combine, *_), start in zip(rows, starts, strict=True)
        ]

    for (_, reduce, start), values in zip(rows, tl.jit(f)(x), strict=True):
        views = sliding_window_view(np.where(holes, np.asarray(start, dtype), spread), reach)[at]
        np.testing.assert_array_equal(values, reduce(views, (2, 3)).astype(dtype))


def test_nan_wins_among_many():
    x = np.full((64, 1000), 5, np.float32)
    x[np.arange(64), np.arange(64) * 7] = np.nan
    for reduce in (tnp.max, tnp.min, tnp.sum):
        for f in (reduce, tl.jit(reduce), tl.jit(lambda x, f=reduce: f(x * 2, 1)), tl.vmap(reduce)):
            assert np.isnan(np.asarray(f(x))).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_integers_wrap_before_they_are_reduced(dtype: str, rng: np.random.Generator):
    limits = np.iinfo(dtype)
    x, y = rng.integers(limits.min, limits.max, (2, 4096), dtype=dtype, endpoint=True)

    def f(np: Any, x: Any, y: Any) -> Any:
        terms = (x + y, x - y, x * y, -x, abs(x), (x + x) * y)
        return [reduce(term) for term in terms for reduce in (np.min, np.max)]

    x[:2], y[:2] = (limits.min, limits.max), 1
    assert [int(v) for v in tl.jit(lambda x, y: f(tnp, x, y))(x, y)] == [int(v) for v in f(np, x, y)]
    for i in (0, 3, 6, 7, 8) if limits.bits == 8 else ():  # by itself, too: what has several readers is not fused
        assert int(tl.jit(lambda x, y, i=i: f(tnp, x, y)[i])(x, y)) == int(f(np, x, y)[i])


# ---- reductions in steps: lengths of whole groups and not, primes, short rows, several axes, axes of one element

SHAPES = [
    ((100_003,), 0),  # a prime
    ((2, 2053), 1),
    ((1009, 37), 0),
    ((37, 1009), (0, 1)),
    ((20_000, 5), (0, 1)),
    ((3, 33, 41, 5), (1, 2)),
    ((7, 1, 4000, 1), (1, 2)),
    ((64, 1, 65, 1, 3), (0, 2)),
    ((33, 34, 35), 1),
]


@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
def test_steps_reduce_every_element_once(shape: tuple[int, ...], axes: Any, rng: np.random.Generator):
    x = rng.normal(size=shape).astype(np.float32) + 1
    i = rng.integers(-(2**31), 2**31, shape, dtype=np.int32)

    def f(np: Any, x: Any, i: Any) -> Any:
        integers = (
            np.sum(i, axes, dtype=i.dtype),
            np.prod(i | 1, axes, dtype=i.dtype),
            np.max(i, axes),
            np.min(i, axes),
        )
        bits = (np.all(i > -(2**30), axes), np.any(i > 2**31 - 2**20, axes), np.argmax(i.reshape(-1)))
        return (*integers, *bits, np.max(x, axes), np.min(x, axes))

    *exact, total = tl.jit(lambda x, i: (*f(tnp, x, i), tnp.sum(x, axes)))(x, i)
    for found, wanted in zip(exact, f(np, x, i), strict=True):
        np.testing.assert_array_equal(found, wanted)
    # groups of 1024, summed one after the other at worst; the errors of so many numbers of one sign are far smaller
    np.testing.assert_allclose(total, x.astype(np.float64).sum(axes), rtol=2e-6, atol=2e-6 * np.abs(x).max())


def test_a_sum_of_a_million_loses_no_digits():
    x = np.full(2**20 + 1, 0.1, np.float32)
    for y in (x, np.stack([x, x], 1), np.stack([x, x], 0)):
        axis = int(np.argmax(y.shape))
        wanted = x.astype(np.float64).sum()
        np.testing.assert_allclose(tl.jit(lambda y, axis=axis: y.sum(axis))(y), wanted, rtol=3e-6)  # 32 roundings


LARGE = [((1000, 1000), 0), ((10**6,), 0), ((64, 29 * 1733), 1), ((100, 10_007), 1)]


@pytest.mark.parametrize(("shape", "axes"), LARGE, ids=str)
def test_what_is_reduced_is_not_kept(shape: tuple[int, ...], axes: Any):
    program = tl.jit(lambda x: tnp.sum(tnp.exp(x) * x, axes)).lower(np.ones(shape, np.float32)).compile()
    assert program.memory_analysis().temp_size_in_bytes <= 4_000_000 / 16  # sums of groups; x has 4 MB or more


def test_a_product_of_long_vectors_loses_no_digits(rng: np.random.Generator):
    x, y = rng.uniform(size=(2, 3, 100_003)).astype(np.float32)
    wanted = np.einsum("bi,bi->b", x.astype(np.float64), y)
    for found in (tl.jit(lambda x, y: tnp.einsum("bi,bi->b", x, y))(x, y), tl.jit(tl.vmap(tnp.dot))(x, y)):
        np.testing.assert_allclose(found, wanted, rtol=2e-6)  # sums of groups of 1024, as above
    np.testing.assert_allclose(tl.jit(tnp.dot)(x[0], y[0]), wanted[0], rtol=2e-6)
