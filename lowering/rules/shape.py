"""How operations that move elements run."""

from typing import Any

from tapeless.lowering import emit, hlo
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.primitives import shape as s


def _broadcast_in_dim(f: Function, outs: Any, x: Value, *, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    return (f.broadcast(x, shape, dims),)


def _reshape(f: Function, outs: Any, x: Value, *, shape: tuple[int, ...]) -> Any:
    return (f.op("reshape", [x], outs[0]),)


def _transpose(f: Function, outs: Any, x: Value, *, permutation: tuple[int, ...]) -> Any:
    return (f.op("transpose", [x], outs[0], f"permutation = {hlo.array(permutation)}"),)


def _iota(f: Function, outs: Any, *, dtype: Any, shape: tuple[int, ...], dimension: int) -> Any:
    return (f.op("iota", [], outs[0], f"iota_dimension = {dimension} : i64"),)


emit.rules[s.broadcast_in_dim_p] = _broadcast_in_dim
emit.rules[s.reshape_p] = _reshape
emit.rules[s.transpose_p] = _transpose
emit.rules[s.iota_p] = _iota
