"""Index rows of Cholesky factorization and triangular solves: functions of whole matrices, batched over axes before."""

from collections.abc import Sequence

from tapeless.interpreters.index_rows import IndexRow, Params, core, core_of_matrices, rows
from tapeless.tracer.primitives import linalg as m
from tapeless.tracer.types import ShapedArray


def _triangular_solve(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    """Make the row: the columns of the right-hand side, or its rows, are solved independently."""
    a, b = avals
    batch = {d: d for d in range(a.ndim - 2)}
    free = b.ndim - 1 if params["left_side"] else b.ndim - 2
    return core([(a.shape, batch), (b.shape, {**batch, free: free})], b.shape)


rows[m.cholesky_p], rows[m.triangular_solve_p] = core_of_matrices(m.cholesky_p), _triangular_solve
