"""Random bits in the text of a module: written out once for each type, if there are several draws of it."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

SHIFTS = 20  # to the left, of one Threefry: a rotation in each round


def counts(f: Any, *args: Any) -> tuple[int, int, int]:
    """Count Threefry written out, functions that are it, and their calls."""
    text = tl.jit(f).lower(*args).as_text()
    written, rest = divmod(text.count('"stablehlo.shift_left"'), SHIFTS)
    assert not rest
    return written, text.count("func.func private @threefry2x32"), text.count("callee = @threefry2x32")


def draws(n: int, key: Any) -> Any:
    return sum(tl.random.bits(tl.random.fold_in(key, i), (3,)) for i in range(n))


@pytest.mark.parametrize(("n", "expected"), [(1, (2, 0, 0)), (2, (2, 2, 4)), (5, (2, 2, 10))])
def test_draws_of_one_type(n: int, expected: tuple[int, int, int]):
    """Those of a key that is folded in have another type than those of bits."""
    assert counts(lambda key: draws(n, key), tl.random.PRNGKey(0)) == expected


def test_draws_inside_of_programs():
    """A loop's body, whose arrays may be overwritten, has a function of its own."""

    def f(key: Any, n: Any) -> Any:
        _, each = lax.scan(lambda key, i: (key, tl.random.bits(key, (4,)) + i), key, tnp.arange(3, dtype=np.uint32))
        return each + lax.cond(n > 0, lambda: tl.random.bits(key, (4,)), lambda: tnp.zeros(4, np.uint32))

    key = tl.random.PRNGKey(3)
    assert counts(f, key, 1) == (2, 2, 2)
    one = np.asarray(tl.random.bits(key, (4,)))
    np.testing.assert_array_equal(tl.jit(f)(key, 1), 2 * one + np.arange(3, dtype=np.uint32)[:, None])


def test_the_bits_are_those_of_one_draw():
    key = tl.random.PRNGKey(7)
    expected = sum(np.asarray(tl.random.bits(tl.random.fold_in(key, i), (3,))) for i in range(4))
    np.testing.assert_array_equal(tl.jit(lambda key: draws(4, key))(key), expected)
