"""Rules of eigenvalue and singular value decompositions.

Where the formulas divide by a difference of values that is 0 (degenerate eigenvalues), the quotient is set to 0: of all
derivatives of the vectors that satisfy the equations, this is the smallest. Source: Giles 2008, "An extended collection
of matrix derivative results", sections 3.1 and 3.3; Townsend 2016, "Differentiating the singular value decomposition".
Knowingly left out: the phases of complex vectors are held as in JAX, and not as LAPACK happens to choose them.
"""

from typing import Any

import numpy as np

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.index_rows import core_of_matrices, rows
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.numpy.arithmetic import select
from tapeless.tracer.numpy.matrices import tril, triu
from tapeless.tracer.numpy.systems import solve
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import spectral as a
from tapeless.tracer.primitives.contraction import full_matmul
from tapeless.tracer.primitives.linalg import adjoint
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.reduction import argmax, reduce_max, reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, broadcasted_iota, expand_dims
from tapeless.tracer.types import aval_of

# ---- eigh: with X V = V W, and M = V^H dX V, the diagonal of M is dW, and V^H dV is M_ij / (w_j - w_i) off it


def _eigh_jvp(primals: Any, tangents: Any, *, lower: bool, compute_v: bool) -> Any:
    (x,), (t,) = primals, tangents
    v, w = a.eigh_p.bind(x, lower=lower, compute_v=True)
    moved = full_matmul(_read(t, lower), v)
    dw = _paired(v, moved)
    if not compute_v:
        return (w,), (dw,)
    _, gaps = _sums_and_gaps(w)
    return (v, w), (full_matmul(v, _scaled(full_matmul(adjoint(v), moved), _inverse(gaps, w))), dw)


def _read(t: Any, lower: bool) -> Any:
    """Return the Hermitian matrix one of whose triangles is that of t."""
    part = tril(t) if lower else triu(t)
    half = e.sub(part, e.mul(tril(triu(part)), constant(0.5, aval_of(part).update(shape=()))))
    return e.add(half, adjoint(half))


# ---- eig: with X V = V W, and M = V^-1 dX V, the diagonal of M is dW, and V^-1 dV is M_ij / (w_j - w_i) off it. Its
#      diagonal is free, and LAPACK's choice of v fixes it: Re(v^H dv) = 0, as its length is 1, and Im(dv_k) = 0 for the
#      largest element v_k, which is real. The left vectors are the right ones of X^H, to the conjugated eigenvalues.


def _eig_jvp(primals: Any, tangents: Any, *, left: bool, right: bool, vector_derivatives: bool) -> Any:
    (x,), (t,) = primals, tangents
    if (left or right) and not vector_derivatives:
        raise NotImplementedError(
            f"eig: eigenvectors of general matrices have a derivative only where eigenvalues differ: {aval_of(x)}.\n"
            "  Pass enable_eigvec_derivs=True to promise that they do, or ask for eigenvalues alone."
        )
    w, *vl, vr = a.eig_p.bind(x, left=left, right=True, vector_derivatives=True)
    t = t if dtypes.is_complex(aval_of(t).dtype) else e.convert_element_type(t, aval_of(vr).dtype)
    moved = solve(vr, full_matmul(t, vr))
    outs, dots = [w, *vl], [reduce_sum(tril(triu(moved)), (aval_of(moved).ndim - 2,))]
    if left:
        dots.append(_vector_tangent(vl[0], e.conj(w), solve(vl[0], full_matmul(adjoint(t), vl[0]))))
    if right:
        outs.append(vr)
        dots.append(_vector_tangent(vr, w, moved))
    return tuple(outs), tuple(dots)


def _vector_tangent(v: Any, w: Any, moved: Any) -> Any:
    """Compute dV, where `moved` is V^-1 dX V."""
    if not aval_of(v).size:
        return v
    _, gaps = _sums_and_gaps(w)
    u = full_matmul(v, e.mul(moved, _inverse(gaps, w)))
    axis = aval_of(v).ndim - 2
    size = select(e.eq(e.imag(v), 0.0), e.abs(v), -1.0)
    there = e.eq(broadcasted_iota(np.int32, size.shape, axis), expand_dims(argmax(size, axis, np.int32), (axis,)))
    turn = e.div(_picked(there, e.imag(u), axis), _picked(there, e.real(v), axis))
    free = e.complex(e.neg(_paired(v, u)), e.neg(turn))
    return e.add(u, e.mul(v, broadcast_in_dim(free, aval_of(v).shape, _all_but(axis + 2, -2))))


def _picked(there: Any, x: Any, axis: int) -> Any:
    return reduce_sum(select(there, x, 0.0), (axis,))


# ---- svd: with M = U^H dX V, the real diagonal of M is dS; off it, of A = U^H dU and B = V^H dV, both antihermitian,
#      (A + B)_ij = (M + M^H)_ij / (s_j - s_i),    (A - B)_ij = (M - M^H)_ij / (s_j + s_i),
# so that only the sum depends on gaps: the polar factor U V^H does not. On the diagonal, B is 0. The part of dX V
# that is outside the span of U turns U out of its span, and likewise for V.


