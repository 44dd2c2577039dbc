"""Rules of LU, QR, determinant, pseudoinverse, least squares and adjugate.

Source: de Hoog, Anderssen and Lukas 2011, "Differentiation of matrix functionals using triangular factorization";
Walter and Lehmann 2010, "Algorithmic differentiation of linear algebra functions with application in optimum
experimental design", for qr; Golub and Pereyra 1973, "The differentiation of pseudo-inverses and nonlinear least
squares problems whose variables separate".
"""

from functools import lru_cache
from typing import Any

import numpy as np

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.index_rows import core_of_matrices, rows
from tapeless.interpreters.rules.linalg import beside_each_other
from tapeless.interpreters.rules.spectral import without_derivative
from tapeless.interpreters.zero import Zero, zero_of
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.numpy.arithmetic import select
from tapeless.tracer.numpy.matrices import eye, tril, triu
from tapeless.tracer.numpy.triangles import determinant, lu_solve, permute_rows
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import factorization as a
from tapeless.tracer.primitives import spectral
from tapeless.tracer.primitives.contraction import full_matmul
from tapeless.tracer.primitives.control_flow import cond
from tapeless.tracer.primitives.linalg import adjoint, triangular_solve
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.reduction import reduce_and, reduce_max, reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, concatenate, pad, reshape, slice_in_dim
from tapeless.tracer.primitives.shape import transpose as transposed
from tapeless.tracer.primitives.sorting import take_along_axis
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of, exact

# ---- lu: with P A = L U, L^-1 P dA U^-1 is L^-1 dL below the diagonal and dU U^-1 above


def _lu_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    factors, pivots, permutation = a.lu_p.bind(x)
    *_, m, n = aval_of(x).shape
    k = min(m, n)
    lower = _padded(tril(slice_in_dim(factors, 0, k, axis=-1), -1), (0, m - k))
    upper = _padded(triu(slice_in_dim(factors, 0, k, axis=-2)), (n - k, 0))
    upper = e.add(upper, _spread(_rest_of_identity(n, k, upper.dtype), upper)) if n > k else upper
    left = triangular_solve(lower, permute_rows(t, permutation), left_side=True, lower=True, unit_diagonal=True)
    both = triangular_solve(upper, left)
    below = tril(both, -1)
    moved = e.add(e.add(full_matmul(lower, below), below), full_matmul(triu(both), upper))
    return (factors, pivots, permutation), (moved, zero_of(pivots), zero_of(permutation))


def _rest_of_identity(n: int, k: int, dtype: Any) -> Any:
    return pad(eye(n - k, dtype=dtype), exact(0, dtype), [(k, 0, 0), (k, 0, 0)])


def _padded(x: Any, more: tuple[int, int]) -> Any:
    """Append rows and columns of zeros to matrices, so many as `more` says."""
    if not any(more):
        return x
    return pad(x, exact(0, x.dtype), [(0, 0, 0)] * (x.ndim - 2) + [(0, n, 0) for n in more])


# ---- qr: with A = Q R, dA R^-1 = dQ + Q dR R^-1, of which Q^H dQ is antihermitian and dR R^-1 upper triangular, its
#      diagonal real


def _qr_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (x,), (t,) = primals, tangents
    q, r, *places = a.qr_p.bind(x, **params)
    for p in places:
        t = take_along_axis(t, _in_rows(p, t), -1)
    return (q, r, *places), (*_qr_tangents(q, r, t), *map(zero_of, places))


