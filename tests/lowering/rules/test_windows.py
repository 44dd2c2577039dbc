"""Windows as XLA runs them."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

pytestmark = pytest.mark.usefixtures("optimized")
X = np.arange(1.0, 6.0)
NEUTRAL = ((lax.add, 0.0), (lax.mul, 1.0), (lax.max, -np.inf), (lax.min, np.inf))


@pytest.mark.parametrize("before, after", [(-1, 0), (-1, -2), (0, -3), (-2, 1), (-3, -2)])
def test_windows_of_one_element_with_negative_padding(before: int, after: int):
    """XLA ends the process where these reach its simplifier as they are."""

    def reduced(x: Any) -> Any:
        return [lax.reduce_window(x, np.float64(z), op, (1,), (1,), ((before, after),)) for op, z in NEUTRAL]

    for y, (_, z) in zip(tl.jit(reduced)(X), NEUTRAL):
        np.testing.assert_array_equal(y, np.append(X[-before : 5 + min(after, 0)], np.full(max(after, 0), z)))


def test_gradient_of_padded_windows_of_one_element():
    def f(x: Any) -> Any:
        return tnp.sum(np.arange(7.0) * lax.reduce_window(x, np.float64(0), lax.add, (1,), (1,), ((1, 1),)))

    np.testing.assert_array_equal(tl.jit(tl.grad(f))(X), X)


@pytest.mark.parametrize("padding", [((0, 0),), ((-2, -2),)])
def test_gradient_of_windows_longer_than_what_they_move_over(padding: Any):
    """There are none: XLA ends the process at the scatter of nothing by extremes."""

    def f(x: Any) -> Any:
        return tnp.sum(lax.reduce_window(x, -np.inf, lax.max, (7,), (1,), padding))

    np.testing.assert_array_equal(tl.grad(f)(X), np.zeros(5))
    np.testing.assert_array_equal(tl.jit(tl.grad(f))(X), np.zeros(5))


def test_gradient_of_a_window_without_axes():
    """It holds the one element that there is: XLA ends the process at its scatter, too."""

    def f(x: Any) -> Any:
        return 3.0 * lax.reduce_window(x, -np.inf, lax.max, (), (), ())

    assert tl.grad(f)(2.0) == 3.0
    assert tl.jit(tl.grad(f))(2.0) == 3.0
