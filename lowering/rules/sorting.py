"""Lowering of sort to StableHLO's sort, with NumPy's order in its region (nan last), and of top_k to chlo's."""

from typing import Any

import numpy as np

from tapeless.lowering import emit
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.rules.reduction import parts
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import sorting as s
from tapeless.tracer.types import ShapedArray

_TRUTH = ShapedArray((), np.dtype(bool))


def _sort(f: Function, outs: Any, *operands: Value, dimension: int, is_stable: bool, num_keys: int) -> Any:
    pairs = [x.aval.update(shape=()) for x in operands for _ in range(2)]

    def order(*values: Value) -> list[Value]:
        keys = [pair for k in range(num_keys) for pair in _keys(f, values[2 * k], values[2 * k + 1])]
        return [_before(f, keys)]

    region = f.block(pairs, order)
    attributes = f"dimension = {dimension} : i64, is_stable = {str(is_stable).lower()}"
    return f.ops("sort", operands, outs, attributes, region) if operands[0].aval.size else operands


def _keys(f: Function, a: Value, b: Value) -> list[tuple[Value, Value]]:
    """List the pairs of real numbers by which two elements are compared: the parts of complex ones."""
    if dtypes.is_complex(a.aval.dtype):
        return list(zip(parts(f, a), parts(f, b)))
    return [(a, b)]


def _before(f: Function, keys: list[tuple[Value, Value]]) -> Value:
    """Emit whether the left keys come before the right ones, lexicographically: a < b, or a number before a nan."""
    (a, b), rest = keys[0], keys[1:]
    less = f.compare(a, b, "LT")
    same = f.compare(a, b, "EQ") if rest else None
    if dtypes.is_float(a.aval.dtype):
        left, right = f.compare(a, a, "NE"), f.compare(b, b, "NE")
        less = _or(f, less, _and(f, f.op("not", [left], _TRUTH), right))
        same = _or(f, same, _and(f, left, right)) if same else None
    return _or(f, less, _and(f, same, _before(f, rest))) if same else less


def _and(f: Function, a: Value, b: Value) -> Value:
    return f.op("and", [a, b], _TRUTH)


def _or(f: Function, a: Value, b: Value) -> Value:
    return f.op("or", [a, b], _TRUTH)


def _top_k(f: Function, outs: Any, x: Value, *, k: int) -> Any:
    """Emit chlo's top_k, which orders floats by their bits: a nan whose sign is set (0/0 on x86) would come last."""
    values, positions = outs
    if dtypes.is_float(x.aval.dtype):
        if dtypes.bits_of(x.aval.dtype) < 16:  # the only nan of some such dtypes has its sign set
            x = f.convert(x, np.dtype(np.float32))
        x = f.op("select", [f.compare(x, x, "NE"), f.constant(np.nan, x.aval), x], x.aval)
    elif dtypes.bits_of(x.aval.dtype) < 8:  # XLA gives the positions the elements' width
        x = f.convert(x, np.dtype(np.int8))
    found, places = f.ops("chlo.top_k", [x], [values.update(dtype=x.aval.dtype), positions], f"k = {k} : i64")
    return f.convert(found, values.dtype), places


emit.rules[s.sort_p] = _sort
emit.rules[s.top_k_p] = _top_k
