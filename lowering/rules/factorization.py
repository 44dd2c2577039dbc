"""Lowering of LU, QR, determinant, pseudoinverse, least squares and adjugate: LAPACK calls and compositions of them."""

from typing import Any

import numpy as np

from tapeless.lowering import emit, lapack
from tapeless.lowering.emit import compose_rule, while_loop, write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.numpy.arithmetic import select
from tapeless.tracer.numpy.matrices import eye, triu
from tapeless.tracer.numpy.triangles import determinant, diagonal_of, exchange, lu_solve
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import factorization as a
from tapeless.tracer.primitives.bits import bitwise_and
from tapeless.tracer.primitives.contraction import full_matmul
from tapeless.tracer.primitives.linalg import adjoint
from tapeless.tracer.primitives.reduction import reduce_and, reduce_max, reduce_prod
from tapeless.tracer.primitives.shape import (
    broadcast_in_dim,
    broadcasted_iota,
    expand_dims,
    full,
    pad,
    slice_in_dim,
    squeeze,
)
from tapeless.tracer.primitives.spectral import eigh, svd
from tapeless.tracer.types import ShapedArray, exact

# ---- lu


def _lu(f: Function, outs: Any, x: Value) -> Any:
    factors, pivots, permutation = outs
    if not x.aval.size:
        return x, f.constant(0, pivots), _permutation(f, f.constant(0, pivots), permutation)
    found, counted_from_one = lapack.call(f, "getrf", x, [factors, pivots])
    (exchanged,) = write_out(f, lambda p: e.sub(p, np.int32(1)), [counted_from_one])
    return found, exchanged, _permutation(f, exchanged, permutation)


def _permutation(f: Function, pivots: Value, aval: ShapedArray) -> Value:
    """Emit the row permutation of LAPACK's sequence of exchanges."""
    if f.platform == "gpu" and pivots.aval.size:
        return lapack.custom_call(f, "cu_lu_pivots_to_permutation", [pivots], [aval], (), rank_of_matrices=0)[0]

    def exchanged(i: Any, rows: Any, pivots: Any) -> Any:
        return e.add(i, 1), exchange(i, rows, pivots), pivots

    steps = pivots.aval.shape[-1]
    start = f.constant(0, ShapedArray((), np.dtype(np.int32)))
    (rows,) = write_out(f, lambda: broadcasted_iota(np.int32, aval.shape, aval.ndim - 1), [])
    if not steps or not aval.size:
        return rows
    return while_loop(f, lambda i, *_: e.lt(i, steps), exchanged, [start, rows, pivots])[1]


# ---- qr: Householder's reflections, of which the factor below the diagonal keeps the vectors


def _qr(f: Function, outs: Any, x: Value, *, full_matrices: bool, pivoting: bool) -> Any:
    q, r, *places = outs
    if not x.aval.size:
        columns = write_out(f, lambda: [broadcasted_iota(np.int32, y.shape, y.ndim - 1) for y in places], [])
        return lapack.identity(f, q), f.constant(0, r), *columns
    *batch, m, n = x.aval.shape
    k = min(m, n)
    scales = x.aval.update(shape=(*batch, k))
    if pivoting:
        free = f.constant(0, places[0])  # no column is fixed to the front
        outs = [x.aval, *places, scales]
        options = {"magma": "auto"} if f.platform == "gpu" else {}
        found, places, scales = lapack.call_plainly(f, "geqp3", [x, free], outs, ((0, 0), (1, 1)), **options)
        places = write_out(f, lambda p: e.sub(p, np.int32(1)), [places])
    else:
        found, scales = _geqrf(f, (x.aval, scales), x)
    (upper,) = write_out(f, lambda y: triu(slice_in_dim(y, 0, r.shape[-2], axis=-2)), [found])
    (vectors,) = write_out(f, lambda y: _columns(y, k, q.shape[-1]), [found])
    routine = lapack.variant(f, x.aval, "orgqr", "ungqr")
    return lapack.call_plainly(f, routine, [vectors, scales], [q], ((0, 0),))[0], upper, *places


def _geqrf(f: Function, outs: Any, x: Value) -> Any:
    if not x.aval.size:
        return x, f.constant(0, outs[1])
    return lapack.call_plainly(f, "geqrf", [x], list(outs), ((0, 0),))


def _columns(x: Any, k: int, n: int) -> Any:
    """Keep the first k columns, and append zeros up to n columns."""
    return pad(slice_in_dim(x, 0, k, axis=-1), exact(0, x.dtype), [(0, 0, 0)] * (x.ndim - 1) + [(0, n - k, 0)])


# ---- functions of these factorizations


