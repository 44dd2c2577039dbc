"""Lowering of Cholesky factors and triangular systems: LAPACK, its counterpart for GPUs, or StableHLO's operations.

XLA's own Cholesky factorization takes 40 times as long as `potrf` on the CPU at n = 200, and 11 times on an H200. XLA
solves triangular systems on the CPU by inverting blocks of the diagonal, which is not backward stable: the residual of
a Vandermonde matrix of 20 rows is 1e-4 instead of 1e-16. LAPACK substitutes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.lowering import emit, lapack
from tapeless.lowering.emit import write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.array import Array
from tapeless.tracer.numpy.matrices import tril
from tapeless.tracer.primitives import linalg as a
from tapeless.tracer.primitives.shape import pad, slice_in_dim
from tapeless.tracer.types import ShapedArray, exact

_WITH_POTRF: dict[str, dict[str, lapack.Option]] = {"cpu": {"uplo": "L"}, "gpu": {"lower": True}}


def _cholesky(f: Function, outs: Any, x: Value) -> Any:
    if f.platform not in _WITH_POTRF or not x.aval.size:
        return (f.op("cholesky", [x], outs[0], "lower = true"),)
    info = ShapedArray(x.aval.shape[:-2], np.dtype(np.int32))
    found, status = lapack.call_plainly(f, "potrf", [x], [outs[0], info], ((0, 0),), **_WITH_POTRF[f.platform])
    done = f.compare(status, f.constant(0, info), "EQ")
    return write_out(f, tril, [lapack.nan_unless(f, done, found)])  # potrf leaves the upper triangle as it was


def _triangular_solve(f: Function, outs: Any, matrix: Value, b: Value, **flags: bool) -> Any:
    if outs[0].size and f.platform == "cpu":
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
    return lapack.call_plainly(f, "trsm", [matrix, b], outs, [(0, 1)], **letters)


emit.rules[a.cholesky_p] = _cholesky
emit.rules[a.triangular_solve_p] = _triangular_solve

# ---- tridiagonal systems -------------------------------------------------------------------------------------
# By LAPACK's Gaussian elimination, or jaxlib's, which moves pivots away from 0.


def _tridiagonal_solve(
    f: Function, outs: Any, dl: Value, d: Value, du: Value, b: Value, *, perturb_singular: bool
) -> Any:
    if not b.aval.size:
        return (b,)
    operands = [dl, d, du, b]
    if perturb_singular:
        target = "cu_tridiagonal_solve_perturbed" if f.platform == "gpu" else "tridiagonal_solve_perturbed_ffi"
        return lapack.custom_call(f, target, operands, outs, ())
    if f.platform == "gpu":
        return _by_cusparse(f, operands)
    info = ShapedArray(b.aval.shape[:-2], np.dtype(np.int32))
    results = [*(x.aval for x in operands), info]
    *_, x, status = lapack.call_plainly(f, "gtsv", operands, results, [(k, k) for k in range(4)])
    return (lapack.nan_unless(f, f.compare(status, f.constant(0, info), "EQ"), x),)


def _by_cusparse(f: Function, operands: Sequence[Value]) -> list[Value]:
    """Emit cuSPARSE's elimination with pivots, which does not say where it fails."""
    completed = write_out(f, _completed, operands)
    found = lapack.custom_call(f, "cusparse_gtsv2_ffi", completed, [completed[-1].aval], [(0, 3)])
    return write_out(f, lambda x: slice_in_dim(x, 0, operands[-1].aval.shape[-2], axis=-2), found)


def _completed(dl: Array, d: Array, du: Array, b: Array) -> tuple[Array, ...]:
    """Set the elements outside of the matrices to 0, and add equations x = 0 up to the three that cuSPARSE asks for."""
    n = d.shape[-1]
    more = max(3 - n, 0)
    return (
        _padded(slice_in_dim(dl, 1, n, axis=-1), 0, -1, 1, more),
        _padded(d, 1, -1, 0, more),
        _padded(slice_in_dim(du, 0, n - 1, axis=-1), 0, -1, 0, 1 + more),
        _padded(b, 0, -2, 0, more),
    )


def _padded(x: Array, value: int, axis: int, low: int, high: int) -> Array:
    padding = [(0, 0, 0)] * x.ndim
    padding[axis] = (low, high, 0)
    return pad(x, exact(value, x.dtype), padding)


emit.rules[a.tridiagonal_solve_p] = _tridiagonal_solve
