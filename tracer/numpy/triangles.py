"""Helpers for LU and other triangular factors: diagonals, pivots, permutations, solves."""

from typing import Any

import numpy as np

from tapeless.tracer.array import Array
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.numpy.arithmetic import select
from tapeless.tracer.numpy.matrices import diagonal
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.indexing import dynamic_index_in_dim
from tapeless.tracer.primitives.linalg import triangular_solve
from tapeless.tracer.primitives.reduction import reduce_prod, reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, broadcasted_iota
from tapeless.tracer.primitives.sorting import take_along_axis


def diagonal_of(x: Any) -> Array:
    """Return the diagonal [.., k] of x [.., m, n]."""
    return diagonal(x, 0, -2, -1)


def exchange(i: Any, rows: Any, pivots: Any) -> Array:
    """Exchange element i, an integer of any width, of rows [.., m] with element pivots[.., i]."""
    shape, axis = rows.shape, rows.ndim - 1
    places = broadcasted_iota(np.int32, shape, axis)
    here = lax.eq(places, lax.convert_element_type(i, np.int32))
    there = lax.eq(places, broadcast_in_dim(dynamic_index_in_dim(pivots, i, -1), shape, range(axis + 1)))
    at_here, at_there = (
        broadcast_in_dim(reduce_sum(select(m, rows, 0), (axis,)), shape, range(axis)) for m in (here, there)
    )
    return select(here, at_there, select(there, at_here, rows))


def parity(pivots: Any, dtype: DTypeLike) -> Array:
    """Return 1 or -1, [..] in a dtype, weak: the sign of the permutation that the row exchanges pivots [.., k] make."""
    moved = lax.ne(pivots, broadcasted_iota(np.int32, pivots.shape, pivots.ndim - 1))
    count = reduce_sum(lax.convert_element_type(moved, np.int32), (pivots.ndim - 1,))
    odd = lax.convert_element_type(lax.rem(count, 2), dtype, weak_type=True)
    return lax.sub(1.0, lax.mul(odd, 2.0))


def determinant(factors: Any, pivots: Any) -> Array:
    """Compute the determinant, [..], from the factors [.., n, n] and pivots of `lu`."""
    return lax.mul(reduce_prod(diagonal_of(factors), (factors.ndim - 2,)), parity(pivots, factors.dtype))


def permute_rows(x: Any, places: Any) -> Array:
    """Gather the rows of x [.., m, n] at positions [.., m]."""
    return take_along_axis(x, broadcast_in_dim(places, x.shape, range(x.ndim - 1)), x.ndim - 2)


def lu_solve(factors: Any, permutation: Any, b: Any, transposed: bool = False) -> Array:
    """Solve a @ x = b, or a^T @ x = b, by the factors of a from `lu`: return x [.., n, m]."""
    if not transposed:
        half = triangular_solve(factors, permute_rows(b, permutation), left_side=True, lower=True, unit_diagonal=True)
        return triangular_solve(factors, half, left_side=True)
    half = triangular_solve(factors, b, left_side=True, transpose_a=True)
    x = triangular_solve(factors, half, left_side=True, lower=True, transpose_a=True, unit_diagonal=True)
    return permute_rows(x, _inverse(permutation))


def _inverse(permutation: Any) -> Array:
    """Invert a permutation [.., n]."""
    n = permutation.ndim
    shape = (*permutation.shape, permutation.shape[-1])
    rows = broadcasted_iota(np.int32, shape, n - 1)
    found = lax.eq(broadcast_in_dim(permutation, shape, (*range(n - 1), n)), rows)
    places = lax.mul(lax.convert_element_type(found, np.int32), broadcasted_iota(np.int32, shape, n))
    return reduce_sum(places, (n,))
