"""Rows of calls. Their params hold programs, which are traced when this is imported."""

import numpy as np

from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.elementwise import mul, sin
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray
from tests.samples.sample import Sample, f32


def _product(x, y):
    return [mul(sin(x), y)]


_vector = ShapedArray((3,), np.dtype("float64"))  # in which the derivatives are checked
_program, _ = trace_to_jaxpr(_product, [_vector, _vector])
_X, _Y = f32(3).astype(np.float64), f32(3, seed=1).astype(np.float64)

ROWS = [
    Sample(
        jit_p,
        (_X, _Y),
        lambda x, y, jaxpr: np.sin(x) * y,
        {"jaxpr": _program},
        bad=(((f32(4), f32(4)), {"jaxpr": _program}, TypeError),),
    ),
]
