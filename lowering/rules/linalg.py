"""How triangular factors and systems run: StableHLO has both."""

from typing import Any

from tapeless.lowering import emit
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.primitives import linalg as a


def _cholesky(f: Function, outs: Any, x: Value) -> Any:
    return (f.op("cholesky", [x], outs[0], "lower = true"),)


def _triangular_solve(f: Function, outs: Any, matrix: Value, b: Value, **flags: bool) -> Any:
    turned = flags.pop("transpose_a")
    attributes = [f"{name} = {str(flag).lower()}" for name, flag in flags.items()]
    attributes.append(f"transpose_a = #stablehlo<transpose {'TRANSPOSE' if turned else 'NO_TRANSPOSE'}>")
    return (f.op("triangular_solve", [matrix, b], outs[0], ", ".join(attributes)),)


emit.rules[a.cholesky_p] = _cholesky
emit.rules[a.triangular_solve_p] = _triangular_solve
