"""How sorting runs: StableHLO's sort with our order in its region."""

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
    """The real numbers by which two elements are compared."""
    if dtypes.is_complex(a.aval.dtype):
        return list(zip(parts(f, a), parts(f, b)))
    return [(a, b)]


def _before(f: Function, keys: list[tuple[Value, Value]]) -> Value:
    """Whether the left ones come before the right ones, lexicographically: a < b, or a number before a nan."""
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
    return f.ops("chlo.top_k", [x], outs, f"k = {k} : i64")


emit.rules[s.sort_p] = _sort
emit.rules[s.top_k_p] = _top_k
