"""Rows of functions with rules of their own. Their params hold programs, which are traced when this is imported."""

import numpy as np

from tapeless.interpreters.rules.custom import Pull
from tapeless.tracer.primitives.custom import custom_jvp_p, custom_linear_p, custom_vjp_p
from tapeless.tracer.primitives.elementwise import cos, mul, sin
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray
from tests.samples.sample import Sample, f32


class _Sine:
    """sin, with its derivative given."""

    __name__ = "sine"

    @staticmethod
    def function(x):
        return [sin(x)]

    @staticmethod
    def rule(primals, tangents):
        return [sin(primals[0])], [mul(tangents[0], cos(primals[0]))]


def _backward(x, ct):
    return [mul(ct, sin(x))]


_vector = ShapedArray((3,), np.dtype("float64"))  # in which the derivatives are checked
_sine, _ = trace_to_jaxpr(_Sine.function, [_vector])
_pull = Pull(trace_to_jaxpr(_backward, [_vector, _vector])[0], 1, "backward")
_X, _T = f32(3).astype(np.float64), f32(3, seed=1).astype(np.float64)
_CALL = {"custom": _Sine, "jaxpr": _sine, "n_consts": 0}
_LINEAR = {"pull": _pull, "n": 1}

ROWS = [
    *[Sample(p, (_X,), lambda x, **_: np.sin(x), _CALL) for p in (custom_jvp_p, custom_vjp_p)],
    Sample(
        custom_linear_p,
        (_X, _T),
        lambda x, t, **_: np.sin(x) * t,
        _LINEAR,
        bad=(((f32(4), f32(4)), _LINEAR, TypeError),),
    ),
]
