"""How checkpoints run: a call of the program's function; names are nothing, the barrier is XLA's."""

from typing import Any

from tapeless.lowering import dispatch, emit, ordering
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import checkpoint as c


def _checkpoint(f: Function, outs: Any, *operands: Value, jaxpr: Jaxpr, **_: Any) -> Any:
    return f.call(f, jaxpr, operands)


def _barrier(f: Function, outs: Any, *operands: Value) -> Any:
    return f.ops("optimization_barrier", operands, outs)


emit.rules[c.checkpoint_p] = _checkpoint
emit.rules[c.name_p] = lambda f, outs, x, *, name: [x]
emit.rules[c.optimization_barrier_p] = _barrier
dispatch.inline[c.checkpoint_p] = lambda *args, jaxpr, **_: call.jit(jaxpr, *args)
dispatch.inline[c.name_p] = lambda x, *, name: (x,)
dispatch.inline[c.optimization_barrier_p] = lambda *args: args  # whatever runs one by one is neither merged nor moved
ordering.rules[c.checkpoint_p] = ordering.call
