"""Sums of columns of what a product reads are products with ones: no kernels of their own are compiled for them."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp

Program = Callable[[Any, Any], Any]


def weights_and_biases(x: Any, ct: Any) -> Any:
    return x.T @ ct, ct.sum(0)


def of_one_matrix_more(x: Any, ct: Any) -> Any:
    return tnp.einsum("abi,abj->ij", x, ct), ct.sum((0, 1))


def of_rows(x: Any, ct: Any) -> Any:
    return x.T @ ct, ct.sum(1)


def of_none_that_a_product_reads(x: Any, ct: Any) -> Any:
    return x.T @ (2 * ct), ct.sum(0)


def in_a_loop(x: Any, ct: Any) -> Any:
    start = tnp.zeros((5, 16), x.dtype), tnp.zeros(16, x.dtype)
    return tl.lax.fori_loop(0, 2, lambda k, carry: weights_and_biases(x, tnp.sin(ct + carry[1])), start)


ROWS = [
    (weights_and_biases, (300, 16), np.float32, 1),
    (weights_and_biases, (300, 16), np.float64, 1),
    (weights_and_biases, (300, 16), np.float16, 0),  # sums of narrow numbers are accumulated in float32
    (weights_and_biases, (1025, 16), np.float32, 0),  # errors would grow with the length
    (weights_and_biases, (300, 7), np.float32, 0),
    (weights_and_biases, (64, 16), np.float32, 0),  # few elements are summed by one kernel
    (of_one_matrix_more, (3, 100, 16), np.float32, 1),
    (of_rows, (300, 16), np.float32, 0),
    (of_none_that_a_product_reads, (300, 16), np.float32, 0),
    (in_a_loop, (300, 16), np.float32, 1),
]


def count(f: Program, *args: Any) -> Counter[str]:
    return Counter(re.findall(r"stablehlo\.(\w+)", tl.jit(f).lower(*args).as_text()))


@pytest.mark.parametrize(("f", "shape", "dtype", "products"), ROWS)
def test_sums_beside_products_are_products(f: Program, shape: tuple[int, ...], dtype: Any, products: int) -> None:
    rng = np.random.default_rng(0)
    x, ct = rng.normal(size=(*shape[:-1], 5)).astype(dtype), rng.normal(size=shape).astype(dtype)
    found = count(f, x, ct)
    assert found["dot_general"] == products + 1
    assert bool(products) == (found["reduce"] + found["reduce_window"] == 0)
    if dtype != np.float16 and f is not in_a_loop:
        wide = np.asarray(x, np.float64), np.asarray(ct, np.float64)
        for mine, exact in zip(tl.jit(f)(x, ct), f(*wide), strict=True):
            # some hundred roundings, of which most cancel
            np.testing.assert_allclose(mine, exact, rtol=0, atol=50 * np.finfo(dtype).eps * np.abs(exact).max())


def test_special_values_stay_in_their_columns() -> None:
    ct = np.ones((300, 16), np.float32)
    ct[3, 1], ct[4, 2], ct[5, 3], ct[6, 3] = np.nan, np.inf, np.inf, -np.inf
    _, sums = tl.jit(weights_and_biases)(np.ones((300, 5), np.float32), ct)
    np.testing.assert_array_equal(sums, [300, np.nan, np.inf, np.nan, *[300] * 12])


@pytest.mark.parametrize(("n", "windows"), [(40 * 25, 1), (64 * 16, 1), (65 * 32, 2)])
def test_columns_of_few_elements_take_few_steps(n: int, windows: int) -> None:
    x = np.ones((n, 32), np.float32)
    assert count(lambda x, _: (x * x).sum(0), x, x)["reduce_window"] == windows
    np.testing.assert_array_equal(tl.jit(lambda x: (x * x).sum(0))(x), [n] * 32)
