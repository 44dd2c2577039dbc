"""Rules of Cholesky, triangular and tridiagonal solve. Source: Giles 2008; Murray 2016 for Cholesky's factor."""

from typing import Any

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import Avals, IndexRow, Params, core, core_of_matrices, rows
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, instantiate, zero_of
from tapeless.tracer.numpy.matrices import tril, triu
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import linalg as a
from tapeless.tracer.primitives.contraction import full_matmul
from tapeless.tracer.primitives.elementwise import add, mul, neg, sub
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.shape import broadcast_in_dim, pad, reshape
from tapeless.tracer.primitives.shape import transpose as transposed
from tapeless.tracer.types import aval_of, exact

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
        given = [vmap.move_mapped_axis_first(x, d, size) for x, d in zip(args, dims)]
        return a.triangular_solve_p.bind(*given, **params), [0]
    place = aval_of(matrix).ndim - (1 if params["left_side"] else 2)
    joined, shape = beside_each_other(b, dims[1], place, size)
    (found,) = a.triangular_solve_p.bind(matrix, joined, **params)
    return (reshape(found, shape),), [place]


def beside_each_other(b: Any, d: Any, place: int, size: int) -> tuple[Any, tuple[int, ...]]:
    """Join a mapped axis with an axis, `place`, of each example; return the shape before they were joined, too."""
    apart = vmap.move_mapped_axis(b, d, place, size)
    shape = apart.shape
    return reshape(apart, (*shape[:place], size * shape[place + 1], *shape[place + 2 :])), shape


jvp.rules[a.triangular_solve_p] = _triangular_solve_jvp
jvp.structurally_linear[a.triangular_solve_p] = (1,)
transpose.rules[a.triangular_solve_p] = _triangular_solve_transpose
vmap.rules[a.triangular_solve_p] = _triangular_solve_vmap

# ---- tridiagonal systems -------------------------------------------------------------------------------------
# A X = B gives A dX = dB - dA X.


def _tridiagonal_solve_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """Push all tangents through one solve."""
    *diagonals, _ = primals
    *moved, t = tangents
    x = a.tridiagonal_solve_p.bind(*primals, **params)[0]
    if all(type(y) is Zero for y in tangents):
        return (x,), (zero_of(x),)
    terms = [_product(y, x, k) for y, k in zip(moved, (-1, 0, 1)) if type(y) is not Zero]
    right = instantiate(t)
    for term in terms:
        right = e.sub(right, term)
    return (x,), a.tridiagonal_solve_p.bind(*diagonals, right, **params)


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


def _tridiagonal_solve_transpose(cts: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> Any:
    if any(map(is_linear, (dl, d, du))):
        return None, None, None, None
    turned = _shifted(du, 1, -1), d, _shifted(dl, -1, -1)
    return None, None, None, a.tridiagonal_solve_p.bind(*turned, cts[0], **params)[0]


def _tridiagonal_solve_vmap(size: int, args: Any, dims: Any, /, **params: Any) -> Any:
    """Batch a solve: right sides of one matrix become its columns; if matrices are mapped, add a batch axis."""
    *diagonals, b = args
    if any(d is not None for d in dims[:-1]):
        given = [vmap.move_mapped_axis_first(x, d, size) for x, d in zip(args, dims)]
        return a.tridiagonal_solve_p.bind(*given, **params), [0]
    last = aval_of(b).ndim - 1
    columns = vmap.move_mapped_axis(b, dims[-1], last, size)
    *front, m, _ = shape = aval_of(columns).shape
    found = a.tridiagonal_solve_p.bind(*diagonals, reshape(columns, (*front, m * size)), **params)[0]
    return (reshape(found, shape),), [last]


jvp.rules[a.tridiagonal_solve_p] = _tridiagonal_solve_jvp
jvp.structurally_linear[a.tridiagonal_solve_p] = (3,)
transpose.rules[a.tridiagonal_solve_p] = _tridiagonal_solve_transpose
vmap.rules[a.tridiagonal_solve_p] = _tridiagonal_solve_vmap

# ---- index rows ----------------------------------------------------------------------------------------------
# Functions of whole matrices, batched over axes before.


def _triangular_solve_row(params: Params, avals: Avals) -> IndexRow:
    """Make the row: the columns of the right-hand side, or its rows, are solved independently."""
    a, b = avals
    batch = {d: d for d in range(a.ndim - 2)}
    free = b.ndim - 1 if params["left_side"] else b.ndim - 2
    return core([(a.shape, batch), (b.shape, {**batch, free: free})], b.shape)


rows[a.cholesky_p], rows[a.triangular_solve_p] = core_of_matrices(a.cholesky_p), _triangular_solve_row


def _tridiagonal_solve_row(params: Params, avals: Avals) -> IndexRow:
    """Make the row: the columns of the right-hand side are solved independently."""
    *diagonals, b = avals
    batch = {d: d for d in range(b.ndim - 2)}
    return core([*((x.shape, batch) for x in diagonals), (b.shape, {**batch, b.ndim - 1: b.ndim - 1})], b.shape)


rows[a.tridiagonal_solve_p] = _tridiagonal_solve_row
