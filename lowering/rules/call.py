"""How calls run: a call of the program's function."""

from typing import Any

from tapeless.lowering import emit
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call as c


def _jit(f: Function, outs: Any, *operands: Value, jaxpr: Jaxpr) -> Any:
    return f.call(f, jaxpr, operands)


emit.rules[c.jit_p] = _jit