def _qr_tangents(q: Any, r: Any, t: Any) -> tuple[Any, Any]:
    *_, m, n = aval_of(t).shape
    if m >= n:
        thin = slice_in_dim(q, 0, n, axis=-1)
        dq, dr = _thin_qr_tangents(thin, slice_in_dim(r, 0, n, axis=-2), t)
        if aval_of(q).shape[-1] == n:
            return dq, dr
        return concatenate([dq, _tangent_of_completion(thin, dq)], aval_of(q).ndim - 1), _padded(dr, (m - n, 0))
    dq, dr = _thin_qr_tangents(q, slice_in_dim(r, 0, m, axis=-1), slice_in_dim(t, 0, m, axis=-1))
    rest = e.sub(slice_in_dim(t, m, n, axis=-1), full_matmul(dq, slice_in_dim(r, m, n, axis=-1)))
    return dq, concatenate([dr, full_matmul(adjoint(q), rest)], aval_of(r).ndim - 1)


def _tangent_of_completion(q: Any, dq: Any) -> Any:
    """Compute the tangent of the columns with which LAPACK completes the factor q [.., m, n].

    The complete factor is 1 - V T V^H, with the vectors of reflections in V, and q is its first n columns. Let Q, V1 be
    the first n rows of q and V, and P, V2 the others. Then Q - 1 = -V1 T V1^H and P = -V2 T V1^H, so that
    Z = V2 V1^-1 = P (Q - 1)^-1, and the other columns are those of the identity plus (q - 1) Z^H.
    Source: Bouwmeester, Langou and Monteiro 2024, "Derivatives of the full QR factorisation and of the compact WY
    representation".
    """
    m, n = aval_of(q).shape[-2:]
    reflected = e.sub(q, _spread(eye(m, n, dtype=aval_of(q).dtype), q))
    (first, others), (d_first, d_others) = [
        [slice_in_dim(y, i, j, axis=-2) for i, j in ((0, n), (n, m))] for y in (reflected, dq)
    ]
    factors, _, permutation = a.lu(first)

    def by_first(y: Any) -> Any:
        """Compute the adjoint of y (Q - 1)^-1."""
        return adjoint(_turned(lu_solve(factors, permutation, _turned(y), transposed=True)))

    z = by_first(others)
    dz = by_first(e.sub(d_others, full_matmul(adjoint(z), d_first)))
    return e.add(full_matmul(dq, z), full_matmul(reflected, dz))


def _thin_qr_tangents(q: Any, r: Any, t: Any) -> tuple[Any, Any]:
    scaled = triangular_solve(r, t)
    inner = full_matmul(adjoint(q), scaled)
    below = tril(inner, -1)
    turned = e.sub(below, adjoint(below))
    if dtypes.is_complex(aval_of(inner).dtype):
        own = tril(triu(inner))
        turned = e.add(turned, e.mul(e.sub(own, adjoint(own)), _half(inner)))
    dq = e.add(full_matmul(q, e.sub(turned, inner)), scaled)
    return dq, full_matmul(e.sub(inner, turned), r)


# ---- det


def _det_tangent(t: Any, x: Any) -> Any:
    return _trace_of_product(a.adjugate(x), t)


# ---- adjugate: with X = A^-1, its tangent is det(A) (tr(X dA) X - X dA X), a polynomial in A, and a polynomial equals
#      its mean over a circle. For nearly singular matrices the mean is taken over regular ones, A + z U V^H. Only that
#      formula is differentiated further, so that derivatives of every order are right everywhere.


def _adjugate_tangent(t: Any, x: Any) -> Any:
    aval = aval_of(x).strong()
    if not aval.size:
        return t
    regular = _is_regular(e.stop_gradient(x))
    everywhere = reduce_and(regular, range(regular.ndim))
    return cond(everywhere, (t, x, regular, _around_zero(aval)), _tangents_of_adjugate(aval))[0]


def _is_regular(x: Any) -> Any:
    """Tell for each matrix [..] whether the formula loses at most a third of the digits, its derivative two thirds."""
    factors, _, permutation = a.lu(x)
    inverse = lu_solve(factors, permutation, _identity_like(x))
    n, eps = aval_of(x).shape[-1], float(dtypes.finfo(aval_of(x).dtype).eps)
    return e.lt(e.mul(_largest(x), _largest(inverse)), eps ** (-1 / 3) / n)


