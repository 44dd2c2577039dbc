"""Lowering of bitwise operations: each is one StableHLO operation."""

from typing import Any

from tapeless.lowering import emit
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.rules.elementwise import operation
from tapeless.tracer.primitives import bits as b

_OPERATIONS = {
    b.not_p: "not",
    b.and_p: "and",
    b.or_p: "or",
    b.xor_p: "xor",
    b.shift_left_p: "shift_left",
    b.shift_right_logical_p: "shift_right_logical",
    b.shift_right_arithmetic_p: "shift_right_arithmetic",
    b.population_count_p: "popcnt",
    b.clz_p: "count_leading_zeros",
}
for _primitive, _name in _OPERATIONS.items():
    emit.rules[_primitive] = operation(_name)


def _bitcast(f: Function, outs: Any, x: Value, *, dtype: Any) -> Any:
    return (x if x.aval.dtype == dtype else f.op("bitcast_convert", [x], outs[0]),)


def _reduce_precision(f: Function, outs: Any, x: Value, *, exponent_bits: int, mantissa_bits: int) -> Any:
    attributes = f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32"
    return (f.op("reduce_precision", [x], outs[0], attributes),)


emit.rules[b.bitcast_convert_type_p] = _bitcast
emit.rules[b.reduce_precision_p] = _reduce_precision
