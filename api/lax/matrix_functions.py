"""Functions of `lax.linalg` that are written with loops: permutations of exchanges, updates of factors, products."""

from typing import Any

import numpy as np

from tapeless.control_flow.branches_and_loops import fori_loop
from tapeless.control_flow.scan import scan
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.advice.widths import mismatch
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.promotion import as_weak_as
from tapeless.tracer.numpy.triangles import exchange
from tapeless.tracer.primitives.contraction import full_matmul
from tapeless.tracer.primitives.indexing import dynamic_index_in_dim
from tapeless.tracer.primitives.linalg import check_dtype, check_square
from tapeless.tracer.primitives.shape import broadcasted_iota
from tapeless.tracer.types import ShapedArray, aval_of


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Compute the permutation of rows that a sequence of exchanges makes, as `lu` returns them.

    Args:
      pivots: int32[.., k]: row i is exchanged with row pivots[i], in turn. Each is less than `permutation_size`.
      permutation_size: number of rows, not less than k.
    Returns: int32[.., permutation_size].
    Raises: TypeError if pivots have another dtype, ValueError if there are more of them than rows.
    """
    aval = aval_of(pivots)
    if aval.dtype != np.int32 or not aval.ndim:
        raise TypeError(f"lu_pivots_to_permutation: pivots must be int32[.., k], not {aval}. Convert with astype.")
    k, m = aval.shape[-1], int(permutation_size)
    if m < k:
        raise ValueError(f"lu_pivots_to_permutation: {k} exchanges of {m} rows, of {aval}: no more than rows.")
    rows = broadcasted_iota(np.int32, (*aval.shape[:-1], m), aval.ndim - 1)
    given = tnp.asarray(pivots)
    return fori_loop(0, k, lambda i, rows: exchange(i, rows, given), rows) if k and rows.size else rows


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Compute the Cholesky factor of a matrix plus w w^T from the factor of the matrix, in O(n²).

    Args:
      r_matrix: [.., n, n], floating point of 32 or 64 bits: the upper triangular R of R^T @ R, its diagonal positive.
      w_vector: w [.., n], of the dtype of R.
    Returns: the upper triangular factor [.., n, n] of R^T @ R + w w^T.
        What stands below the diagonal of R has to be 0, and is not checked.
    Raises: TypeError if dtypes differ, or are others; ValueError if shapes do not fit; both are named.
    Source: Golub and Van Loan 2013, section 6.5.4: one Givens rotation of a row of R and w after the other.
    """
    r, w = aval_of(r_matrix), aval_of(w_vector)
    _check_reals("cholesky_update", r, w)
    check_square("cholesky_update", r, f"{r} and {w}")
    if w.shape != r.shape[:-1]:
        raise ValueError(f"cholesky_update: a matrix [.., n, n] and a vector [.., n], not {r} and {w}.")

    if not r.size:
        return tnp.asarray(r_matrix)

    def rotate(w: Any, place_and_row: Any) -> Any:
        place, row = place_and_row
        x, y = (dynamic_index_in_dim(v, place, -1) for v in (row, w))
        c, s = _rotation(x, y)
        return tnp.where(places == place, 0, c * w - s * row), c * row + s * w  # rounding leaves something there

    places = np.arange(r.shape[-1], dtype=np.int32)
    rows = tnp.moveaxis(tnp.asarray(r_matrix), -2, 0)
    _, found = scan(rotate, tnp.asarray(w_vector), (places, rows))
    return as_weak_as(tnp.moveaxis(found, 0, -2), r_matrix, w_vector)


def _rotation(x: Any, y: Any) -> tuple[Any, Any]:
    """Compute cosine and sine of the rotation of (x, y) to (r, 0): r is positive, or x where y is 0."""
    stays = y == 0
    r = tnp.hypot(x, y) * tnp.where(stays & (x < 0), -1.0, 1.0).astype(x.dtype)
    nothing = r == 0
    safe = tnp.where(nothing, 1.0, r)
    return tnp.where(nothing, 1.0, x / safe), y / safe


def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """Compute alpha A @ A^T + beta C.

    Args:
      a_matrix: A [.., m, n], floating point of 32 or 64 bits.
      c_matrix: C [.., m, m], symmetric, of the dtype of A.
      alpha, beta: numbers.
      symmetrize_output: replace the upper triangle by the transposed lower one.
    Returns: [.., m, m], in full precision.
    Raises: TypeError if dtypes differ, or are others; ValueError if shapes do not fit; both are named.
    """
    a, c = aval_of(a_matrix), aval_of(c_matrix)
    _check_reals("symmetric_product", a, c)
    if a.ndim < 2 or c.shape != (*a.shape[:-1], a.shape[-2]):
        raise ValueError(f"symmetric_product: matrices [.., m, n] and [.., m, m], not {a} and {c}.")
    given = tnp.asarray(a_matrix)
    found = alpha * full_matmul(given, tnp.matrix_transpose(given)) + beta * tnp.asarray(c_matrix)
    return tnp.tril(found) + tnp.matrix_transpose(tnp.tril(found, -1)) if symmetrize_output else found


def _check_reals(who: str, x: ShapedArray, y: ShapedArray) -> None:
    if x.dtype != y.dtype:
        raise mismatch(f"{who}: operands differ in dtype: {x} and {y}. Convert with astype.", x, y)
    check_dtype(who, x, f"{x} and {y}")
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"{who}: the matrices must be real: {x} and {y}.")
