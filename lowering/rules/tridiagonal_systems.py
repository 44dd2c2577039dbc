"""Lowering of tridiagonal systems to LAPACK's Gaussian elimination, or jaxlib's, which moves pivots away from 0."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.lowering import emit, lapack
from tapeless.lowering.composition import write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.array import Array
from tapeless.tracer.incoming import exact
from tapeless.tracer.primitives.shape import pad, slice_in_dim
from tapeless.tracer.primitives.tridiagonal_systems import tridiagonal_solve_p
from tapeless.tracer.types import ShapedArray


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


emit.rules[tridiagonal_solve_p] = _tridiagonal_solve
