"""Rows of linear_while: loops whose residuals depend on saved states, and on none."""

from typing import Any

import numpy as np

from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives.linear_while import linear_while_p
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray
from tests.samples.sample import Sample, f32

VECTOR = ShapedArray((3,), np.dtype(np.float64))  # in which derivatives are checked
STEP, _ = trace_to_jaxpr(lambda w, x: (w * x, x), (VECTOR, VECTOR))  # the state, and the residual
LINEAR = mark_linear(trace_to_jaxpr(lambda r, a, t: (r * t + a,), (VECTOR, VECTOR, VECTOR))[0], (False, True, True))
CONSTANT, _ = trace_to_jaxpr(lambda w: (w,), (VECTOR,))
PARAMS = {"step": STEP, "linear": LINEAR, "n_states": 1, "n_consts": 1, "n_linear_consts": 1}
STATELESS = {**PARAMS, "step": CONSTANT, "n_states": 0}
W, X, A, T = (f32(3, seed=k).astype(np.float64) for k in range(4))
TRIPS = np.int32(4)
POSITIONS = np.array([0, 3], np.int32)


def _looped(trips: Any, positions: Any, states: Any, w: Any, a: Any, t: Any, **_: Any) -> Any:
    x = states[0]
    for _k in range(trips):
        x, t = w * x, x * t + a
    return t


def _stateless(trips: Any, w: Any, a: Any, t: Any, **_: Any) -> Any:
    for _k in range(trips):
        t = w * t + a
    return t


STATES = np.stack([X, W**3 * X])
OPERANDS = (TRIPS, POSITIONS, STATES, W, A, T)

ROWS = [
    Sample(
        linear_while_p,
        OPERANDS,
        _looped,
        PARAMS,
        linear_in=(4, 5),
        differentiable=(4, 5),  # of the saved states only the first counts, which the others must then agree with
        bad=(
            ((TRIPS, POSITIONS, STATES[:1], W, A, T), PARAMS, TypeError),
            ((TRIPS, POSITIONS, STATES, W, A, T[:2]), PARAMS, TypeError),
        ),
    ),
    Sample(
        linear_while_p,
        (TRIPS, W, A, T),
        _stateless,
        STATELESS,
        linear_in=(2, 3),
        differentiable=(1, 2, 3),
        label="stateless",
    ),
]
