"""How triangular factors and systems run: StableHLO has both.

Batches of systems are LAPACK's on the CPU, as XLA takes seconds to compile what it makes of them.
"""

from typing import Any

from tapeless.lowering import emit, lapack
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.primitives import linalg as a


def _cholesky(f: Function, outs: Any, x: Value) -> Any:
    return (f.op("cholesky", [x], outs[0], "lower = true"),)


def _triangular_solve(f: Function, outs: Any, matrix: Value, b: Value, **flags: bool) -> Any:
    if matrix.aval.ndim > 2 and outs[0].size and f.platform == "cpu":
        return _by_lapack(f, outs, matrix, b, **flags)
    turned = flags.pop("transpose_a")
    attributes = [f"{name} = {str(flag).lower()}" for name, flag in flags.items()]
    attributes.append(f"transpose_a = #stablehlo<transpose {'TRANSPOSE' if turned else 'NO_TRANSPOSE'}>")
    return (f.op("triangular_solve", [matrix, b], outs[0], ", ".join(attributes)),)


def _by_lapack(
    f: Function,
    outs: Any,
    matrix: Value,
    b: Value,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    unit_diagonal: bool,
) -> Any:
    letters = {
        "side": "L" if left_side else "R",
        "uplo": "L" if lower else "U",
        "trans_x": "T" if transpose_a else "N",
        "diag": "U" if unit_diagonal else "N",
    }
    return lapack.call_plainly(f, "trsm", [matrix, b], outs, 1, **letters)


emit.rules[a.cholesky_p] = _cholesky
emit.rules[a.triangular_solve_p] = _triangular_solve
