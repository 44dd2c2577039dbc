"""Additions to short windows in place are emitted as additions of padded arrays, with the same bits as results."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

Shape = tuple[int, ...]


def windows(shape: Shape, size: Shape, number: int) -> list[tuple[slice, ...]]:
    """List windows of this size, one after another from the first element on, around the end."""
    starts = [[k % (n - m + 1) for n, m in zip(shape, size)] for k in range(number)]
    return [tuple([slice(a, a + m) for a, m in zip(start, size)]) for start in starts]


def count(f: Callable[..., Any], *args: Any) -> Counter[str]:
    return Counter(re.findall(r"stablehlo\.(\w+)", tl.jit(f).lower(*args).as_text()))


def added(x: Any, parts: Any, cuts: list[tuple[slice, ...]]) -> Any:
    for cut, part in zip(cuts, parts):
        x = lax.dynamic_update_slice(x, part + x[cut], [c.start for c in cut])
    return x


ROWS = [
    ((9, 4, 4), (8, 3, 3), 6, np.float32, True),  # as minors of determinants
    ((9, 4, 4), (9, 3, 4), 6, np.float64, True),
    ((40, 4), (39, 3), 6, np.complex64, True),
    ((40, 4), (39, 3), 7, np.float32, False),  # more windows that are stored until they are added
    ((6,), (2,), 6, np.int32, True),
    ((32,), (1,), 60, np.float32, True),
    ((128,), (1,), 40, np.float32, False),  # 40 windows in place run as fast as padded to 5,120 elements
    ((1000,), (998,), 6, np.float32, False),  # long neighbours, which are vectorised in place
    ((9, 64), (8, 32), 6, np.float32, False),
    ((200, 4), (198, 4), 6, np.float32, False),  # whole rows are neighbours
    ((90, 4, 4), (2, 1, 1), 6, np.float32, False),  # padded, each would take 720 times its elements
    ((6,), (2,), 6, np.float16, False),  # XLA would keep more bits of the sum
]


@pytest.mark.parametrize(("shape", "size", "number", "dtype", "padded"), ROWS)
def test_short_windows_are_padded(shape: Shape, size: Shape, number: int, dtype: Any, padded: bool) -> None:
    cuts, rng = windows(shape, size, number), np.random.default_rng(0)
    x, parts = rng.normal(size=shape).astype(dtype), rng.normal(size=(number, *size)).astype(dtype)
    found = count(lambda x, *parts: added(x, parts, cuts), x, *parts)
    assert (found["pad"], found["dynamic_update_slice"]) == ((number, 0) if padded else (0, number))
    mine = np.asarray(tl.jit(lambda x, *parts: added(x, parts, cuts))(x, *parts))
    for cut, part in zip(cuts, parts):
        x[cut] = part + x[cut]
    np.testing.assert_array_equal(mine, x)


def test_signs_of_zeros_and_special_values_stay() -> None:
    special = np.array([-0.0, 0.0, np.inf, -np.inf, np.nan, 1e-30, -1.0, 3e38], np.float32)
    x, cuts = np.repeat(special, 8), [*windows((64,), (31,), 3), (slice(40, 62),)]
    parts = [np.resize(special, cut.stop - cut.start) for (cut,) in cuts]
    mine = np.asarray(tl.jit(lambda x, *parts: added(x, parts, cuts))(x, *parts))
    with np.errstate(all="ignore"):
        for cut, part in zip(cuts, parts):
            x[cut] += part
    np.testing.assert_array_equal(mine, x)
    np.testing.assert_array_equal(np.signbit(mine[~np.isnan(x)]), np.signbit(x[~np.isnan(x)]))


def test_arrays_that_are_read_in_between_are_padded() -> None:
    """Each is a result, too, so that it is no chain: two windows of it, in the second addition to one array."""
    cuts = windows((6,), (2,), 3)

    def sums(x: Any, *parts: Any) -> Any:
        first = added(x, parts[:1], cuts[:1])
        return first, added(first, parts[1:2], cuts[1:2]), added(first, parts[2:], cuts[2:])

    x, parts = np.arange(6, dtype=np.float32), np.ones((3, 2), np.float32)
    assert count(sums, x, *parts)["dynamic_update_slice"] == 0
    expected = [[1, 2, 2, 3, 4, 5], [1, 3, 3, 3, 4, 5], [1, 2, 3, 4, 4, 5]]
    np.testing.assert_array_equal(np.stack(tl.jit(sums)(x, *parts)), expected)


def other_window(x: Any, part: Any) -> Any:
    return lax.dynamic_update_slice(x, part + x[1:3], [2])


def other_array(x: Any, part: Any) -> Any:
    return lax.dynamic_update_slice(x, part + (2 * x)[1:3], [1])


def strided(x: Any, part: Any) -> Any:
    return lax.dynamic_update_slice(x, part + x[1:5:2], [1])


def difference(x: Any, part: Any) -> Any:
    return lax.dynamic_update_slice(x, x[1:3] - part, [1])


def computed_start(x: Any, part: Any) -> Any:
    start = [tnp.argmax(x) - 2]
    return lax.dynamic_update_slice(x, lax.dynamic_slice(x, start, [2]) + part, start)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (other_window, [0, 1, 11, 12, 4, 5]),
        (other_array, [0, 12, 14, 3, 4, 5]),
        (strided, [0, 11, 13, 3, 4, 5]),
        (difference, [0, -9, -8, 3, 4, 5]),
        (computed_start, [0, 1, 2, 13, 14, 5]),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_other_writes_are_not(f: Callable[..., Any], expected: list[int]) -> None:
    args = np.arange(6, dtype=np.float32), np.full(2, 10, np.float32)
    assert count(f, *args)["dynamic_update_slice"] == 1
    np.testing.assert_array_equal(tl.jit(f)(*args), expected)


def test_windows_in_loops_and_branches_are_padded() -> None:
    cuts = windows((6,), (2,), 2)

    def steps(x: Any, parts: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, x: added(x, parts, cuts), x)

    x, parts = np.zeros(6, np.float32), [np.ones(2, np.float32)] * 2
    assert count(steps, x, parts)["dynamic_update_slice"] == 0
    np.testing.assert_array_equal(tl.jit(steps)(x, parts), [3, 6, 3, 0, 0, 0])


def test_second_derivatives_of_slices_write_no_window_twice() -> None:
    """Minors of a determinant: transposed twice, the windows that are added are read, and not cleared before."""

    def by_minors(x: Any) -> Any:
        if len(x) == 1:
            return x[0, 0]
        minors = [tnp.concatenate([x[1:, :j], x[1:, j + 1 :]], axis=1) for j in range(len(x))]
        return sum((-1) ** j * x[0, j] * by_minors(minor) for j, minor in enumerate(minors))

    x = np.random.default_rng(0).normal(size=(4, 4))
    second = tl.grad(lambda x: tnp.sum(tl.grad(by_minors)(x) ** 2))
    found = count(second, x)
    assert found["dynamic_update_slice"] == found["optimization_barrier"] == 0
    cofactors = lambda x: np.linalg.det(x) * np.linalg.inv(x).T  # noqa: E731
    h, v = 1e-5, np.random.default_rng(1).normal(size=(4, 4))
    slope = (np.sum(cofactors(x + h * v) ** 2) - np.sum(cofactors(x - h * v) ** 2)) / (2 * h)
    np.testing.assert_allclose(np.sum(np.asarray(tl.jit(second)(x)) * v), slope, rtol=1e-6)  # central differences
