"""Lowering of eigh and svd to LAPACK's divide and conquer (for svd, or QR iteration), of eig to its QR iteration."""

from typing import Any

from tapeless.lowering import emit, lapack
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import spectral as a


def _eigh(f: Function, outs: Any, x: Value, *, lower: bool, compute_v: bool) -> Any:
    if not x.aval.size:
        return [lapack.identity(f, y) for y in outs]
    uplo, mode = "L" if lower else "U", "V" if compute_v else "N"
    routine = lapack.variant(x.aval, "syevd", "heevd")
    return lapack.call(f, routine, x, [x.aval, outs[-1]], uplo=uplo, mode=mode)[-len(outs) :]


def _eig(f: Function, outs: Any, x: Value, *, left: bool, right: bool, vector_derivatives: bool) -> Any:
    if not x.aval.size:
        return [f.constant(0, y) for y in outs]
    values = outs[0].update(dtype=x.aval.dtype)
    parts = [values] if dtypes.is_complex(x.aval.dtype) else [values, values]
    vectors = outs[0].update(shape=x.aval.shape)
    modes = {"compute_left": "V" if left else "N", "compute_right": "V" if right else "N"}
    *w, vl, vr = lapack.call(f, "geev", x, [*parts, vectors, vectors], in_place=(), **modes)
    return [w[0] if len(w) == 1 else f.op("complex", w, outs[0]), *[vl] * left, *[vr] * right]


def _svd(f: Function, outs: Any, x: Value, *, full_matrices: bool, compute_uv: bool, routine: str) -> Any:
    if not x.aval.size:
        return [lapack.identity(f, y) for y in outs]
    mode = "N" if not compute_uv else "A" if full_matrices else "S"
    u, s, vh = a.svd_p.type((x.aval,), {"full_matrices": full_matrices, "compute_uv": True, "routine": routine})
    _, *found = lapack.call(f, routine, x, [x.aval, s, u, vh], mode=mode)
    return (found[1], found[0], found[2]) if compute_uv else found[:1]


emit.rules[a.eig_p] = _eig
emit.rules[a.eigh_p] = _eigh
emit.rules[a.svd_p] = _svd
