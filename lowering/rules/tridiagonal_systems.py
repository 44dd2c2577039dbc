"""Lowering of tridiagonal systems to LAPACK's Gaussian elimination, or jaxlib's, which moves pivots away from 0."""

from typing import Any

import numpy as np

from tapeless.lowering import emit, lapack
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.primitives.tridiagonal_systems import tridiagonal_solve_p
from tapeless.tracer.types import ShapedArray


def _tridiagonal_solve(
    f: Function, outs: Any, dl: Value, d: Value, du: Value, b: Value, *, perturb_singular: bool
) -> Any:
    if not b.aval.size:
        return (b,)
    operands = [dl, d, du, b]
    if perturb_singular:
        return lapack.custom_call(f, "tridiagonal_solve_perturbed_ffi", operands, outs, ())
    info = ShapedArray(b.aval.shape[:-2], np.dtype(np.int32))
    results = [*(x.aval for x in operands), info]
    *_, x, status = lapack.call_plainly(f, "gtsv", operands, results, [(k, k) for k in range(4)])
    return (lapack.nan_unless(f, f.compare(status, f.constant(0, info), "EQ"), x),)


emit.rules[tridiagonal_solve_p] = _tridiagonal_solve
