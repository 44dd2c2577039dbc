"""How calls run: a call of the program's function."""

from typing import Any

from tapeless.lowering import dispatch, emit
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call as c


def _call(f: Function, outs: Any, *operands: Value, jaxpr: Jaxpr, **_: Any) -> Any:
    return f.call(f, jaxpr, operands)


emit.rules[c.jit_p] = _call
emit.rules[c.custom_jvp_p] = _call
dispatch.inline[c.jit_p] = lambda *args, jaxpr: dispatch.run(jaxpr, args)
dispatch.inline[c.custom_jvp_p] = c.call_custom
