"""Emit rules by decomposition: primitives without a StableHLO operation, as functions made of other primitives.

`composed(f)` is the emit rule of a primitive that `f` computes; `in_float32` and `in_float64` make a rule for narrower
formats from one for these; `while_loop` is a loop whose condition and body are functions of arrays.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.lowering import emit
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer import dtypes, source
from tapeless.tracer.staging import trace_to_jaxpr

Rule = Callable[..., Sequence[Value]]
ArrayFunction = Callable[..., Any]


def composed(function: ArrayFunction) -> Rule:
    """Return the rule that emits the primitives of `function(*arrays, **params) -> array or tuple`."""

    def rule(f: Function, outs: Any, /, *operands: Value, **params: Any) -> Sequence[Value]:
        return write_out(f, lambda *xs: function(*xs, **params), operands)

    return rule


def write_out(f: Function, function: ArrayFunction, operands: Sequence[Value]) -> list[Value]:
    """Emit `function(*operands)` into `f`, and return its results. It may close over numbers, not over arrays.

    It is a part of the operation that is being emitted, whose name and line are those in errors.
    """

    def flat(*xs: Any) -> tuple[Any, ...]:
        out = function(*xs)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    avals = [x.aval for x in operands]
    jaxpr, consts = source.at(f.source, trace_to_jaxpr, flat, avals, what="lowering", function=function)
    assert not consts, "a composition closes over no arrays"
    with f.composing():
        return emit.lower(f, jaxpr, operands)


def while_loop(f: Function, condition: ArrayFunction, body: ArrayFunction, state: Sequence[Value]) -> list[Value]:
    """Emit a loop that applies `body` to the state while `condition`, a scalar boolean, holds; return its results."""
    avals = [x.aval for x in state]
    test = f.block(avals, lambda *xs: write_out(f, condition, xs))
    step = f.block(avals, lambda *xs: write_out(f, body, xs))
    return f.ops("while", state, avals, region=f"{test}, {step}")


def in_float32(rule: Rule) -> Rule:
    """Make a rule that computes in float32 for narrower formats, and rounds results once.

    XLA would round every partial sum: of 4096 ones to 256 in bfloat16, as 257 is no such number; and every step of a
    function: in float16 the logistic function of -12 would be 0, because exp(12) is infinite.
    """
    return _widened(rule, np.dtype(np.float32))


def in_float64(rule: Rule) -> Rule:
    """Make a rule that computes in float64 for narrower formats."""
    return _widened(rule, np.dtype(np.float64))


def _widened(rule: Rule, wide: np.dtype[Any]) -> Rule:
    def widened(f: Function, outs: Any, /, *operands: Value, **params: Any) -> Sequence[Value]:
        dtype = outs[0].dtype
        if not dtypes.is_float(dtype) or dtypes.bits_of(dtype) >= dtypes.bits_of(wide):
            return rule(f, outs, *operands, **params)
        widest = [f.convert(x, wide) if x.aval.dtype == dtype else x for x in operands]
        values = rule(f, [x.update(dtype=wide) for x in outs], *widest, **params)
        return [f.convert(x, dtype) for x in values]

    return widened
