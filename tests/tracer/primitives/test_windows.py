"""reduce_window with every initial value that JAX's takes."""

import itertools
from functools import partial

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import raises

X = np.array([[2.0, 3.0, 0.5, -1.0], [1.0, -2.0, 4.0, 0.25]])
WINDOW = ((1, 3), (1, 1), "SAME")


@pytest.mark.parametrize("name", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("initial", [0.0, 1.0, 2.5, -np.inf])
def test_initial_values(name, initial):
    jax = pytest.importorskip("jax")
    computation, of_jax = getattr(lax, name), getattr(jax.lax, name)
    with jax.enable_x64(True):
        expected = jax.lax.reduce_window(X, initial, of_jax, *WINDOW)
    np.testing.assert_array_equal(lax.reduce_window(X, initial, computation, *WINDOW), expected)
    array = tnp.asarray(initial, np.float64)
    np.testing.assert_array_equal(lax.reduce_window(X, array, computation, *WINDOW), expected)
    jitted = tl.jit(lambda x, v: lax.reduce_window(x, v, computation, *WINDOW))
    np.testing.assert_array_equal(jitted(X, np.asarray(initial)), expected)


def test_an_initial_value_has_a_derivative():
    total = lambda v, f: lax.reduce_window(X, v, f, *WINDOW).sum()  # noqa: E731
    gradient = lambda v, f: tl.grad(total)(np.asarray(v), f)  # noqa: E731
    assert gradient(0.0, lax.add) == X.size
    assert gradient(1.0, lax.mul) == lax.reduce_window(X, 1.0, lax.mul, *WINDOW).sum()
    assert gradient(3.5, lax.max) == 5


@pytest.mark.parametrize("wrong", [np.zeros(1), np.zeros((), np.float32)])
def test_initial_values_are_scalars_of_the_dtype(wrong):
    with pytest.raises(
        TypeError, match="reduce_window: init_value must be a scalar of float64, as operand is, not float"
    ):
        lax.reduce_window(X, wrong, lax.add, *WINDOW)


IMAGE, KERNEL = np.ones((1, 1, 8, 8), np.float32), np.ones((1, 1, 3, 3), np.float32)
PADDING = (
    "conv_general_dilated: padding is 'SAME', 'SAME_LOWER', 'VALID' or a pair (before, after) for each of the 2 axes "
    "of the windows, not {}."
)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"window_strides": 1, "padding": "SAME"},
            "conv_general_dilated: window_strides must be integers, one for each of 2 axes, such as (1, 1), not the "
            "number 1.",
        ),
        ({"window_strides": (1, 1), "padding": 1}, PADDING.format(1)),
        ({"window_strides": (1, 1), "padding": (1, 1)}, PADDING.format("(1, 1)")),
        (
            {"window_strides": (1, 1), "padding": "SAME", "rhs_dilation": 2},
            "conv_general_dilated: rhs_dilation must be integers, one for each of 2 axes, such as (2, 2), not the "
            "number 2.",
        ),
    ],
)
def test_one_number_for_all_axes_is_refused(settings, message):
    with pytest.raises(TypeError) as caught:
        tl.lax.conv_general_dilated(IMAGE, KERNEL, **settings)
    assert str(caught.value) == message


def test_windows_of_other_axes_than_the_operand_are_refused():
    x = np.ones((1, 1, 4, 4), np.float32)
    name = "reduce_window: window_dimensions must be integers, one for each of 4 axes"
    with raises(TypeError, f"{name}, such as (1, 1, 2, 2), not the number 2."):
        tl.lax.reduce_window(x, 0.0, tl.lax.add, 2, 2, "VALID")  # pyright: ignore[reportArgumentType]  # which is the test
    with raises(ValueError, f"{name}, not (2, 2)."):
        tl.lax.reduce_window(x, 0.0, tl.lax.add, (2, 2), (2, 2), "VALID")


def summed(lax, window, strides, padding, x, **more):
    return lax.reduce_window(x, 0.0, lax.add, window, strides, padding, **more)


def test_same_padding_is_that_of_the_array_before_it_is_dilated():
    """Shapes of all small cases, and values of one, are JAX's."""
    jax = pytest.importorskip("jax")
    for n, w, stride, base, gap in itertools.product((1, 2, 5), (2, 3), (1, 2), (1, 2, 3), (1, 2)):
        more = {"base_dilation": (base,), "window_dilation": (gap,)}
        for padding in ("SAME", "SAME_LOWER", "VALID"):
            args = (w,), (stride,), padding
            theirs = jax.eval_shape(partial(summed, jax.lax, *args, **more), np.ones(n, np.float32))
            ours = tl.eval_shape(partial(summed, lax, *args, **more), np.ones(n, np.float32))
            assert ours.shape == theirs.shape, (n, args, more)
    with jax.enable_x64(True):
        expected = jax.lax.reduce_window(X, -np.inf, jax.lax.max, (1, 2), (1, 2), "SAME", base_dilation=(1, 2))
    found = lax.reduce_window(X, -np.inf, lax.max, (1, 2), (1, 2), "SAME", base_dilation=(1, 2))
    np.testing.assert_array_equal(found, expected)


def test_same_padding_of_a_dilated_convolution_is_not_defined():
    image, kernel = np.ones((1, 1, 5)), np.ones((1, 1, 3))
    advice = "padding 'SAME' is not defined if lhs is dilated by (2,): give pairs of integers."
    with raises(ValueError, f"conv_general_dilated: {advice}"):
        lax.conv_general_dilated(image, kernel, (1,), "SAME", lhs_dilation=(2,))
    with raises(ValueError, f"conv_general_dilated_patches: {advice}"):
        lax.conv_general_dilated_patches(image, (3,), (1,), "SAME", lhs_dilation=(2,))
