"""The predicted peak of live bytes, beside what XLA allots to the temporaries of the same program."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.analysis.live_bytes import temporary_bytes
from tapeless.interpreters.simplify import simplify_program
from tapeless.tracer.jaxpr import Jaxpr

X = np.ones((256, 64), np.float32)
W = np.ones((64, 64), np.float32)
IMAGES, FILTERS = np.ones((4, 16, 16, 8), np.float32), np.ones((3, 3, 8, 8), np.float32)
NOTHING = Jaxpr([], [], [], "nothing")


def convolved(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def steps(x: Any, w: Any) -> Any:
    """A scan whose step reads a part of an array, stacks one, and whose carry is read after the new one is computed."""

    def step(c: Any, row: Any) -> Any:
        new = tnp.tanh(c @ w)
        return new, c @ row[:, None]

    return lax.scan(step, x, w)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elements, computed where they are read": (lambda x: tnp.sum((x + 1) * (2 * x) - x), (X,)),
    "two products": (lambda x, w: tnp.sum(tnp.tanh(x @ w) @ w), (X, W)),
    "read by two kernels": (lambda x, w: ((y := tnp.exp(x) + x) @ w, y.T @ x), (X, W)),
    "in the buffer of a result": (lambda x, w: tnp.concatenate([tnp.tanh(x @ w) @ w] * 3), (X, W)),
    "convolutions": (lambda x, w: tnp.sum(convolved(tnp.tanh(convolved(x, w)), w)), (IMAGES, FILTERS)),
    "gradient of convolutions": (
        tl.grad(lambda x, w: tnp.sum(tnp.sin(convolved(tnp.tanh(convolved(x, w)), w))), (0, 1)),
        (IMAGES, FILTERS),
    ),
    "a loop": (lambda x, w: tnp.sum(steps(x, w)[0]), (X, W)),
    "gradient of a loop": (tl.grad(lambda x, w: tnp.sum(steps(x, w)[1])), (X, W)),
    "branches": (
        lambda x, w: lax.cond(x[0, 0] > 0, lambda: tnp.sum(tnp.tanh(x @ w) @ w), lambda: tnp.sum(x)),
        (X, W),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_predicted_as_allotted(name: str):
    """Within 5 % and 1,000 bytes, of counters, tuples, and alignment."""
    f, args = FUNCTIONS[name]
    closed = tl.make_jaxpr(f)(*args)
    found = temporary_bytes(simplify_program(closed.jaxpr), NOTHING)
    allotted = tl.jit(f).lower(*args).compile().memory_analysis().temp_size_in_bytes
    assert abs(found - allotted) <= 0.05 * allotted + 1000, (found, allotted)
