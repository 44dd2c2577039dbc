"""Operations that come to stand side by side, when programs are simplified or as they are written, compiled as users
compile: XLA takes some of them for others (tests/lowering/test_xla_defects.py). The values are those step by step.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.stepping import in_steps, stepped

pytestmark = pytest.mark.usefixtures("optimized")

X = np.linspace(0.5, 3, 12, dtype=np.float32)


def window(x: Any, start: Any, size: int, axis: int = 0) -> Any:
    return lax.dynamic_slice_in_dim(x, start, size, axis)


# ---- windows of windows --------------------------------------------------------------------------------------

WINDOWS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "bare": lambda x, i, j: window(window(x, i, 5), j, 2),
    "of one": lambda x, i, j: window(window(x, i, 1), j, 1),
    "of all": lambda x, i, j: window(window(x, i, 12), j, 5),
    "element": lambda x, i, j: tnp.sin(window(x, i, 5))[j],
    "of a product": lambda x, i, j: window(window(x, i, 5) * x[:5], j, 3),
    "of a sum": lambda x, i, j: window(window(x.reshape(6, 2), i, 3).sum(1), j, 2),
    "of a contraction": lambda x, i, j: (window(x.reshape(6, 2), i, 3) @ x[:2])[j],
    "three": lambda x, i, j: window(window(window(x, i, 7), j, 4), i, 2),
    "of an axis": lambda x, i, j: window(window(x.reshape(3, 4), i, 2, 0), j, 3, 1).T[j],
    "padded": lambda x, i, j: window(lax.pad(window(x, i, 5), np.float32(0), [(1, 2, 0)]), j, 4),
    "reversed": lambda x, i, j: window(window(x, i, 5)[::-1], j, 3),
    "strided": lambda x, i, j: window(window(x, i, 7)[1::2], j, 2),
    "written": lambda x, i, j: lax.dynamic_update_slice(
        x, lax.dynamic_update_slice(window(x, i, 5), x[:2], (j,)), (i,)
    ),
    "gathered": lambda x, i, j: window(x, i, 5)[tnp.stack([j, j + 1])],
    "gathered once": lambda x, i, j: window(x, i, 5)[tnp.stack([j])],
    "scattered": lambda x, i, j: window(x, i, 5).at[j].add(10, mode="drop"),
    "scattered in a call": lambda x, i, j: multiplied(window(x, i, 5), j),
    "clipped": lambda x, i, j: window(x.reshape(3, 4), i, 2).at[j, j].set(10, mode="clip"),
}


@tl.jit
def multiplied(x: Any, j: Any) -> Any:
    return x.at[j].multiply(10)


STARTS = [(0, 0), (3, 1), (9, 1), (9, -1), (11, 4), (40, 2), (-3, 2), (-40, 1), (8, 40), (2, -40)]


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_of_windows(name):
    f = tl.jit(WINDOWS[name])
    expected = in_steps(WINDOWS[name], X, np.int32(0), np.int64(0))
    for i, j in STARTS:
        starts = np.int32(i), np.int64(j)
        np.testing.assert_allclose(f(X, *starts), expected(X, *starts), rtol=1e-6)


@pytest.mark.parametrize("name", ["bare", "element", "three", "written"])
def test_gradients_of_windows_of_windows(name):
    gradient = tl.grad(lambda x, i, j: tnp.sum(WINDOWS[name](x, i, j) ** 2))
    compiled, expected = tl.jit(gradient), in_steps(gradient, X, np.int32(0), np.int64(0))
    for i, j in STARTS:
        starts = np.int32(i), np.int64(j)
        np.testing.assert_allclose(compiled(X, *starts), expected(X, *starts), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64, np.int8, np.int64])
def test_starts_of_every_dtype(dtype):
    f, limits = tl.jit(WINDOWS["bare"]), np.iinfo(dtype)
    for i in (0, 6, 7, 11, 100, limits.max // 2 + 1, limits.max):
        for j in (0, 3, 100, limits.max // 2 + 1, limits.max):
            found = f(X, np.asarray(i, dtype), np.asarray(j, dtype))
            np.testing.assert_array_equal(found, X[min(i, 7) :][:5][min(j, 3) :][:2])


def test_a_window_of_a_loop_that_reads_windows():
    def f(x, i):
        return lax.fori_loop(0, 3, lambda k, s: s + window(window(x, i + k, 4), k, 2), np.zeros(2, np.float32))

    for i in (0, 7, 20, -2):
        start = tnp.asarray(i)
        expected = sum(np.asarray(window(window(tnp.asarray(X), start + k, 4), k, 2)) for k in range(3))
        np.testing.assert_allclose(tl.jit(f)(X, start), expected, rtol=1e-6)


# ---- windows over padding ------------------------------------------------------------------------------------


def row_of_one(n: int, k: int, dtype: Any = np.float32) -> Any:
    return np.where(np.arange(n) == k, np.array([[2.0], [3.0]], dtype), 0).astype(dtype)


ALONG: dict[str, Callable[[Any, int, int], Any]] = {
    "padded": lambda x, n, k: tnp.pad(x, ((0, 0), (k, n - 1 - k))),
    "written": lambda x, n, k: tnp.zeros((2, n), x.dtype).at[:, k : k + 1].set(x),
    "joined": lambda x, n, k: tnp.concatenate([tnp.zeros((2, k)), x, tnp.zeros((2, n - 1 - k))], 1),
}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("name", ALONG)
def test_running_sums_of_one_element(name, n):
    x = np.float32([[2], [3]])
    sums = [(k, reverse) for k in range(n) for reverse in (False, True)]
    found = tl.jit(lambda x: [lax.cumsum(ALONG[name](x, n, k), 1, reverse=reverse) for k, reverse in sums])(x)
    for (k, reverse), each in zip(sums, found, strict=True):
        row = row_of_one(n, k)
        np.testing.assert_array_equal(each, np.cumsum(row[:, ::-1], 1)[:, ::-1] if reverse else np.cumsum(row, 1))


@pytest.mark.parametrize(
    ("running", "reference", "neutral", "dtype"),
    [
        (lax.cummax, np.maximum.accumulate, -np.inf, np.float32),
        (lax.cumprod, np.cumprod, 1, np.float64),
        (lax.cumsum, np.cumsum, 0, np.int32),
        (lax.cummin, np.minimum.accumulate, 127, np.int8),
    ],
    ids=["cummax", "cumprod", "cumsum of integers", "cummin of bytes"],
)
def test_other_running_reductions_of_one_element(running, reference, neutral, dtype):
    padded = lambda x: tnp.pad(x, ((0, 0), (2, 2)), constant_values=neutral)  # noqa: E731
    x = np.array([[2], [3]], dtype)
    expected = reference(np.pad(x, ((0, 0), (2, 2)), constant_values=dtype(neutral)), axis=1)
    np.testing.assert_array_equal(tl.jit(lambda x: running(padded(x), 1))(x), expected)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_gradients_of_one_element_of_running_sums(n):
    def f(x, k):
        return (tnp.where(tnp.arange(n) == k, tnp.cumsum(x, 1), 0.0) ** 2).sum()

    x = np.arange(1, 2 * n + 1, dtype=np.float32).reshape(2, n)
    for k in range(n):
        expected = 2 * np.cumsum(x, 1)[:, k : k + 1] * (np.arange(n) <= k)
        np.testing.assert_allclose(tl.jit(tl.grad(f), static_argnums=1)(x, k), expected, rtol=1e-6)


@pytest.mark.parametrize("config", [(0, -1, 0), (-1, 0, 0), (2, -1, 0), (-1, 2, 1), (-2, -1, 1)])
def test_running_sums_of_what_is_cut(config):
    x = np.float32([[1, 2, 4, 8]])
    padded = np.asarray(lax.pad(tnp.asarray(x), np.float32(0), [(0, 0, 1), config]))
    for reverse in (False, True):
        f = lambda x: lax.cumsum(lax.pad(x, np.float32(0), [(0, 0, 1), config]), 1, reverse=reverse)  # noqa: B023, E731
        expected = np.cumsum(padded[:, ::-1], 1)[:, ::-1] if reverse else np.cumsum(padded, 1)
        np.testing.assert_array_equal(tl.jit(f)(x), expected)


@pytest.mark.parametrize("window", [2, 3, 4, 5])
@pytest.mark.parametrize("dilation", [1, 2])
def test_windows_over_one_element(window, dilation):
    def f(x):
        padded = tnp.pad(x, ((0, 0), (1, 1)))
        return lax.reduce_window(padded, np.float32(0), lax.add, (1, window), (1, 1), "SAME", None, (1, dilation))

    x = np.float32([[2], [3]])
    np.testing.assert_array_equal(tl.jit(f)(x), stepped(f, x))


# ---- updates that read what they are written into -----------------------------------------------------------

UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "column": lambda y, i: lax.dynamic_update_slice(y[:, None], (y[:2] + 1)[:, None], (i, 0)),
    "column of itself": lambda y, i: lax.dynamic_update_slice(y[:, None], y[:, None][:2] + 1, (i, 0)),
    "known place": lambda y, i: y[:, None].at[1:3].set(y[:, None][:2] + 1),
    "matrix": lambda y, i: lax.dynamic_update_slice(y.reshape(2, 6), (y[1:7] + y[:6]).reshape(1, 6), (i, 0)),
    "row": lambda y, i: lax.dynamic_update_slice(y[None].T, y[:3][None].T * 2, (i, 0)),
    "chosen": lambda y, i: lax.dynamic_update_slice(y[:, None], tnp.where(y > 0, y, 1)[:3, None], (i, 0)),
    "spread": lambda y, i: y[:, None].at[0:3].set(y[1] * 2),
    "again": lambda y, i: y[:, None].at[1:4].set(tnp.sin(X)[:3, None] + 1),
    "through calls": lambda y, i: written(y.reshape(6, 2), (y[:4] + 1).reshape(2, 2), i),
    "in a branch": lambda y, i: lax.cond(y[0] > 0, lambda: y[:, None].at[1:4].set(y[:3, None] + 1), lambda: y[:, None]),
    "in a loop": lambda y, i: lax.fori_loop(
        0, 2, lambda k, c: lax.dynamic_update_slice(c[:, None], (c[:3] + 1)[:, None], (i, 0))[:, 0], y
    ),
    "running sum": lambda y, i: lax.dynamic_update_slice(tnp.cumsum(y.reshape(4, 3), 1).ravel(), y[:3] + 1, (i,)),
}


@tl.jit
def written(x: Any, update: Any, i: Any) -> Any:
    return lax.dynamic_update_slice(x, update, (i, 0))


@pytest.mark.parametrize("name", UPDATES)
def test_updates_that_read_their_target(name):
    f = lambda x, i: UPDATES[name](tnp.sin(x), i)  # noqa: E731
    start = np.int32(1)
    np.testing.assert_allclose(tl.jit(f)(X, start), stepped(f, X, start), rtol=1e-6)


# ---- powers beside exponentials and logarithms ---------------------------------------------------------------

SPECIAL = np.float32([-np.inf, -2, -1, -0.0, 0, 0.5, 1, 3, 100, np.inf, np.nan])
POWERS: dict[str, Callable[[Any, Any], Any]] = {
    "of an exponential": lambda x, y: tnp.exp(x) ** y,
    "of a constant and an exponential": lambda x, y: lax.pow(tnp.exp(x), np.float32(0)) + y * 0,
    "in a logarithm": lambda x, y: tnp.log(x**y),
    "constant, in a logarithm": lambda x, y: tnp.log(lax.pow(x, np.float32(0.3))) + y * 0,
    "of a power": lambda x, y: (x**y) ** 0.3,
}


@pytest.mark.parametrize("name", POWERS)
def test_powers(name):
    """Not finite where a step is not, and the other way round: exp(x)**y is not computed as exp(x * y)."""
    x, y = (tnp.asarray(grid.ravel()) for grid in np.meshgrid(SPECIAL, SPECIAL))
    np.testing.assert_allclose(tl.jit(POWERS[name])(x, y), POWERS[name](x, y), rtol=1e-5)


# ---- exponentials of nan -------------------------------------------------------------------------------------

NANS: dict[str, Callable[[Any, Any], Any]] = {
    "chosen by a number": lambda x, p: tnp.exp(tnp.where(p, x, np.nan)),
    "a factor": lambda x, p: tnp.exp(x * tnp.where(p, 1, np.nan)),
    "cosh": lambda x, p: tnp.cosh(tnp.where(p, x, np.nan)),
    "expm1": lambda x, p: tnp.expm1(tnp.where(p, x, np.nan)),
    "exp2": lambda x, p: tnp.exp2(tnp.where(p, x, np.nan)),
    "sigmoid": lambda x, p: tl.nn.sigmoid(tnp.where(p, x, np.nan)),
    "in a call": lambda x, p: exponential(tnp.where(p, x, np.nan)) + exponential(tnp.where(p, x + 1, np.nan)),
    "in a loop": lambda x, p: lax.fori_loop(0, 3, lambda i, c: c + tnp.cosh(tnp.where(p, x, np.nan)), 0 * x),
    "of a quotient": lambda x, p: tnp.exp(tnp.where(p, x, tnp.zeros(()) / tnp.zeros(()))),
    "of a difference": lambda x, p: tnp.exp(tnp.where(p, x, np.inf * tnp.ones(()) - np.inf)),
    "of a logarithm": lambda x, p: tnp.exp(tnp.where(p, x, tnp.log(-tnp.ones(())))),
    "of a product": lambda x, p: tnp.exp(x * (tnp.where(p, 1, np.inf) * tnp.where(p, 1, 0.0))),
    "of a call before": lambda x, p: 0 * exponential(x) + exponential(tnp.where(p, x, np.nan)),
    "a failed factorization": lambda x, p: tnp.exp(tnp.linalg.cholesky(-tnp.eye(3, dtype=x.dtype)))[0, 0] * x,
}


@tl.jit
def exponential(x: Any) -> Any:
    return tnp.exp(x)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("name", NANS)
def test_exponentials_of_nan(name, dtype):
    if "factorization" in name and dtype in ("bfloat16", "float16"):
        pytest.skip("LAPACK has no such numbers")
    x = tnp.asarray(X, dtype)
    found = tl.jit(NANS[name])(x, tnp.asarray(False))
    np.testing.assert_array_equal(np.isnan(found.astype("float32")), np.ones(x.shape, bool))
