"""Indices where an array is expected: arguments and results of transformations and loops, operands, operators."""

import math
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless import lax

X = np.arange(1.0, 7.0)
HELD = np.array([3, 1, 2], np.int32)
USES = {  # of x, integers q, and an index; the element for a number
    "an argument of jit": (lambda x, q, i: tl.jit(lambda k: k * 2.0)(i), lambda i: 2 * i),
    "in a tree": (lambda x, q, i: tl.jit(lambda t: t["a"] * x[2])({"a": i}), lambda i: 3 * i),
    "a result of jit": (lambda x, q, i: tl.jit(lambda: q[i] + 1)(), lambda i: HELD[i] + 1),
    "what jit closes over": (lambda x, q, i: tl.jit(lambda k: x[i - 1] * k)(i), lambda i: i * i),
    "an index in jit": (lambda x, q, i: tl.jit(lambda k: x[k - 1])(i), lambda i: i),
    "an argument of checkpoint": (lambda x, q, i: tl.checkpoint(lambda u, k: u * k)(x[i], i), lambda i: X[i] * i),
    "an argument of grad": (lambda x, q, i: tl.grad(lambda u, k: u**2 * k)(x[i], i), lambda i: 2 * X[i] * i),
    "an argument of vmap": (lambda x, q, i: tl.vmap(lambda u, k: u * k, (0, None))(x, i).sum(), lambda i: 21 * i),
    "an operand of cond": (lambda x, q, i: lax.cond(i > 1, lambda k: k * 2, lambda k: k, i), lambda i: (0, 1, 4)[i]),
    "a result of cond": (lambda x, q, i: lax.cond(i > 1, lambda: 2 * q[i], lambda: i), lambda i: (0, 1, 4)[i]),
    "the case of switch": (lambda x, q, i: lax.switch(i, [lambda: 1.0, lambda: 2.0, lambda: 3.0]), lambda i: i + 1),
    "a bound of fori_loop": (lambda x, q, i: lax.fori_loop(0, i, lambda k, c: c + x[k], 0.0), lambda i: sum(X[:i])),
    "a carry of while_loop": (lambda x, q, i: lax.while_loop(lambda c: c < 2, lambda c: c + 1, i), lambda i: 2),
    "a carry of scan": (lambda x, q, i: lax.scan(lambda c, u: (c + u, u), i, tnp.arange(3))[0], lambda i: i + 3),
    "a result of scan": (lambda x, q, i: lax.scan(lambda c, u: (i, 2 * i), 0, tnp.arange(3))[1][0], lambda i: 2 * i),
    "a start": (lambda x, q, i: lax.dynamic_slice(x, (i,), (2,)).sum(), lambda i: X[i] + X[i + 1]),
    "a start of what is written": (
        lambda x, q, i: lax.dynamic_update_slice(x, np.zeros(2), (i,)).sum(),
        lambda i: 21 - X[i] - X[i + 1],
    ),
    "an operand of lax": (lambda x, q, i: lax.convert_element_type(lax.add(i, 1), float), lambda i: i + 1),
    "an element of full": (lambda x, q, i: tnp.full((2,), i).sum(), lambda i: 2 * i),
    "elements of an array": (lambda x, q, i: tnp.array([i, 2 * i, 5]).sum(), lambda i: 3 * i + 5),
    "a result of fold": (lambda x, q, i: ix.fold(lambda c, k: k + i, 0, 3), lambda i: 2 + i),
    "results of scan of indices": (lambda x, q, i: ix.scan(lambda c, k: (c, 2 * k + i), 0, 3)[1][1], lambda i: 2 + i),
    "not": (lambda x, q, i: ~i, lambda i: ~i),
    "a read at not": (lambda x, q, i: x[~(-i)], lambda i: X[i - 1] if i else 0),
    "round": (lambda x, q, i: x[round(i)] + math.floor(i) + math.ceil(i) + math.trunc(i), lambda i: X[i] + 3 * i),
}


@pytest.mark.parametrize("use", USES)
def test_an_index_is_its_value(use: str):
    body, element = USES[use]
    expected = [element(i) for i in range(3)]
    f, x = lambda x: ix.build(3, lambda i: body(x, tnp.asarray(HELD), i)), tnp.asarray(X)
    np.testing.assert_allclose(f(x), expected)
    np.testing.assert_allclose(tl.jit(f)(x), expected)
    np.testing.assert_allclose(tl.jvp(f, (x,), (x,))[0], expected)


def test_loops_return_indices():
    """A fold that returns its index, a scan that stacks it, the place of a maximum."""
    x = tnp.asarray(X)
    assert ix.fold(lambda c, k: k, 0, 3) == 2
    np.testing.assert_array_equal(ix.scan(lambda c, k: (c, k), 0.0, 3)[1], [0, 1, 2])
    np.testing.assert_array_equal(ix.scan(lambda c, k: (k, (k, 2 * k + 1)), 0, 3)[1], [[0, 1, 2], [1, 3, 5]])
    place = lambda x: ix.fold(lambda c, k: ix.cond(x[k] > x[c], lambda: k, lambda: c), 0, 6)  # noqa: E731
    assert place(-((x - 3.2) ** 2)) == 2
    assert tl.jit(place)(x) == 5


def test_an_index_does_not_say_where_to_write():
    with pytest.raises(TypeError, match=r"an index of a body cannot stand here: use index\.scatter to write by it"):
        ix.build(3, lambda i: tnp.asarray(X).at[i].set(9.0))


def unrounded(ndigits: int) -> Any:
    return ix.build(15, lambda i: round(i, ndigits))


def test_rounding_to_tens():
    np.testing.assert_array_equal(unrounded(-1), [round(i, -1) for i in range(15)])
    np.testing.assert_array_equal(unrounded(1), np.arange(15))
