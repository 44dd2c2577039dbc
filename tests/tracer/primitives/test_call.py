"""Typing of the primitives that call programs."""

import numpy as np
import pytest

from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.checkpoint import checkpoint_p
from tapeless.tracer.primitives.custom import custom_jvp_p, custom_vjp_p, custom_vmap_p
from tapeless.tracer.primitives.elementwise import sin
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray
from tests.messages import raises

VECTOR, SCALAR = ShapedArray((3,), np.dtype("float32")), ShapedArray((), np.dtype("float32"))
PARAMS = {
    jit_p: {},
    checkpoint_p: {"policy": None, "prevent_cse": True},
    custom_jvp_p: {"custom": None, "n_consts": 0},
    custom_vjp_p: {"custom": None, "n_consts": 0},
    custom_vmap_p: {"rule": None, "n_consts": 0},
}


@pytest.mark.parametrize("primitive", PARAMS, ids=str)
def test_calls_say_by_their_own_name_what_a_program_takes(primitive):
    def f(x):
        return [sin(x)]

    params = {"jaxpr": trace_to_jaxpr(f, [VECTOR])[0], **PARAMS[primitive]}
    assert primitive.type((VECTOR,), params) == (VECTOR,)
    with raises(TypeError, f"{primitive}: f takes (float32[3]), not (float32[], float32[3])."):
        primitive.type((SCALAR, VECTOR), params)
