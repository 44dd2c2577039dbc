"""Rows of invertible functions, and of linear scans, whose residuals are computed from the last state."""

from typing import Any

import numpy as np

from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives.elementwise import add, exp, mul, sub
from tapeless.tracer.primitives.invertible import invertible_p, linear_scan_p
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray
from tests.samples.sample import Sample, f32

VECTOR = ShapedArray((3,), np.dtype(np.float64))  # in which derivatives are checked
COUPLING, _ = trace_to_jaxpr(lambda w, a, b: (add(a, mul(w, b)), b, mul(a, a)), (VECTOR,) * 3)
DECOUPLING, _ = trace_to_jaxpr(lambda w, a, b: (sub(a, mul(w, b)), b), (VECTOR,) * 3)
SUM, _ = trace_to_jaxpr(lambda w, a, b: (add(a, b),), (VECTOR,) * 3)  # of another number of results
PARAMS = {"jaxpr": COUPLING, "inverse": DECOUPLING, "n_args": 1}
W, A, B, T = (f32(3, seed=k).astype(np.float64) for k in range(4))

BACK, _ = trace_to_jaxpr(lambda w, y, u: (sub(y, mul(w, u)), exp(sub(y, mul(w, u)))), (VECTOR,) * 3)
LINEAR, _ = trace_to_jaxpr(lambda r, c, t, s: (add(mul(r, t), c), s), (VECTOR,) * 4)
LOOP = {
    "back": BACK,
    "linear": mark_linear(LINEAR, (False, True, True, True)),
    "counts": (1, 1, 1, 1, 1),
    "length": 2,
    "reverse": False,
    "unroll": 1,
}
C = f32(3, seed=4).astype(np.float64)
US, SS = (f32(2, 3, seed=k).astype(np.float64) for k in (5, 6))


def _residuals(w: Any, y: Any, us: Any) -> list[Any]:
    found = []
    for u in us[::-1]:
        y = y - w * u
        found.append(np.exp(y))
    return found[::-1]


def _loop(w: Any, y: Any, us: Any, c: Any, t: Any, ss: Any, **_: Any) -> Any:
    out = []
    for r, s in zip(_residuals(w, y, us), ss):
        t = r * t + c
        out.append(s)
    return t, np.stack(out)


ROWS = [
    Sample(
        invertible_p,
        (W, A, B),
        lambda w, a, b, **_: (a + w * b, b, a * a),
        PARAMS,
        bad=(((W, A, B[:2]), PARAMS, TypeError), ((W, A, B), {**PARAMS, "inverse": SUM}, TypeError)),
    ),
    Sample(
        linear_scan_p,
        (W, A, US, C, T, SS),
        _loop,
        LOOP,
        linear_in=(3, 4, 5),
        bad=(
            ((W, A, US[:1], C, T, SS), LOOP, TypeError),
            ((W, A, US, C, T[:2], SS), LOOP, TypeError),
        ),
    ),
]
