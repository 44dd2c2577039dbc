"""Index row of tridiagonal systems: the columns of the right-hand side are solved independently."""

from collections.abc import Sequence

from tapeless.interpreters.index_rows import IndexRow, Params, core, rows
from tapeless.tracer.primitives.tridiagonal_systems import tridiagonal_solve_p
from tapeless.tracer.types import ShapedArray


def _tridiagonal_solve(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    *diagonals, b = avals
    batch = {d: d for d in range(b.ndim - 2)}
    return core([*((x.shape, batch) for x in diagonals), (b.shape, {**batch, b.ndim - 1: b.ndim - 1})], b.shape)


rows[tridiagonal_solve_p] = _tridiagonal_solve
