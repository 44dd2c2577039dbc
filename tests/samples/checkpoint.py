"""Rows of checkpoints. Their params hold programs, which are traced when this is imported."""

import numpy as np

from tapeless.interpreters.residuals.rematerialization import save_all, save_none
from tapeless.tracer.primitives.checkpoint import (
    checkpoint_p,
    dce_sink_p,
    materialize_p,
    move_p,
    name_p,
    optimization_barrier_p,
)
from tapeless.tracer.primitives.elementwise import mul, sin
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray
from tests.samples.sample import Sample, f32, keys


def _product(x, y):
    return [mul(sin(x), sin(y))]


_vector = ShapedArray((3,), np.dtype("float64"))  # in which the derivatives are checked
_program, _ = trace_to_jaxpr(_product, [_vector, _vector])
_X, _Y = f32(3).astype(np.float64), f32(3, seed=1).astype(np.float64)


def _checkpoint(label, policy, prevent_cse):
    params = {"jaxpr": _program, "policy": policy, "prevent_cse": prevent_cse}
    return Sample(
        checkpoint_p,
        (_X, _Y),
        lambda x, y, **_: np.sin(x) * np.sin(y),
        params,
        bad=(((f32(4), f32(4)), params, TypeError),),
        label=label,
    )


ROWS = [
    _checkpoint("save_none", save_none, True),
    _checkpoint("save_all", save_all, True),
    _checkpoint("prevent_cse=False", save_none, False),
    Sample(
        name_p, (f32(3, 4),), lambda x, name: x, {"name": "hidden"}, linear_in=(0,), dtypes=("float16", "int32", "bool")
    ),
    Sample(
        move_p,
        (f32(3, 4),),
        lambda x, src, dst: x,
        {"src": "device", "dst": "pinned_host"},
        linear_in=(0,),
        dtypes=("float16", "int32", "bool"),
    ),
    Sample(materialize_p, (f32(3, 4),), lambda x: x, linear_in=(0,), dtypes=("float16", "int32", "bool")),
    Sample(optimization_barrier_p, (f32(3), f32(2, 4)), lambda x, y: (x, y), dtypes=("bfloat16", "int32", "bool")),
    Sample(dce_sink_p, (f32(3, 4),), lambda x: (), dtypes=("float16", "int32", "bool")),
    Sample(dce_sink_p, (keys(3),), lambda x: (), label="keys"),
    Sample(name_p, (keys(3),), lambda x, name: x, {"name": "hidden"}, label="keys"),
    Sample(move_p, (keys(3),), lambda x, src, dst: x, {"src": "device", "dst": "pinned_host"}, label="keys"),
    Sample(optimization_barrier_p, (keys(3), f32(2, 4)), lambda x, y: (x, y), label="keys"),
]
