"""Rows of functions with a vmap rule. Their params hold programs, which are traced when this is imported."""

import numpy as np

from tapeless.interpreters.vmap import move_mapped_axis_first
from tapeless.tracer.primitives.custom import custom_vmap_p
from tapeless.tracer.primitives.elementwise import mul, sin
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray
from tests.samples.sample import Sample, f32


class _Rule:
    """What the program does, for many."""

    __name__ = "product"

    def __call__(self, size, args, mapped):
        x, y = (move_mapped_axis_first(arg, 0 if yes else None, size) for arg, yes in zip(args, mapped))
        return [mul(sin(x), y)], [True]


_vector = ShapedArray((3,), np.dtype("float64"))  # in which the derivatives are checked
_program, _ = trace_to_jaxpr(lambda x, y: [mul(sin(x), y)], [_vector, _vector])
_PARAMS = {"rule": _Rule(), "jaxpr": _program, "n_consts": 0}

ROWS = [
    Sample(
        custom_vmap_p,
        (f32(3).astype(np.float64), f32(3, seed=1).astype(np.float64)),
        lambda x, y, **_: np.sin(x) * y,
        _PARAMS,
        bad=(((f32(4), f32(4)), _PARAMS, TypeError),),
    ),
]
