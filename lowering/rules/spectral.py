"""Lowering of eigh and svd to LAPACK's divide and conquer (for svd, or QR iteration), of eig to its QR iteration.

On GPUs cuSOLVER chooses the method of eigh; svd is by Jacobi's method or, of large matrices, by QR iteration; eig is
LAPACK's, on the host.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.lowering import emit, lapack
from tapeless.lowering.emit import write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer import dtypes
from tapeless.tracer.numpy.shaping import matrix_transpose
from tapeless.tracer.primitives import spectral as a
from tapeless.tracer.primitives.linalg import adjoint
from tapeless.tracer.primitives.shape import slice_in_dim
from tapeless.tracer.types import ShapedArray

_LARGEST_BY_JACOBI = 1024  # rows or columns, as in JAX
_LARGEST_IN_BATCHES = 32  # rows or columns of what cuSOLVER factors in batches, and then in full only


def _eigh(f: Function, outs: Any, x: Value, *, lower: bool, compute_v: bool) -> Any:
    if not x.aval.size:
        return [lapack.identity(f, y) for y in outs]
    routine = lapack.variant(f, x.aval, "syevd", "heevd")
    options: dict[str, lapack.Option] = {"uplo": "L" if lower else "U", "mode": "V" if compute_v else "N"}
    if f.platform == "gpu":
        options = {"algorithm": chr(0), "lower": lower}
    return lapack.call(f, routine, x, [x.aval, outs[-1]], ((0, 0),), **options)[-len(outs) :]


def _eig(f: Function, outs: Any, x: Value, *, left: bool, right: bool, vector_derivatives: bool) -> Any:
    if not x.aval.size:
        return [f.constant(0, y) for y in outs]
    values = outs[0].update(dtype=x.aval.dtype)
    parts = [values] if dtypes.is_complex(x.aval.dtype) else [values, values]
    vectors = outs[0].update(shape=x.aval.shape)
    options: dict[str, lapack.Option] = {
        "compute_left": "V" if left else "N",
        "compute_right": "V" if right else "N",
    }
    if f.platform == "gpu":
        options = {"left": left, "magma": "auto", "right": right}
    *w, vl, vr = lapack.call(f, "geev", x, [*parts, vectors, vectors], in_place=(), **options)
    return [w[0] if len(w) == 1 else f.op("complex", w, outs[0]), *[vl] * left, *[vr] * right]


def _svd(f: Function, outs: Any, x: Value, *, full_matrices: bool, compute_uv: bool, routine: str) -> Any:
    if not x.aval.size:
        return [lapack.identity(f, y) for y in outs]
    u, s, vh = a.svd_p.type((x.aval,), {"full_matrices": full_matrices, "compute_uv": True, "routine": routine})
    if f.platform != "gpu":
        mode = "N" if not compute_uv else "A" if full_matrices else "S"
        found = lapack.call(f, routine, x, [x.aval, s, u, vh], mode=mode)
    elif routine == "gesdd" and max(x.aval.shape[-2:]) <= _LARGEST_BY_JACOBI:
        found = _by_jacobi(f, x, (u, s, vh), full_matrices, compute_uv)
    else:
        found = _by_iteration(f, x, (u, s, vh), full_matrices, compute_uv)
    return (found[2], found[1], found[3]) if compute_uv else found[1:2]


def _by_jacobi(
    f: Function, x: Value, outs: Sequence[ShapedArray], full_matrices: bool, compute_uv: bool
) -> list[Value]:
    """Emit cuSOLVER's SVD by Jacobi's method, which finds V in the place of V^H, and of small matrices all columns."""
    *batch, m, n = x.aval.shape
    u, s, vh = outs
    thin = not full_matrices and min(m, n) > _LARGEST_IN_BATCHES
    columns = (min(m, n),) * 2 if thin else (m, n)
    vectors = [x.aval.update(shape=(*batch, size, k)) for size, k in zip((m, n), columns)]
    rest, values, left, right = lapack.call(
        f, "gesvdj", x, [x.aval, s, *vectors], compute_uv=compute_uv, full_matrices=not thin
    )
    (left,) = write_out(f, lambda y: slice_in_dim(y, 0, u.shape[-1], axis=-1), [left])
    (right,) = write_out(f, lambda y: adjoint(slice_in_dim(y, 0, vh.shape[-2], axis=-1)), [right])
    return [rest, values, left, right]


def _by_iteration(
    f: Function, x: Value, outs: Sequence[ShapedArray], full_matrices: bool, compute_uv: bool
) -> list[Value]:
    """Emit cuSOLVER's SVD by QR iteration, which is of tall matrices: of a wide one, that of its transpose."""
    u, s, vh = outs
    wide = x.aval.shape[-2] < x.aval.shape[-1]
    if wide:
        x, u, vh = write_out(f, matrix_transpose, [x])[0], _swapped(vh), _swapped(u)
    vectors = [u, vh] if compute_uv else [u.update(shape=())] * 2
    rest, values, left, right = lapack.call(
        f, "gesvd", x, [x.aval, s, *vectors], compute_uv=compute_uv, full_matrices=full_matrices, transposed=False
    )
    if wide and compute_uv:
        left, right = (write_out(f, matrix_transpose, [y])[0] for y in (right, left))
    return [rest, values, left, right]


def _swapped(aval: ShapedArray) -> ShapedArray:
    *batch, m, n = aval.shape
    return aval.update(shape=(*batch, n, m))


emit.rules[a.eig_p] = _eig
emit.rules[a.eigh_p] = _eigh
emit.rules[a.svd_p] = _svd

# ---- condensed forms -----------------------------------------------------------------------------------------
# By LAPACK's routines.


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
