"""Elementwise operations of tapeless.lax repeat axes of length 1, as those of jax.lax do, and nothing else."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.close import one_rounding as close
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

ROW, COLUMN = np.array([[1.5, 2.0, -3.0]]), np.array([[0.5], [4.0]])
OPERATIONS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
    "rem": np.fmod, "atan2": np.arctan2, "nextafter": np.nextafter, "eq": np.equal, "lt": np.less,
    "ge": np.greater_equal, "complex": lambda x, y: x + 1j * y,
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_axes_of_length_1_are_repeated(name):
    operation, expected = getattr(lax, name), OPERATIONS[name](ROW, COLUMN)
    close(operation(ROW, COLUMN), expected)
    close(tl.jit(operation)(ROW, COLUMN), expected)
    close(tl.vmap(operation, in_axes=(0, None))(np.stack([ROW, ROW]), COLUMN), np.stack([expected, expected]))
    close(operation(expected.real.astype(float), ROW), OPERATIONS[name](expected.real.astype(float), ROW))


def test_integers_and_powers():
    row, column = np.array([[1, 2, 3]]), np.array([[4], [5]])
    close(lax.bitwise_xor(row, column), row ^ column)
    close(lax.shift_left(row, column), row << column)
    close(lax.pow(ROW, column), ROW**column)
    close(lax.pow(COLUMN, ROW), COLUMN**ROW)


def test_derivatives():
    def f(x, y):
        return tnp.sum(lax.mul(x, y) ** 2)

    for g in (tl.grad(f, (0, 1)), tl.jit(tl.grad(f, (0, 1)))):
        of_row, of_column = g(ROW, COLUMN)
        close(of_row, 2 * ROW * (COLUMN**2).sum())
        close(of_column, 2 * COLUMN * (ROW**2).sum())
    _, pushed = tl.jvp(lax.mul, (ROW, COLUMN), (ROW, np.zeros_like(COLUMN)))
    close(pushed, ROW * COLUMN)


def test_empty_arrays_and_scalars():
    assert lax.add(np.ones((0, 3)), ROW).shape == lax.add(np.ones((0, 1)), ROW).shape == (0, 3)
    assert lax.add(np.ones((1, 1)), np.ones((1, 1))).shape == (1, 1)
    assert lax.add(ROW, 2.0).shape == lax.add(tnp.asarray(np.array(1.0)), ROW).shape == (1, 3)


@pytest.mark.parametrize("shape", [(3,), (1, 2), (1, 1, 3), (2, 2)])
def test_nothing_else_is(shape):
    other = "float64[" + ",".join(map(str, shape)) + "]"
    with raises(ValueError, f"add: operands differ in shape: float64[1,3] and {other}. Broadcast them first."):
        lax.add(ROW, np.ones(shape))


def test_choices_are_not():
    with raises(ValueError, "select: operands differ in shape: float64[1,3] and float64[2,1]. Broadcast them first."):
        lax.select(True, ROW, COLUMN)
    with pytest.raises(ValueError, match="clamp: operands differ in shape"):
        lax.clamp(ROW, np.ones((2, 3)), ROW)
