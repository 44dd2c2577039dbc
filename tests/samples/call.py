"""Rows of calls. Their params hold programs, which are traced when this is imported."""

import numpy as np

from tapeless.tracer.primitives.call import custom_jvp_p, jit_p
from tapeless.tracer.primitives.elementwise import cos, mul, sin
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray
from tests.samples.sample import Sample, f32


def _product(x, y):
    return [mul(sin(x), y)]


class _Sine:
    """sin, with its derivative given."""

    __name__ = "sine"

    @staticmethod
    def function(x):
        return [sin(x)]

    @staticmethod
    def rule(primals, tangents):
        return [sin(primals[0])], [mul(tangents[0], cos(primals[0]))]


_vector = ShapedArray((3,), np.dtype("float64"))  # in which the derivatives are checked
_program, _ = trace_to_jaxpr(_product, [_vector, _vector])
_sine, _ = trace_to_jaxpr(_Sine.function, [_vector])
_X, _Y = f32(3).astype(np.float64), f32(3, seed=1).astype(np.float64)

ROWS = [
    Sample(
        jit_p,
        (_X, _Y),
        lambda x, y, jaxpr: np.sin(x) * y,
        {"jaxpr": _program},
        bad=(((f32(4), f32(4)), {"jaxpr": _program}, TypeError),),
    ),
    Sample(custom_jvp_p, (_X,), lambda x, **_: np.sin(x), {"custom": _Sine, "jaxpr": _sine, "n_consts": 0}),
]
