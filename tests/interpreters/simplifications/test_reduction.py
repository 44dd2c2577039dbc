"""Sums of what is repeated: counts as numbers."""

import numpy as np
import pytest

import tapeless as tl
from tapeless import lax
from tapeless.interpreters.simplify import simplify_program
from tests.interpreters.simplifications.programs import X, after, names


def _repeated(n):
    return lambda x: lax.reduce_sum(lax.broadcast_in_dim(x, (*x.shape, n), (0,)), (1,))


def test_a_product():
    assert names(after(_repeated(5), X)) == ["mul"]
    assert names(after(_repeated(1), X)) == []


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_integers_wrap_around(dtype):
    x = np.arange(4).astype(dtype)
    assert names(after(_repeated(300), x)) == ["mul"]
    np.testing.assert_array_equal(tl.jit(_repeated(300))(x), (300 * np.arange(4)).astype(dtype))


def test_counts_that_are_no_numbers_of_the_dtype():
    x = np.zeros(2, np.float16)
    assert names(after(_repeated(2049), x)) == names(after(_repeated(100_000), x)) == ["broadcast_in_dim", "reduce_sum"]


def test_complex_infinities():
    """A real number times infinity + i is no number, if it is made complex; tangents are finite."""
    x = np.ones(2, complex)
    assert names(simplify_program(tl.make_jaxpr(_repeated(3))(x).jaxpr)) == ["broadcast_in_dim", "reduce_sum"]
    assert names(tl.linearize(_repeated(3), x)[1].jaxpr) == ["mul"]
