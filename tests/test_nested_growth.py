"""Loops inside loops that read and write one array grow as the loops do, in both modes; see tests/test_growth.py."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.growing import linear

pytestmark = pytest.mark.usefixtures("optimized")
LOOPS: dict[str, Callable[[Any], Any]] = {}
MODES = ("forwards", "jvp", "gradient")


def loop(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """len(x) steps of an outer loop, each of which runs inner ones of a few steps."""
    LOOPS[f.__name__] = f
    return f


def over(x: Any, body: Callable[[Any, Any], Any], init: Any) -> Any:
    return lax.fori_loop(0, x.shape[0], body, init)


def inner(body: Callable[[Any, Any], Any], init: Any, steps: int = 3) -> Any:
    return lax.fori_loop(0, steps, body, init)


def around(x: Any, i: Any) -> Any:
    return i % x.shape[0]


@loop
def inner_reads_and_outer_writes(x):
    def body(i, b):
        s = inner(lambda j, s: tnp.sin(s + b[around(x, i + j)]), x[i])
        return b.at[i].set(s)

    return tnp.sum(over(x, body, 2 * x))


@loop
def outer_reads_and_inner_writes(x):
    def body(i, b):
        v = b[i] * tnp.sin(b[i])
        return inner(lambda j, b: b.at[around(x, i + j)].set(tnp.sin(v)), b)

    return tnp.sum(over(x, body, 2 * x))


@loop
def inner_overwrites_what_was_read_with_constants(x):
    def body(i, carry):
        s, b = carry
        return s + b[i], inner(lambda j, b: b.at[j].set(0.5), b)

    s, b = over(x, body, (np.float32(0), 2 * x))
    return s + tnp.sum(b)


@loop
def both_read_and_write(x):
    def body(i, b):
        b = b.at[i].set(tnp.sin(b[i - 1]))
        b = inner(lambda j, b: b.at[around(x, i + j)].multiply(tnp.cos(b[i])), b)
        return b.at[i].add(b[i - 1])

    return tnp.sum(over(x, body, 2 * x))


@loop
def two_buffers(x):
    def body(i, buffers):
        a, b = buffers
        a = inner(lambda j, a: a.at[around(x, i + j)].set(tnp.sin(b[i] + a[j])), a)
        return a, b.at[i].set(0.5 * a[i])

    a, b = over(x, body, (x, 2 * x))
    return tnp.sum(a * b)


@loop
def scan_in_a_scan(x):
    def body(b, i):
        def step(carry, j):
            s, b = carry
            s = tnp.sin(s + b[around(x, i + j)])
            return (s, b.at[around(x, i - j)].set(s)), s

        (_, b), ys = lax.scan(step, (x[i], b), np.arange(3, dtype=np.int32))
        return b, tnp.sum(ys)

    b, ys = lax.scan(body, 2 * x, np.arange(x.shape[0], dtype=np.int32))
    return tnp.sum(b) + tnp.sum(ys)


@loop
def while_in_a_loop(x):
    def body(i, b):
        def step(carry):
            j, b = carry
            at = around(x, i + j)
            return j + 1, b.at[at].set(tnp.sin(b[i]) + b[at])

        return lax.while_loop(lambda carry: carry[0] < 3, step, (0, b))[1]

    return tnp.sum(over(x, body, 2 * x))


@loop
def three_deep(x):
    def body(i, b):
        def middle(j, b):
            def innermost(k, b):
                at = around(x, i + j + k)
                return b.at[at].set(0.5 * tnp.sin(b[i]) + x[at])

            return inner(innermost, b, 2).at[j].add(b[i])

        return inner(middle, b, 2)

    return tnp.sum(over(x, body, 2 * x))


@loop
def branch_in_an_inner_loop(x):
    def body(i, b):
        def step(j, b):
            at = around(x, i + j)
            return lax.cond(b[at] > 0.5, lambda b: b.at[at].set(0.5 * b[i]), lambda b: b, b)

        return inner(step, b)

    return tnp.sum(over(x, body, 2 * x))


@loop
def inner_loop_in_a_branch(x):
    def body(i, b):
        def loops(b):
            return inner(lambda j, b: b.at[around(x, i + j)].set(tnp.sin(b[i])), b)

        return lax.cond(x[i] > 0.5, loops, lambda b: b.at[i].multiply(b[i - 1]), b)

    return tnp.sum(over(x, body, 2 * x))


@loop
def swaps_in_an_inner_loop(x):
    def body(i, b):
        def step(j, b):
            at = around(x, i + 7 * j)
            return b.at[i].set(b[at]).at[at].set(0.9 * b[i])

        return inner(step, b)

    return tnp.sum(x * over(x, body, 2 * x))


@loop
def rows_and_columns(x):
    def body(i, m):
        return inner(lambda j, m: m.at[i, j].set(tnp.sin(m[i - 1, j]) + m[i, (j + 1) % 3]), m)

    return tnp.sum(over(x, body, tnp.stack([x, 2 * x, 3 * x], 1)))


# ---- one loop ------------------------------------------------------------------------------------------------


@loop
def reads_the_old_array_after_the_write(x):
    def body(i, carry):
        s, b = carry
        written = b.at[i].set(s)
        return tnp.sin(s + b[i]), written

    s, b = over(x, body, (np.float32(0), 2 * x))
    return s + tnp.sum(b)


@loop
def reads_what_it_wrote(x):
    def body(i, b):
        b = b.at[i].set(0.5)
        return b.at[i // 2].set(tnp.sin(b[i // 2]) + b[i // 3])

    return tnp.sum(over(x, body, 2 * x))


@loop
def three_branches(x):
    def body(i, b):
        at = around(x, i + 3)
        branches = (
            lambda b: b.at[i].set(b[at]),
            lambda b: b,
            lambda b: b.at[at].add(b[i]).at[i].set(0.0),
        )
        return lax.switch(i % 3, branches, b)

    return tnp.sum(over(x, body, 2 * x))


@loop
def branches_with_two_results(x):
    def body(i, carry):
        def written(s, b):
            return 0.5 * s, b.at[i].set(s)

        return lax.cond(carry[0] > 0.5, written, lambda s, b: (s + b[i], b), *carry)

    s, b = over(x, body, (np.float32(0), 2 * x))
    return s + tnp.sum(b)


@loop
def branches_with_two_buffers(x):
    def body(i, buffers):
        def written(a, b):
            return a.at[i].set(b[i]), b.at[i].set(a[i])

        return lax.cond(x[i] > 0.5, written, lambda a, b: (a, b.at[i].set(0.0)), *buffers)

    a, b = over(x, body, (x, 2 * x))
    return tnp.sum(a * b)


def in_mode(f: Callable[[Any], Any], mode: str) -> Callable[[Any], Any]:
    return {"forwards": f, "gradient": tl.grad(f), "jvp": lambda x: tl.jvp(f, (x,), (2 * x,))}[mode]


CASES = [(name, mode) for name in LOOPS for mode in MODES if (name, mode) != ("while_in_a_loop", "gradient")]


@pytest.mark.parametrize("name, mode", CASES, ids=["-".join(case) for case in CASES])
def test_loops_in_loops_cost_of_the_order_of_n(name, mode):
    linear(in_mode(LOOPS[name], mode))
