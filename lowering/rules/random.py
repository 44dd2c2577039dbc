"""Lowering of random bits: plain integer operations, hence the same bits on every device; of XLA's generators; of keys.

Keys are lowered to their words.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.lowering import dispatch, emit, physical
from tapeless.lowering.array import DeviceArray
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.key_array import KeyArray
from tapeless.tracer.primitives.random import (
    RandomAlgorithm,
    random_unwrap_p,
    random_wrap_p,
    rng_bit_generator_p,
    threefry2x32_p,
)
from tapeless.tracer.types import ShapedArray, aval_of

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA  # of the key schedule; Salmon et al. 2011, section 3.2


def _threefry2x32(f: Function, outs: Any, *words: Value) -> Any:
    """Emit Threefry; if a module has several of these types, calls of one function."""
    program = emit.alone(threefry2x32_p, tuple([word.aval for word in words]))
    called = program in f.inlined and program is not f.program
    return f.call(f, program, words) if called else _rounds(f, outs, words)


def _rounds(f: Function, outs: Any, words: Sequence[Value]) -> tuple[Value, Value]:
    """Emit twenty rounds, with words of the key schedule added before the first and after every fourth."""
    key0, key1, x0, x1 = (f.broadcast(word, outs[0].shape) for word in (*_kept(f, words[:2]), *words[2:]))
    schedule = (key0, key1, _xor(f, _xor(f, key0, key1), f.constant(_PARITY, outs[0])))
    x0, x1 = _add(f, x0, key0), _add(f, x1, key1)
    for i in range(1, 6):
        for bits in _ROTATIONS[(i - 1) % 2]:
            x0 = _add(f, x0, x1)
            x1 = _xor(f, _rotated(f, x1, bits), x0)
        x0 = _add(f, x0, schedule[i % 3])
        x1 = _add(f, x1, _add(f, schedule[(i + 1) % 3], f.constant(i, outs[0])))
    return x0, x1


def _kept(f: Function, key: Sequence[Value]) -> Sequence[Value]:
    """Keep the words of a single key by a barrier; XLA would recompute them, by as many rounds, for every element."""
    return key if any(word.aval.shape for word in key) else f.ops("optimization_barrier", key, [x.aval for x in key])


def _add(f: Function, x: Value, y: Value) -> Value:
    return f.op("add", [x, y], x.aval)


def _xor(f: Function, x: Value, y: Value) -> Value:
    return f.op("xor", [x, y], x.aval)


def _rotated(f: Function, x: Value, bits: int) -> Value:
    """Rotate x to the left."""
    left = f.op("shift_left", [x, f.constant(bits, x.aval)], x.aval)
    right = f.op("shift_right_logical", [x, f.constant(32 - bits, x.aval)], x.aval)
    return f.op("or", [left, right], x.aval)


emit.rules[threefry2x32_p] = _threefry2x32
emit.long.add(threefry2x32_p)


def _rng_bit_generator(
    f: Function, outs: Any, state: Value, *, shape: Any, dtype: Any, algorithm: RandomAlgorithm
) -> Any:
    """Emit StableHLO's generator, whose state is two words of 64 bits; a state of 32-bit words is bitcast."""
    words = ShapedArray((2,), np.dtype("uint64"))
    halves = ShapedArray((2, 2), np.dtype("uint32"))
    narrow = state.aval.dtype != words.dtype
    if narrow:
        state = f.op("bitcast_convert", [f.op("reshape", [state], halves)], words)
    name = algorithm.name.removeprefix("RNG_")
    after, bits = f.ops(
        "rng_bit_generator", [state], [words, outs[1]], f"rng_algorithm = #stablehlo<rng_algorithm {name}>"
    )
    if narrow:
        after = f.op("reshape", [f.op("bitcast_convert", [after], halves)], outs[0])
    return after, bits


emit.rules[rng_bit_generator_p] = _rng_bit_generator

# No operations: keys are their words.
for _primitive in (random_wrap_p, random_unwrap_p):
    emit.rules[_primitive] = lambda f, outs, x, **_: [x]
    physical.rules[_primitive] = lambda w, x, **_: [x]


def _wrap(words: Any, **params: Any) -> tuple[KeyArray]:
    """Return the keys, in the memory of their words."""
    (keys,) = random_wrap_p.type((aval_of(words),), params)
    return (KeyArray(dispatch.buffer_on(words, dispatch.device_of((words,))), keys.dtype),)


def _unwrap(keys: Any, **params: Any) -> tuple[DeviceArray]:
    """Return the words of keys, in the same memory."""
    random_unwrap_p.type((aval_of(keys),), params)
    return (keys.words,)


dispatch.inline[random_wrap_p] = _wrap
dispatch.inline[random_unwrap_p] = _unwrap
