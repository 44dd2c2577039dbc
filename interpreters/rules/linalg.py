"""Rules of Cholesky and triangular solve. Source: Giles 2008; Murray 2016 for Cholesky's factor."""

from typing import Any

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import Avals, IndexRow, Params, core, core_of_matrices, rows
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, zero_of
from tapeless.tracer.numpy.matrices import tril, triu
from tapeless.tracer.primitives import linalg as a
from tapeless.tracer.primitives.contraction import full_matmul
from tapeless.tracer.primitives.elementwise import add, mul, neg, sub
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.shape import reshape
from tapeless.tracer.primitives.shape import transpose as transposed
from tapeless.tracer.types import aval_of

# ---- cholesky: with L L^H = A, L^-1 dL is the lower triangle of L^-1 dA L^-H, its diagonal halved


def _cholesky_tangent(t: Any, factor: Any, x: Any) -> Any:
    """Differentiate Cholesky's factor by the lower triangle of x, the only one that is read."""
    hermitian = add(tril(t), a.adjoint(tril(t, -1)))
    left = a.triangular_solve(factor, hermitian, left_side=True, lower=True)
    both = a.triangular_solve(factor, left, lower=True, transpose_a=True, conjugate_a=True)
    half = constant(0.5, aval_of(factor).update(shape=()))
    return full_matmul(factor, sub(tril(both), mul(tril(triu(both)), half)))


jvp.partials_of_result(a.cholesky_p, _cholesky_tangent)
vmap.front(a.cholesky_p)

# ---- triangular_solve: op(A) X = B gives op(A) dX = dB - op(dA) X


def _triangle(t: Any, lower: bool, unit_diagonal: bool) -> Any:
    """Return the part of a triangular matrix that is read."""
    return tril(t, -1 if unit_diagonal else 0) if lower else triu(t, 1 if unit_diagonal else 0)


def _triangular_solve_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """Push both tangents through one solve."""
    (matrix, _), (moving, t) = primals, tangents
    out = a.triangular_solve_p.bind(*primals, **params)
    if type(moving) is Zero:
        return out, (zero_of(out[0]),) if type(t) is Zero else a.triangular_solve_p.bind(matrix, t, **params)
    moved = _moved(moving, out[0], **params)
    right = neg(moved) if type(t) is Zero else sub(t, moved)
    return out, a.triangular_solve_p.bind(matrix, right, **params)


def _moved(t: Any, x: Any, *, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool) -> Any:
    """Compute op(dA) X, for t = dA."""
    moved = _triangle(t, lower, unit_diagonal)
    n = aval_of(moved).ndim
    if transpose_a:
        moved = transposed(moved, (*range(n - 2), n - 1, n - 2))
    return full_matmul(moved, x) if left_side else full_matmul(x, moved)


def _triangular_solve_transpose(cts: Any, matrix: Any, b: Any, *, transpose_a: bool, **params: Any) -> Any:
    if is_linear(matrix):
        return None, None
    return None, a.triangular_solve_p.bind(matrix, cts[0], transpose_a=not transpose_a, **params)[0]


def _triangular_solve_vmap(size: int, args: Any, dims: Any, **params: bool) -> Any:
    """Solve for all right sides of one matrix at once; they are rows where the matrix is on the right."""
    matrix, b = args
    if dims[0] is not None:
        given = [vmap.materialized(x, d, size) for x, d in zip(args, dims)]
        return a.triangular_solve_p.bind(*given, **params), [0]
    place = aval_of(matrix).ndim - (1 if params["left_side"] else 2)
    joined, shape = beside_each_other(b, dims[1], place, size)
    (found,) = a.triangular_solve_p.bind(matrix, joined, **params)
    return (reshape(found, shape),), [place]


def beside_each_other(b: Any, d: Any, place: int, size: int) -> tuple[Any, tuple[int, ...]]:
    """Join a mapped axis with an axis, `place`, of each example; return the shape before they were joined, too."""
    apart = vmap.placed(b, d, place, size)
    shape = apart.shape
    return reshape(apart, (*shape[:place], size * shape[place + 1], *shape[place + 2 :])), shape


jvp.rules[a.triangular_solve_p] = _triangular_solve_jvp
jvp.structurally_linear[a.triangular_solve_p] = (1,)
transpose.rules[a.triangular_solve_p] = _triangular_solve_transpose
vmap.rules[a.triangular_solve_p] = _triangular_solve_vmap

# ---- index rows ----------------------------------------------------------------------------------------------
# Functions of whole matrices, batched over axes before.


def _triangular_solve_row(params: Params, avals: Avals) -> IndexRow:
    """Make the row: the columns of the right-hand side, or its rows, are solved independently."""
    a, b = avals
    batch = {d: d for d in range(a.ndim - 2)}
    free = b.ndim - 1 if params["left_side"] else b.ndim - 2
    return core([(a.shape, batch), (b.shape, {**batch, free: free})], b.shape)


rows[a.cholesky_p], rows[a.triangular_solve_p] = core_of_matrices(a.cholesky_p), _triangular_solve_row