def _largest(x: Any) -> Any:
    n = aval_of(x).ndim
    return reduce_max(e.abs(x), (n - 2, n - 1))


def _around_zero(aval: ShapedArray) -> Any:
    """Return points on the unit circle: more than the degree of the polynomial, and as far from -1 as possible."""
    n = max(aval.shape[-1] - 1, 1)
    return exact(np.exp(2j * np.pi * (np.arange(n) + 0.5 + n / 2) / n), dtypes.complex_of(aval.dtype))


@lru_cache(maxsize=256)
def _tangents_of_adjugate(aval: ShapedArray) -> tuple[Jaxpr, Jaxpr]:
    """Stage the tangent by the mean, and by the formula: tangent, matrix, is it regular, points -> tangent."""
    operands = (aval, aval, aval.update(shape=aval.shape[:-2], dtype=np.dtype(bool)), aval_of(_around_zero(aval)))
    mean, formula = [trace_to_jaxpr(f, operands, what="adjugate")[0] for f in (_by_mean, _by_formula)]
    return mean, formula


def _by_formula(t: Any, x: Any, regular: Any, _: Any) -> Any:
    """Differentiate by the formula; under vmap, matrices that take the other branch are replaced by the identity."""
    return (_regular_tangent(t, select(_over(regular, x), x, _identity_like(x))),)


def _by_mean(t: Any, x: Any, _: Any, points: Any) -> Any:
    u, s, vh = spectral.svd(e.stop_gradient(x), full_matrices=False)
    shift = _scaled(full_matmul(u, vh), _radius(s))
    shape = (*points.shape, *x.shape)
    everywhere = [broadcast_in_dim(_as(y, points), shape, range(1, len(shape))) for y in (t, x, shift)]
    moved = e.add(everywhere[1], e.mul(broadcast_in_dim(points, shape, (0,)), everywhere[2]))
    mean = e.div(reduce_sum(_regular_tangent(everywhere[0], moved), (0,)), float(points.size))
    return (mean if dtypes.is_complex(x.dtype) else e.real(mean),)


def _radius(s: Any) -> Any:
    """Return the circle's radius: 1/n of the second smallest singular value [.., n], or of eps^(1/4) times the largest.

    So the product of the larger singular values grows by less than (1 + 1/n)^n < e on the circle.
    """
    n, axis = s.shape[-1], s.ndim - 1
    first, second = (reduce_sum(slice_in_dim(s, k, k + 1, axis=axis), (axis,)) for k in (0, max(n - 2, 0)))
    radius = e.div(e.max(second, e.mul(first, float(dtypes.finfo(s.dtype).eps) ** 0.25)), float(n))
    return select(e.gt(radius, 0.0), radius, 1.0)


def _regular_tangent(t: Any, x: Any) -> Any:
    factors, pivots, permutation = a.lu(x)
    inverse = lu_solve(factors, permutation, _identity_like(x))
    first = e.mul(_over(_trace_of_product(inverse, t), inverse), inverse)
    both = e.sub(first, full_matmul(full_matmul(inverse, t), inverse))
    return e.mul(_over(determinant(factors, pivots), both), both)


def _identity_like(x: Any) -> Any:
    return _spread(eye(aval_of(x).shape[-1], dtype=aval_of(x).dtype), x)


def _scaled(matrix: Any, by: Any) -> Any:
    return e.mul(matrix, _over(_as(by, matrix), matrix))


def _as(x: Any, like: Any) -> Any:
    return e.convert_element_type(x, aval_of(like).dtype)


def _trace_of_product(x: Any, y: Any) -> Any:
    n = aval_of(x).ndim
    return reduce_sum(e.mul(_turned(x), y), (n - 2, n - 1))


def _over(x: Any, matrix: Any) -> Any:
    """Broadcast x [..] to all elements of each matrix."""
    return broadcast_in_dim(x, aval_of(matrix).shape, range(aval_of(x).ndim))


# ---- pinv: -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P


