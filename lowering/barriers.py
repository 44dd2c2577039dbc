"""Optimization barriers, of values that XLA cannot mistake for their operands.

XLA (CPU, jaxlib 0.10.2 to 0.12.0) gives the result of a barrier the buffer of its operand, and lets a kernel that reads
both write its own result into that buffer: at the same place as it reads the one, wherever it reads the other. So a
value that is computed where the barrier stands passes it as its bits, which have a buffer of their own where the value
is read later, and none where it is not. What comes from outside of a loop is there after each step, and nothing is
written into it; so are the arguments of a program that are not donated. (A value that a loop carries and that its step
reads beside a barrier of it is passed on as it is: a copy in each step would cost as much as all steps.)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.lowering.hlo import Function, Value
from tapeless.tracer import dtypes
from tapeless.tracer.types import ShapedArray


def barrier(f: Function, operands: Sequence[Value], outs: Sequence[ShapedArray]) -> list[Value]:
    """Write a barrier: its results are new to XLA, and none is computed before all operands are."""
    words = [_words(f, x) for x in operands]
    flat = [word for each in words for word in each]
    behind = iter(f.ops("optimization_barrier", flat, [word.aval for word in flat]))
    return [_value(f, [next(behind) for _ in each], out) for each, out in zip(words, outs, strict=True)]


def _words(f: Function, x: Value) -> list[Value]:
    """A value as what passes the barrier."""
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
    """The value that passed the barrier."""
    if len(words) == 2:
        return f.op("complex", words, out)
    (word,) = words
    if word.aval.dtype == out.dtype:
        return Value(word.name, out)
    return f.convert(word, out.dtype) if dtypes.is_bool(out.dtype) else f.op("bitcast_convert", [word], out)


def _bits(dtype: Any) -> Any:
    """Another dtype of as many bits; None for less than a byte, and for what is nothing."""
    if dtype == dtypes.float0 or (dtypes.is_integer(dtype) and dtypes.iinfo(dtype).bits < 8):
        return None
    if dtypes.is_float(dtype) and dtypes.finfo(dtype).bits < 8:
        return None
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    return np.dtype(f"int{8 * dtype.itemsize}") if dtype == unsigned else unsigned
