"""Lowering of checkpoint: a call of the program's function; names emit nothing, moves and the barrier are XLA's."""

from typing import Any

from tapeless.lowering import dispatch, emit, hlo, physical
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.user_primitives import is_uncompilable
from tapeless.lowering.xla_workarounds.barriers import barrier
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import checkpoint as c
from tapeless.tracer.rule_arguments import as_argument, as_arguments


def _barrier(f: Function, outs: Any, *operands: Value) -> Any:
    return barrier(f, operands, outs)


def _move(f: Function, outs: Any, x: Value, *, src: str, dst: str) -> Any:
    """An annotation, of which XLA's host offloader makes a copy; on CPU nothing, where one memory has all the names."""
    if f.platform == "cpu":
        return [x]
    (result,), type_ = f.fresh(), hlo.tensor(x.aval)
    attributes = (
        'call_target_name = "annotate_device_placement", has_side_effect = true, '
        f'mhlo.frontend_attributes = {{_xla_buffer_placement = "{dst}"}}'
    )
    f.write(f'{result} = "stablehlo.custom_call"({x.name}) {{{attributes}}} : ({type_}) -> {type_}')
    return [Value(result, outs[0])]


def _evaluated(*args: Any, jaxpr: Jaxpr, **_: Any) -> tuple[Any, ...]:
    """Run the program compiled; equation by equation if only Python functions compute some of it."""
    return eval_jaxpr(jaxpr, args) if is_uncompilable(jaxpr) else call.jit(jaxpr, *args)


emit.rules[c.checkpoint_p] = emit.call
emit.rules[c.name_p] = lambda f, outs, x, *, name: [x]
emit.rules[c.move_p] = _move
emit.rules[c.dce_sink_p] = lambda f, outs, x: []
emit.rules[c.materialize_p] = emit.rules[c.optimization_barrier_p] = _barrier
dispatch.inline[c.checkpoint_p] = _evaluated
dispatch.inline[c.name_p] = lambda x, *, name: (as_argument(x),)
dispatch.inline[c.move_p] = lambda x, *, src, dst: (as_argument(x),)  # eager values are in the device's own memory
dispatch.inline[c.materialize_p] = lambda x: (x,)
dispatch.inline[c.dce_sink_p] = lambda x: ()
# Whatever runs one by one is neither merged nor moved.
dispatch.inline[c.optimization_barrier_p] = lambda *args: tuple(as_arguments(args))
for _primitive in (c.name_p, c.move_p, c.materialize_p, c.dce_sink_p, c.optimization_barrier_p):
    physical.moves(_primitive)