def _svd_jvp(primals: Any, tangents: Any, *, full_matrices: bool, compute_uv: bool, routine: str) -> Any:
    (x,), (t,) = primals, tangents
    m, n = aval_of(x).shape[-2:]
    if full_matrices and m != n:
        raise NotImplementedError(
            f"svd: the vectors of full_matrices=True have no derivative unless the matrix is square: {aval_of(x)}.\n"
            "  Pass full_matrices=False."
        )
    u, s, vh = a.svd_p.bind(x, full_matrices=False, compute_uv=True, routine=routine)
    right = full_matmul(t, adjoint(vh))
    ds = _paired(u, right)
    if not compute_uv:
        return (s,), (select(_above_noise(s, s), ds, 0.0),)
    inner = full_matmul(adjoint(u), right)
    first, second = _rotations(inner, s)
    du, dv = full_matmul(u, first), full_matmul(adjoint(vh), second)
    if m > n:
        du = e.add(du, _out_of_span(right, u, inner, s))
    if m < n:
        dv = e.add(dv, _out_of_span(full_matmul(adjoint(t), u), adjoint(vh), adjoint(inner), s))
    return (u, s, vh), (du, ds, adjoint(dv))


def _rotations(inner: Any, s: Any) -> tuple[Any, Any]:
    """Compute U^H dU and V^H dV from `inner`, which is U^H dX V."""
    turned, (sums, gaps) = adjoint(inner), _sums_and_gaps(s)
    half = constant(0.5, aval_of(s).update(shape=()))
    both = _scaled(e.add(inner, turned), e.mul(_inverse(gaps, s), half))
    apart = _scaled(e.sub(inner, turned), e.mul(_inverse(sums, s), half))
    if dtypes.is_complex(aval_of(inner).dtype):
        both = e.add(both, tril(triu(apart)))
    return e.add(both, apart), e.sub(both, apart)


def _out_of_span(moved: Any, vectors: Any, inner: Any, s: Any) -> Any:
    rest = e.sub(moved, full_matmul(vectors, inner))
    shape = aval_of(rest).shape
    return _scaled(rest, broadcast_in_dim(_inverse(s, s), shape, _all_but(len(shape), -2)))


# ---- shared


def _paired(u: Any, moved: Any) -> Any:
    """Compute the real part of the diagonal of u^H @ moved."""
    if not dtypes.is_complex(aval_of(u).dtype):
        return reduce_sum(e.mul(u, moved), (aval_of(u).ndim - 2,))
    return reduce_sum(e.real(e.mul(e.conj(u), moved)), (aval_of(u).ndim - 2,))


def _scaled(x: Any, by: Any) -> Any:
    """Multiply x, real or complex, by real factors."""
    dtype = aval_of(x).dtype
    return e.mul(x, e.convert_element_type(by, dtype) if dtypes.is_complex(dtype) else by)


def _sums_and_gaps(values: Any) -> tuple[Any, Any]:
    """Compute values_j + values_i and values_j - values_i, in row i and column j."""
    n = aval_of(values).ndim
    shape = (*aval_of(values).shape, aval_of(values).shape[-1])
    columns = broadcast_in_dim(values, shape, _all_but(n + 1, -2))
    rows = broadcast_in_dim(values, shape, tuple(range(n)))
    return e.add(columns, rows), e.sub(columns, rows)


def _all_but(n: int, axis: int) -> tuple[int, ...]:
    return tuple(d for d in range(n) if d != n + axis)


def _inverse(x: Any, values: Any) -> Any:
    """Compute 1 / x, and 0 where x may be a rounding error of the values [.., n]: safe also to differentiate."""
    far = _above_noise(x, values)
    return select(far, e.div(1.0, select(far, x, 1.0)), 0.0)


def _above_noise(x: Any, values: Any) -> Any:
    """Flag the x above ten roundings of the largest of the values [.., n]: equal ones are rarely computed as equal."""
    eps = float(dtypes.finfo(aval_of(values).dtype).eps)
    axis = aval_of(values).ndim - 1
    if not aval_of(values).shape[axis]:
        return e.ne(x, x)
    noise = e.mul(reduce_max(e.abs(e.stop_gradient(values)), (axis,)), 10 * eps)
    return e.gt(e.abs(x), broadcast_in_dim(noise, aval_of(x).shape, tuple(range(axis))))


jvp.rules[a.eig_p] = _eig_jvp
jvp.rules[a.eigh_p] = _eigh_jvp
jvp.rules[a.svd_p] = _svd_jvp
vmap.front(a.eig_p)
vmap.front(a.eigh_p)
vmap.front(a.svd_p)

# ---- condensed forms -----------------------------------------------------------------------------------------
# The derivatives of Hessenberg, tridiagonal and Schur forms are knowingly left out, as in JAX.


def without_derivative(primitive: Primitive) -> Any:
    """Return a jvp rule that raises: the derivative of this reduction of a matrix is not implemented."""

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        raise NotImplementedError(
            f"{primitive} has no derivative: that of the transformation to the reduced form is not implemented.\n"
            "  Differentiate a function of the matrix that has a rule, or give one by custom_jvp."
        )

    return rule


for _primitive in (a.hessenberg_p, a.tridiagonal_p, a.schur_p):
    jvp.rules[_primitive] = without_derivative(_primitive)
    vmap.front(_primitive)

# ---- index rows ----------------------------------------------------------------------------------------------
# Functions of whole matrices, batched over the axes before.

for _primitive in (a.eig_p, a.eigh_p, a.svd_p):
    rows[_primitive] = core_of_matrices(_primitive)
for _primitive in (a.hessenberg_p, a.tridiagonal_p, a.schur_p):
    rows[_primitive] = core_of_matrices(_primitive)
