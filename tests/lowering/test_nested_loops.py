"""Loops inside loops, compiled as users compile them: an inner loop reads what the outer one carries and changes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

pytestmark = pytest.mark.usefixtures("optimized")
X = np.array([1.0, 2.0, 3.0])
PROGRAMS: list[tuple[Callable[[Any], Any], Any]] = []


def gives(*expected: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A program, and what it gives for `X`."""

    def add(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        PROGRAMS.append((f, expected))
        return f

    return add


@gives(14 * X)
def scan_in_a_scan(x):
    def step(carry, _):
        v, total = carry
        total, _ = lax.scan(lambda a, b: (a + v, None), total, tnp.arange(2.0))
        return (v * 2.0, total), None

    return lax.scan(step, (x, x * 0), None, length=3)[0][1]


@gives(14 * X)
def loop_in_a_while(x):
    def step(carry):
        i, v, total = carry
        return i + 1, v * 2.0, lax.fori_loop(0, 2, lambda _, a: a + v, total)

    return lax.while_loop(lambda c: c[0] < 3, step, (0, x, x * 0))[2]


@gives(56 * X)
def three_deep(x):
    def step(i, carry):
        v, total = carry
        total = lax.fori_loop(0, 2, lambda i, t: lax.fori_loop(0, 4, lambda j, t: t + v, t), total)
        return v * 2.0, total

    return lax.fori_loop(0, 3, step, (x, x * 0))[1]


@gives(np.array([8.0, 12.0, 12.0]))
def inner_loop_reads_what_is_then_written(x):
    def step(i, carry):
        v, total = carry
        total = lax.fori_loop(0, 2, lambda j, t: t + v, total)
        return v.at[i].set(0.0), total

    return lax.fori_loop(0, 3, step, (x[::-1] + 1, x * 0))[1]


@gives(np.sum(np.sin(X)) * 3, np.sin(X) * [0, 1, 1])
def loop_reads_what_is_written_after_it(x):
    b = tnp.sin(x)
    total = lax.fori_loop(0, 9, lambda i, s: s + b[i % 3], 0.0)
    return total, b.at[0].set(0.0)


@gives(np.sum(np.sin(X)) * 3, np.sin(X) * 8)
def loop_reads_what_the_next_loop_carries(x):
    b = tnp.sin(x)
    total = lax.fori_loop(0, 9, lambda i, s: s + b[i % 3], 0.0)
    return total, lax.fori_loop(0, 3, lambda _, b: b * 2.0, b)


@pytest.mark.parametrize("f, expected", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_a_loop_reads_before_the_write(f, expected):
    pair = np.stack([X, X])
    for found in (f(X), tl.jit(f)(X)):
        for value, right in zip(tl.tree.leaves(found), expected, strict=True):
            np.testing.assert_allclose(value, right, rtol=1e-12)
    for value, right in zip(tl.tree.leaves(tl.jit(tl.vmap(f))(pair)), expected, strict=True):
        np.testing.assert_allclose(value, [right, right], rtol=1e-12)


@pytest.mark.parametrize("f", [scan_in_a_scan, three_deep], ids=["scan_in_a_scan", "three_deep"])
def test_gradients_of_loops_in_loops(f):
    factor = 14.0 if f is scan_in_a_scan else 56.0
    value = lambda x: tnp.sum(f(x) ** 2)  # noqa: E731
    for gradient in (tl.grad(value), tl.jit(tl.grad(value))):
        np.testing.assert_allclose(gradient(X), 2 * factor**2 * X, rtol=1e-12)
    np.testing.assert_allclose(tl.jit(lambda x, t: tl.jvp(f, (x,), (t,)))(X, 0 * X + 1)[1], factor, rtol=1e-12)
