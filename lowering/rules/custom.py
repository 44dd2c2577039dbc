"""How functions with rules of their own run: their rules forgotten; a transposed one as the program derived from it."""

from typing import Any

from tapeless.lowering import dispatch, emit, ordering
from tapeless.lowering.composition import composed
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import custom as c


def _call(f: Function, outs: Any, *operands: Value, jaxpr: Jaxpr, **_: Any) -> Any:
    return f.call(f, jaxpr, operands)


for _kind in (c.custom_jvp_p, c.custom_vjp_p):
    emit.rules[_kind] = _call
    dispatch.inline[_kind] = c.call_custom
    ordering.rules[_kind] = ordering.call
emit.rules[c.custom_linear_p] = composed(c.push_forward)
dispatch.inline[c.custom_linear_p] = c.push_forward
