"""Lowering of Hessenberg, tridiagonal and Schur forms: LAPACK's routines."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.lowering import emit, lapack
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import condensed_forms as a
from tapeless.tracer.types import ShapedArray


def _hessenberg(f: Function, outs: Any, x: Value) -> Any:
    return _reflected(f, "gehrd", outs, x, low=1, high=x.aval.shape[-1])


def _tridiagonal(f: Function, outs: Any, x: Value, *, lower: bool) -> Any:
    part: dict[str, lapack.Option] = {"lower": lower} if f.platform == "gpu" else {"uplo": "L" if lower else "U"}
    return _reflected(f, lapack.variant(f, x.aval, "sytrd", "hetrd"), outs, x, **part)


def _reflected(
    f: Function, routine: str, outs: Sequence[ShapedArray], x: Value, **options: lapack.Option
) -> list[Value]:
    """Emit a call of a routine by reflections: it ends for any elements, and does not read all, so none is checked."""
    if not x.aval.size:
        return [f.constant(0, y) for y in outs]
    info = ShapedArray(x.aval.shape[:-2], np.dtype(np.int32))
    *found, status = lapack.call_plainly(f, routine, [x], [*outs, info], ((0, 0),), **options)
    done = f.compare(status, f.constant(0, info), "EQ")
    return [lapack.nan_unless(f, done, y) for y in found]


def _schur(f: Function, outs: Any, x: Value, *, compute_schur_vectors: bool) -> Any:
    if not x.aval.size:
        return [f.constant(0, y) for y in outs]
    eigenvalues = x.aval.update(shape=x.aval.shape[:-1])
    parts = [eigenvalues] * (1 if dtypes.is_complex(x.aval.dtype) else 2)
    chosen = ShapedArray(x.aval.shape[:-2], np.dtype(np.int32))
    mode = "V" if compute_schur_vectors else "N"
    return lapack.call(f, "gees", x, [x.aval, x.aval, *parts, chosen], mode=mode, sort="N")[: len(outs)]


emit.rules[a.hessenberg_p] = _hessenberg
emit.rules[a.tridiagonal_p] = _tridiagonal
emit.rules[a.schur_p] = _schur
