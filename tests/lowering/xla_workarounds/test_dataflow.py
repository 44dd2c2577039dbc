"""Which updates are kept apart from the arrays that they are written into: those that may be computed from them."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering.xla_workarounds.dataflow import LIMIT, Dataflow

X = np.arange(12.0)


def barriers(f: Any, *args: Any) -> int:
    return tl.jit(f).lower(*args).as_text().count("stablehlo.optimization_barrier")


def of_another_carry(x: Any) -> Any:
    def body(i: Any, carry: Any) -> Any:
        table, row = carry
        return table.at[i].set(row), 0.9 * row

    return lax.fori_loop(0, 3, body, (x.reshape(4, 3), x[:3]))[0]


def of_a_row_before(x: Any) -> Any:
    return lax.fori_loop(1, 4, lambda i, t: t.at[i].set(0.5 * t[i - 1]), x.reshape(4, 3))


@tl.jit
def written(x: Any, update: Any) -> Any:
    return x.at[2:5].set(update)


PROGRAMS = {
    "another array": (lambda x: tnp.zeros(12).at[2:5].set(tnp.sin(x[:3])), 0),
    "gradient of products of neighbours": (tl.grad(lambda x: (x[1:] * x[:-1]).sum()), 0),
    "one element": (lambda x: tnp.sin(x).at[2].set(x[3]), 0),
    "another carry": (of_another_carry, 0),
    "reads in loops, which are settled": (of_a_row_before, 0),
    "the array": (lambda x: (y := tnp.sin(x)).at[2:5].set(2 * y[:3]), 1),
    "what it was before another write": (lambda x: (y := tnp.sin(x)).at[2:5].set(1).at[4:7].set(y[:3]), 1),
    "the place": (lambda x: lax.dynamic_update_slice(y := tnp.sin(x), x[:3], (y[4].astype(int),)), 1),
    "the same, computed twice": (lambda x: tnp.cumsum(x).at[2:5].set(2 * tnp.cumsum(x)[:3]), 1),
    "its own elements": (lambda x: tnp.sin(x).at[2:5].multiply(x[:3]), 0),
    "its own elements, and others": (lambda x: (y := tnp.sin(x)).at[2:5].multiply(y[:3]), 1),
    "its own elements, reversed": (lambda x: (y := tnp.sin(x)).at[2:5].set(y[2:5][::-1] + 1), 1),
    "its own elements, at a computed place": (
        lambda x, i: lax.dynamic_update_slice(y := tnp.sin(x), 2 * lax.dynamic_slice(y, (i,), (3,)), (i,)),
        0,
    ),
    "an argument of a call": (lambda x: written(tnp.cos(written(tnp.sin(x), x[:3])), x[:3]), 1),
    "a result of a branch": (lambda x: lax.cond(x[0] > 0, tnp.sin, tnp.cos, x).at[2:5].set(x[:3]), 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_barriers(name):
    f, expected = PROGRAMS[name]
    assert barriers(f, X, *[3] * (f.__code__.co_argcount - 1)) == expected


def test_what_is_computed_from_much_may_be_computed_from_anything():
    flow = Dataflow()
    for k in range(1, LIMIT + 10):
        flow.add([f"%{k}"], "sine", [f"%{k - 1}"])
    assert not flow.may_read("%5", "%other") and flow.may_read(f"%{LIMIT + 5}", "%other")


def test_equal_values_are_one_array():
    flow = Dataflow()
    flow.add(["%1"], "sine", ["%0"])
    flow.add(["%2"], "reshape", ["%0"], view=True)
    flow.add(["%3"], "sine", ["%0"])
    flow.add(["%4"], "reshape", ["%3"], view=True)
    assert flow.may_read("%4", "%1") and not flow.may_read("%2", "%1") and flow.may_read("%1", "%2")
