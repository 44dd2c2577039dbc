"""The inputs of checkpoints that wait for the cotangents."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.residuals.barriers import inputs_to_tie
from tapeless.interpreters.simplifications.repeatable_equations import may_be_repeated


def tied(f: Any, *shapes: tuple[int, ...], dtype: str = "float32", free: Any = may_be_repeated) -> list[int]:
    """The numbers of the inputs that are tied in a program that is all computed again."""
    jaxpr = tl.make_jaxpr(f)(*[tnp.ones(shape, dtype) for shape in shapes]).jaxpr
    return [k for k, v in enumerate(jaxpr.invars) if v in inputs_to_tie(jaxpr, free)]


def layers(x, *ws):
    for w in ws:
        x = tnp.tanh(x @ w)
    return x


def test_products_wait_by_their_smallest_operand():
    assert tied(layers, (64, 8), (8, 8), (8, 8)) == [1]
    assert tied(layers, (4, 8), (8, 8), (8, 8)) == [0]
    assert tied(lambda x, w, s: (s * x) @ w, (64, 8), (8, 8), (), free=lambda eqn: "dot" not in str(eqn)) == [2]


def test_what_compilers_rewrite_waits_by_all_operands():
    """Convolutions, as XLA copies an operand; products of narrow types, as it converts them."""
    assert tied(lambda x, w: lax.conv(x, w, (1, 1), "SAME"), (2, 3, 8, 8), (4, 3, 3, 3)) == [0, 1]
    assert tied(layers, (64, 8), (8, 8), (8, 8), dtype="bfloat16") == [0, 1, 2]
    assert tied(tnp.arctan2, (4,), (4,)) == [0, 1]


def test_free_equations_wait_if_what_reads_them_does():
    assert tied(lambda x: tnp.repeat(x, 2, 0), (4, 8)) == []
    assert tied(lambda x, w: tnp.repeat(x, 2, 0) @ w, (64, 8), (8, 8)) == [0]


OPERATIONS = {
    "sin": lambda x, _: tnp.sin(x),
    "move": lambda x, _: x[::-1],
    "add": lambda x, y: x + y,
    "dot": lambda x, y: x @ y,
}
STEPS = st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 4), st.integers(0, 4)), max_size=8)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(STEPS)
def test_everything_that_is_not_free_depends_on_what_is_tied(steps: Any):
    def f(*values):
        for name, *back in steps:
            values = (*values, OPERATIONS[name](*[values[-1 - k % len(values)] for k in back]))
        return values[-1]

    jaxpr = tl.make_jaxpr(f)(*[np.ones((3, 3), np.float32)] * 3).jaxpr
    waiting = set(inputs_to_tie(jaxpr, may_be_repeated))
    for eqn in jaxpr.eqns:
        if not waiting.isdisjoint(eqn.invars):
            waiting.update(eqn.outvars)
        assert may_be_repeated(eqn) or waiting.issuperset(eqn.outvars)
