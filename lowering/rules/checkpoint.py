"""Lowering of checkpoint: a call of the program's function; names emit nothing, moves and the barrier are XLA's."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.lowering import dispatch, emit, hlo, physical
from tapeless.lowering.emit import is_uncompilable
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import checkpoint as c
from tapeless.tracer.rule_arguments import as_argument, as_arguments
from tapeless.tracer.types import ShapedArray


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

# ---- barriers ------------------------------------------------------------------------------------------------
# Optimization barriers whose results XLA cannot mistake for their operands.
#
# XLA (CPU, jaxlib 0.10.2 to 0.12.0) gives the result of a barrier the buffer of its operand. A kernel that reads both
# may write its own result into that buffer, in place for one of them, while it reads other elements of the other. So
# a value that is computed in the barrier's own function and loop step passes the barrier as its bits (another dtype
# of the same width), which have a buffer of their own if the value is read later, and none if it is not. Values from
# outside the loop, and arguments that are not donated, live on, so nothing is written into them: they pass as they
# are. (So does a value that a loop carries and whose step reads it beside its barrier: a copy in each step would cost
# as much as all steps.)


def barrier(f: Function, operands: Sequence[Value], outs: Sequence[ShapedArray]) -> list[Value]:
    """Emit a barrier: XLA takes its results for new values, none of which is computed before all operands are."""
    words = [_words(f, x) for x in operands]
    flat = [word for each in words for word in each]
    behind = iter(f.ops("optimization_barrier", flat, [word.aval for word in flat]))
    return [_value(f, [next(behind) for _ in each], out) for each, out in zip(words, outs, strict=True)]


def _words(f: Function, x: Value) -> list[Value]:
    """Return the values that pass the barrier for x: its bits or its parts; x itself if it passes as it is."""
    dtype = x.aval.dtype
    if f.platform != "cpu" or not f.is_computed_here(x):
        return [x]
    if dtypes.is_complex(dtype):
        part = x.aval.update(dtype=dtypes.real_part_dtype(dtype))
        return [f.op("real", [x], part), f.op("imag", [x], part)]
    if dtypes.is_bool(dtype):
        return [f.convert(x, np.uint8)]
    bits = _bits(dtype)
    return [x] if bits is None else [f.op("bitcast_convert", [x], x.aval.update(dtype=bits, weak_type=False))]


def _value(f: Function, words: list[Value], out: ShapedArray) -> Value:
    """Rebuild a value from its `_words` behind the barrier."""
    if len(words) == 2:
        return f.op("complex", words, out)
    (word,) = words
    if word.aval.dtype == out.dtype:
        return Value(word.name, out)
    return f.convert(word, out.dtype) if dtypes.is_bool(out.dtype) else f.op("bitcast_convert", [word], out)


def _bits(dtype: Any) -> Any:
    """Return another dtype of as many bits; None for less than a byte, and for float0."""
    if dtype == dtypes.float0 or (dtypes.is_integer(dtype) and dtypes.iinfo(dtype).bits < 8):
        return None
    if dtypes.is_float(dtype) and dtypes.finfo(dtype).bits < 8:
        return None
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    return np.dtype(f"int{8 * dtype.itemsize}") if dtype == unsigned else unsigned
