"""Products of Householder reflections (compact WY form), the representation of orthogonal factors in QR.

H_1 H_2 .. H_k = 1 - V T V^H, for H_i = 1 - tau_i v_i v_i^H, where V has the vectors v_i in its columns and T is upper
triangular: T = (1 + D S)^-1 D, with the factors tau on the diagonal of D and S the strictly upper triangle of V^H V.
Source: Schreiber and Van Loan 1989, "A storage-efficient WY representation for products of Householder
transformations"; Joffrain et al. 2006, "Accumulating Householder transformations, revisited".
"""

from typing import Any

from tapeless.tracer.advice.widths import mismatch
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.matrices import eye, tril, triu
from tapeless.tracer.numpy.promotion import as_weak_as
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.contraction import full_matmul
from tapeless.tracer.primitives.linalg import adjoint, check_matrix, triangular_solve
from tapeless.tracer.primitives.operands import ndim
from tapeless.tracer.primitives.shape import broadcast_in_dim, slice_in_dim
from tapeless.tracer.types import aval_of


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Multiply Householder reflections: return the first n columns of H_1 H_2 .. H_k.

    Args:
      a: [.., m, n], m not less than n: column i holds the vector of H_i below the diagonal; its element on the diagonal
        is 1. Floating point of 32 or 64 bits, or complex.
      taus: [.., k], k not more than n, of the dtype of a: the reflections' factors.
    Returns: [.., m, n], with orthonormal columns if H_i are reflections.
    Raises: TypeError if dtypes differ or are narrower, ValueError if shapes do not fit; both operands are named.
    """
    _check("householder_product", a, taus)
    m, n = aval_of(a).shape[-2:]
    if m < n:
        raise ValueError(f"householder_product: there are more columns than rows: {aval_of(a)}.")
    vectors, inner = _compact(a, taus)
    applied = full_matmul(vectors, full_matmul(inner, adjoint(slice_in_dim(vectors, 0, n, axis=-2))))
    return e.sub(_spread(_identity(m, n, a), applied), applied)


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """Multiply a matrix by Householder reflections Q = H_1 H_2 .. H_k, or by their adjoint.

    Args:
      a: [.., m, n], the reflections' vectors, as for `householder_product`; n may be more than m.
      taus: [.., k], k not more than m and n.
      c: [.., m, p], or [.., p, m] if not `left`; all are of one dtype.
      left: whether Q is on the left of c, or on the right.
      transpose: multiply by Q^H instead.
    Returns: Q @ c or c @ Q, of the type of c.
    Raises: TypeError if dtypes differ or are narrower, ValueError if shapes do not fit; the operands are named.
    """
    _check("ormqr", a, taus, c)
    m, axis = aval_of(a).shape[-2], -2 if left else -1
    if aval_of(c).shape[axis] != m:
        raise ValueError(f"ormqr: axis {axis} of {aval_of(c)} must have {m} elements, as {aval_of(a)} has rows.")
    vectors, inner = _compact(a, taus)
    inner = adjoint(inner) if transpose else inner
    if left:
        return e.sub(c, full_matmul(vectors, full_matmul(inner, full_matmul(adjoint(vectors), c))))
    return e.sub(c, full_matmul(full_matmul(full_matmul(c, vectors), inner), adjoint(vectors)))


def _check(who: str, a: ArrayLike, taus: ArrayLike, *others: ArrayLike) -> None:
    avals = aval, factors, *rest = [aval_of(x) for x in (a, taus, *others)]
    given = " and ".join(map(str, avals))
    check_matrix(who, aval)
    if len({x.dtype for x in avals}) > 1:
        raise mismatch(f"{who}: operands differ in dtype: {given}. Convert with astype.", *avals)
    if not factors.ndim or {x.shape[:-2] for x in (aval, *rest)} != {factors.shape[:-1]}:
        raise ValueError(f"{who}: the operands differ in their leading axes: {given}.")
    if factors.shape[-1] > min(aval.shape[-2:]):
        raise ValueError(f"{who}: there are more factors than columns or rows of the matrix: {given}.")


def _compact(a: ArrayLike, taus: ArrayLike) -> tuple[Any, Any]:
    """Compute V [.., m, k] and T [.., k, k] with 1 - V T V^H the product of the reflections."""
    k = aval_of(taus).shape[-1]
    below = tril(slice_in_dim(a, 0, k, axis=-1), -1)
    vectors = e.add(below, _spread(_identity(aval_of(a).shape[-2], k, a), below))
    above = triu(full_matmul(adjoint(vectors), vectors), 1)
    shape, n = aval_of(above).shape, aval_of(above).ndim
    by_rows = broadcast_in_dim(taus, shape, range(n - 1))
    diagonal = e.mul(by_rows, _spread(_identity(k, k, a), above))
    return vectors, triangular_solve(e.mul(by_rows, above), diagonal, left_side=True, unit_diagonal=True)


def _identity(m: int, n: int, like: ArrayLike) -> Array:
    return as_weak_as(eye(m, n, dtype=aval_of(like).dtype), like)


def _spread(matrix: Any, like: Any) -> Any:
    n = ndim(like)
    return broadcast_in_dim(matrix, aval_of(like).shape, (n - 2, n - 1))
