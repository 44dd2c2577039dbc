"""Rules of tridiagonal systems: A X = B gives A dX = dB - dA X."""

from typing import Any

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import Avals, IndexRow, Params, core, rows
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, instantiate, zero_of
from tapeless.tracer.incoming import exact
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.shape import broadcast_in_dim, pad, reshape
from tapeless.tracer.primitives.tridiagonal_systems import tridiagonal_solve_p
from tapeless.tracer.types import aval_of


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """Push all tangents through one solve."""
    *diagonals, _ = primals
    *moved, t = tangents
    x = tridiagonal_solve_p.bind(*primals, **params)[0]
    if all(type(y) is Zero for y in tangents):
        return (x,), (zero_of(x),)
    terms = [_product(y, x, k) for y, k in zip(moved, (-1, 0, 1)) if type(y) is not Zero]
    right = instantiate(t)
    for term in terms:
        right = e.sub(right, term)
    return (x,), tridiagonal_solve_p.bind(*diagonals, right, **params)


def _product(diagonal: Any, x: Any, k: int) -> Any:
    """Multiply the matrix with only this diagonal [.., n], of elements [i, i+k], by x [.., n, m]."""
    shape = aval_of(x).shape
    return e.mul(broadcast_in_dim(diagonal, shape, range(len(shape) - 1)), _shifted(x, -k, -2))


def _shifted(x: Any, k: int, axis: int) -> Any:
    """Shift x by k places along an axis; zeros come in."""
    if not k:
        return x
    aval = aval_of(x)
    moves = [(0, 0, 0)] * aval.ndim
    moves[axis] = (k, -k, 0)
    return pad(x, exact(0, aval.dtype), moves)


def _transposed(cts: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> Any:
    if any(map(is_linear, (dl, d, du))):
        return None, None, None, None
    turned = _shifted(du, 1, -1), d, _shifted(dl, -1, -1)
    return None, None, None, tridiagonal_solve_p.bind(*turned, cts[0], **params)[0]


def _vmap(size: int, args: Any, dims: Any, /, **params: Any) -> Any:
    """Batch a solve: right sides of one matrix become its columns; if matrices are mapped, add a batch axis."""
    *diagonals, b = args
    if any(d is not None for d in dims[:-1]):
        given = [vmap.materialized(x, d, size) for x, d in zip(args, dims)]
        return tridiagonal_solve_p.bind(*given, **params), [0]
    last = aval_of(b).ndim - 1
    columns = vmap.placed(b, dims[-1], last, size)
    *front, m, _ = shape = aval_of(columns).shape
    found = tridiagonal_solve_p.bind(*diagonals, reshape(columns, (*front, m * size)), **params)[0]
    return (reshape(found, shape),), [last]


jvp.rules[tridiagonal_solve_p] = _jvp
jvp.structurally_linear[tridiagonal_solve_p] = (3,)
transpose.rules[tridiagonal_solve_p] = _transposed
vmap.rules[tridiagonal_solve_p] = _vmap

# ---- index rows ----------------------------------------------------------------------------------------------
# The columns of the right-hand side are solved independently.


def _tridiagonal_solve_row(params: Params, avals: Avals) -> IndexRow:
    *diagonals, b = avals
    batch = {d: d for d in range(b.ndim - 2)}
    return core([*((x.shape, batch) for x in diagonals), (b.shape, {**batch, b.ndim - 1: b.ndim - 1})], b.shape)


rows[tridiagonal_solve_p] = _tridiagonal_solve_row