def _pinv_tangent(t: Any, p: Any, x: Any, rtol: Any, **_: Any) -> Any:
    turned, back = adjoint(t), adjoint(p)
    inner = full_matmul(full_matmul(p, t), p)
    left = full_matmul(full_matmul(p, back), e.sub(turned, full_matmul(full_matmul(turned, x), p)))
    right = full_matmul(e.sub(turned, full_matmul(p, full_matmul(x, turned))), full_matmul(back, p))
    return e.add(e.sub(left, inner), right)


# ---- least squares: with x = P b, the tangent of P times b, written with the residual b - A x


def _least_squares_jvp(primals: Any, tangents: Any) -> Any:
    (matrix, b, rtol), (t, tb, _) = primals, tangents
    x, p = a.least_squares_p.bind(matrix, b, rtol)
    by_right = zero_of(x) if type(tb) is Zero else full_matmul(p, tb)
    if type(t) is Zero:
        return (x, p), (by_right, zero_of(p))
    turned, back = adjoint(t), adjoint(p)
    outside = full_matmul(turned, full_matmul(back, x))
    moved = full_matmul(back, full_matmul(turned, e.sub(b, full_matmul(matrix, x))))
    inside = e.sub(e.sub(moved, full_matmul(t, x)), full_matmul(matrix, outside))
    tangent = e.add(full_matmul(p, inside), outside)
    both = tangent if type(by_right) is Zero else e.add(tangent, by_right)
    return (x, p), (both, _pinv_tangent(t, p, matrix, rtol))


def _least_squares_vmap(size: int, args: Any, dims: Any) -> Any:
    """Decompose one matrix once for all right sides."""
    if dims[0] is not None or dims[2] is not None:
        return a.least_squares_p.bind(*[vmap.move_mapped_axis_first(x, d, size) for x, d in zip(args, dims)]), [0, 0]
    matrix, b, rtol = args
    place = aval_of(matrix).ndim - 1
    joined, shape = beside_each_other(b, dims[1], place, size)
    found, p = a.least_squares_p.bind(matrix, joined, rtol)
    rows = aval_of(found).shape[:place]
    return (reshape(found, (*rows, *shape[place:])), p), [place, None]


# ---- shared


def _half(x: Any) -> Any:
    return constant(0.5, aval_of(x).update(shape=()))


def _turned(x: Any) -> Any:
    n = aval_of(x).ndim
    return transposed(x, (*range(n - 2), n - 1, n - 2))


def _in_rows(values: Any, like: Any) -> Any:
    """Repeat values [.., n] in every row of matrices."""
    n = aval_of(like).ndim
    return broadcast_in_dim(values, aval_of(like).shape, (*range(n - 2), n - 1))


def _spread(matrix: Any, like: Any) -> Any:
    n = aval_of(like).ndim
    return broadcast_in_dim(matrix, aval_of(like).shape, (n - 2, n - 1))


jvp.rules[a.lu_p] = _lu_jvp
jvp.rules[a.qr_p] = _qr_jvp
jvp.rules[a.geqrf_p] = without_derivative(a.geqrf_p)
jvp.partials(a.det_p, _det_tangent)
jvp.partials(a.adjugate_p, _adjugate_tangent)
jvp.partials_of_result(a.pinv_p, _pinv_tangent, None)
jvp.rules[a.least_squares_p] = _least_squares_jvp
vmap.rules[a.least_squares_p] = _least_squares_vmap
for _primitive in (a.lu_p, a.qr_p, a.geqrf_p, a.det_p, a.adjugate_p, a.pinv_p):
    vmap.front(_primitive)

# ---- index rows ----------------------------------------------------------------------------------------------
# Functions of whole matrices, batched over the axes before.

for _primitive in (a.lu_p, a.qr_p, a.geqrf_p, a.det_p, a.adjugate_p, a.pinv_p, a.least_squares_p):
    rows[_primitive] = core_of_matrices(_primitive)