def _det(x: Any) -> Any:
    factors, pivots, _ = a.lu(x)
    return determinant(factors, pivots)


def _adjugate(f: Function, outs: Any, x: Value) -> Any:
    """Emit the adjugate as det(A) A^-1 from LU factors, where errors of pivots cancel; if singular, from the SVD."""
    if not x.aval.size:
        return (x,)
    known = write_out(f, a.lu, [x])
    (regular,) = write_out(f, _is_regular, known[:1])
    by_factors = f.block([], lambda: write_out(f, _scaled_inverse, known))
    by_values = f.block([], lambda: write_out(f, _adjugate_by_values, [x]))
    return f.ops("if", [regular], outs, region=f"{by_factors}, {by_values}")


def _is_regular(factors: Any) -> Any:
    pivots = e.abs(diagonal_of(factors))
    return reduce_and(bitwise_and(e.gt(pivots, 0.0), e.is_finite(pivots)), range(pivots.ndim))


def _scaled_inverse(factors: Any, pivots: Any, permutation: Any) -> Any:
    inverse = lu_solve(factors, permutation, _identities(factors, factors.dtype))
    return e.mul(inverse, broadcast_in_dim(determinant(factors, pivots), inverse.shape, range(inverse.ndim - 2)))


def _adjugate_by_values(x: Any) -> Any:
    """Compute the adjugate of U S V^H as det(U V^H) V adj(S) U^H, where adj(S) has the products of the other values."""
    u, s, vh = svd(x, full_matrices=False)
    others = reduce_prod(select(_identities(x, bool), 1.0, _in_rows(s, x.shape)), (x.ndim - 1,))
    turned = a.det(full_matmul(u, vh))
    scales = e.mul(e.convert_element_type(others, x.dtype), broadcast_in_dim(turned, s.shape, range(s.ndim - 1)))
    return full_matmul(e.mul(adjoint(vh), _in_rows(scales, x.shape)), adjoint(u))


def _identities(like: Any, dtype: Any) -> Any:
    n = like.ndim
    return broadcast_in_dim(eye(like.shape[-1], dtype=dtype), like.shape, (n - 2, n - 1))


def _in_rows(values: Any, shape: tuple[int, ...]) -> Any:
    """Repeat values [.., n] in every row of matrices."""
    n = len(shape)
    return broadcast_in_dim(values, shape, (*range(n - 2), n - 1))


def _pinv(x: Any, rtol: Any, *, hermitian: bool) -> Any:
    if not x.size:
        return _no_elements(x, x.shape[-2])
    right, inverse, left = _inverted(x, rtol, hermitian)
    return full_matmul(e.mul(right, _in_rows(inverse, right.shape)), adjoint(left))


def _least_squares(x: Any, b: Any, rtol: Any) -> Any:
    if not x.size or not b.size:
        return _no_elements(x, b.shape[-1]), _no_elements(x, x.shape[-2])
    right, inverse, left = _inverted(x, rtol, hermitian=False)
    scaled = e.mul(right, _in_rows(inverse, right.shape))
    parts = full_matmul(adjoint(left), b)
    parts = e.mul(parts, broadcast_in_dim(inverse, parts.shape, range(inverse.ndim)))
    return full_matmul(right, parts), full_matmul(scaled, adjoint(left))


def _no_elements(x: Any, columns: int) -> Any:
    return full((*x.shape[:-2], x.shape[-1], columns), 0, x.dtype)


def _inverted(x: Any, rtol: Any, hermitian: bool) -> tuple[Any, Any, Any]:
    """Return V, the inverse singular values, 0 for those that count as 0, and U, of x = U S V^H."""
    if hermitian:
        left, values = eigh(x)
        right = left
    else:
        left, values, vh = svd(x, full_matrices=False)
        right = adjoint(vh)
    sizes = e.abs(values)
    last = (sizes.ndim - 1,)
    least = e.mul(expand_dims(reduce_max(sizes, last), last), squeeze(rtol, last))
    far = e.gt(sizes, broadcast_in_dim(least, sizes.shape, range(sizes.ndim)))
    inverse = select(far, e.div(1.0, select(far, values, 1.0)), select(e.eq(values, values), 0.0, values))
    return right, e.convert_element_type(inverse, x.dtype), left


emit.rules[a.lu_p] = _lu
emit.rules[a.qr_p] = _qr
emit.rules[a.geqrf_p] = _geqrf
emit.rules[a.det_p] = compose_rule(_det)
emit.rules[a.adjugate_p] = _adjugate
emit.rules[a.pinv_p] = compose_rule(_pinv)
emit.rules[a.least_squares_p] = compose_rule(_least_squares)
