"""Solvers of linear systems of which only products with vectors are known: cg, bicgstab, gmres.

Vectors are pytrees of arrays. Derivatives, in both modes, solve another system by the same method, as the solution
depends on the system and not on the steps: `custom_linear_solve`. Source: Saad 2003, "Iterative methods for sparse
linear systems", algorithms 6.9, 6.18, 7.7 and 9.1.
"""

import operator
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from tapeless.control_flow.branches_and_loops import fori_loop, while_loop
from tapeless.custom.linear_solves import custom_linear_solve
from tapeless.index import SparseArray
from tapeless.tracer import dtypes, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.promotion import array_operand, as_weak_as, inexact, mixing_inside
from tapeless.tracer.primitives.contraction import Precision
from tapeless.tracer.primitives.linalg import triangular_solve
from tapeless.tracer.types import aval_of, by_protocol, is_arraylike

Map = Callable[[Any], Any]
_HIGHEST = Precision.HIGHEST


@mixing_inside
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    rtol: Any = None,
) -> tuple[Any, None]:
    """Solve A x = b by conjugate gradients, for a Hermitian and positive definite A.

    The derivative is that of the exact solution, by implicit differentiation: it solves another system with the same
    A, tol and maxiter. So it is right only if both have converged: nothing tells. Check that the norm of b - A x is
    small, and that a smaller tol gives the same gradient.

    Args:
      A: a linear function of pytrees like b, or a matrix [n, n]: dense, an `index.SparseArray`, or one of scipy.sparse.
      b: a pytree of arrays.
      x0: like b, where to begin; zeros if None.
      tol, atol: steps end where the norm of b - A x is at most the greater of tol times that of b, and atol.
      maxiter: steps at most; 10 times the number of elements of b if None.
      M: an approximate inverse of A, Hermitian and positive definite: a function or a matrix.
      rtol: SciPy's name for tol; it counts if it is given.
    Returns: (x, None); x as far as it is when the steps end.
    Raises: ValueError if A or M is an array other than a square matrix, or x0 is not like b; TypeError if they are no
      functions, or b no numbers.
    """
    system = _system("cg", A, b, x0, maxiter, M)
    real = not any(dtypes.is_complex(v.dtype) for v in pytree.leaves(system.b))
    return _solved(system, partial(_conjugate_gradients, system, _relative(tol, rtol), atol), symmetric=real), None


@mixing_inside
def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    rtol: Any = None,
) -> tuple[Any, None]:
    """Solve A x = b by stabilized biconjugate gradients, for any A and M. Args, Returns, Raises: as for `cg`."""
    system = _system("bicgstab", A, b, x0, maxiter, M)
    return _solved(system, partial(_biconjugate_gradients, system, _relative(tol, rtol), atol)), None


@mixing_inside
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-05,
    atol: Any = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
    rtol: Any = None,
) -> tuple[Any, Array]:
    """Solve A x = b by the method of generalized minimal residuals, for any A.

    Args:
      A, b, x0, M: as for `cg`; M is any matrix. The residual that is measured is M (b - A x).
      tol, atol, rtol: as for `cg`.
      restart: dimensions of the space that a solution is looked for in, before the next one begins where it ended.
      maxiter: such spaces at most; 10 times the number of elements of b if None.
      solve_method: "batched" for all dimensions at once; "incremental" stops within a space when the residual is small.
    Returns: (x, int32[]: -1 if x is not finite, else 0).
    Raises: as `cg`; ValueError for another `solve_method`.
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"gmres: solve_method must be 'batched' or 'incremental', not {solve_method!r}.")
    system = _system("gmres", A, b, x0, maxiter, M)
    dimensions = min(operator.index(restart), system.size)
    early = solve_method == "incremental"
    x = (
        _solved(system, partial(_minimal_residuals, system, _relative(tol, rtol), atol, dimensions, early))
        if system.size
        else system.b
    )
    return x, tnp.where(tnp.isnan(_norm(x)), -1, 0).astype(np.int32)


class _Unknown(NamedTuple):
    """A linear system, its preconditioner, where to begin, and how many steps to make."""

    a: Map
    b: Any
    x0: Any
    maxiter: int
    m: Map
    size: int
    matrix: tuple[ArrayLike, ...]


def _system(who: str, a: Any, b: Any, x0: Any, maxiter: int | None, m: Any) -> _Unknown:
    right = pytree.tree_map(lambda v: array_operand(who, inexact(who, v)), b)
    size = sum(v.size for v in pytree.leaves(right))
    if x0 is None:
        begin = pytree.tree_map(tnp.zeros_like, right)
    else:
        if pytree.structure(x0) != pytree.structure(b):
            told = pytree.compare(pytree.structure(x0), pytree.structure(b), ("x0", "b"))
            raise ValueError(f"{who}: x0 and b differ in structure.{told}")
        begin = pytree.tree_map(lambda v, y: tnp.asarray(v, y.dtype), x0, right)
        for v, y in zip(pytree.leaves(begin), pytree.leaves(right), strict=True):
            if v.shape != y.shape:
                raise ValueError(f"{who}: x0 has {v.aval} where b has {y.aval}.")
    steps = 10 * size if maxiter is None else operator.index(maxiter)
    matrix = (a,) if is_arraylike(a) else ()
    return _Unknown(_function(who, "A", a), right, begin, steps, _function(who, "M", m), size, matrix)


def _function(who: str, name: str, f: Any) -> Map:
    if f is None:
        return _unchanged
    if callable(f):
        return f
    if hasattr(f, "tocoo"):
        f = SparseArray.from_scipy(f)
    if isinstance(f, SparseArray):
        if f.ndim != 2 or f.shape[0] != f.shape[1]:
            raise ValueError(f"{who}: {name} must be a square matrix, not {f!r}.")
        return lambda x: f @ x
    f = by_protocol(f)
    if not is_arraylike(f):
        raise TypeError(f"{who}: {name} must be a function or a matrix, not {type(f).__name__}.")
    aval = aval_of(f)
    if aval.ndim != 2 or aval.shape[0] != aval.shape[1]:
        raise ValueError(f"{who}: {name} must be a square matrix, not {aval}.")
    return lambda x: tnp.matmul(f, x, precision=_HIGHEST)


def _unchanged(x: Any) -> Any:
    return x


def _relative(tol: Any, rtol: Any) -> Any:
    return tol if rtol is None else rtol


def _solved(system: _Unknown, solve: Callable[[Map, Any], Any], symmetric: bool = False) -> Any:
    found = custom_linear_solve(system.a, system.b, solve, solve, symmetric)
    return pytree.tree_map(lambda x, b: as_weak_as(x, b, *system.matrix), found, system.b)


# ---- methods -------------------------------------------------------------------------------------------------


def _conjugate_gradients(system: _Unknown, tol: Any, atol: Any, a: Map, b: Any) -> Any:
    least, x0 = _bound(tol, atol, b), _plus(system.x0, 0, b)  # nan where b is

    def going(state: Any) -> Any:
        _, r, gamma, _, k = state
        size = tnp.sqrt(gamma) if system.m is _unchanged else _norm(r)  # it is known already: each sum is a pass over r
        return (size > least) & (k < system.maxiter)

    def step(state: Any) -> Any:
        x, r, gamma, p, k = state
        product = a(p)
        alpha = gamma / tnp.real(_inner(p, product))
        x, r = _plus(x, alpha, p), _plus(r, -alpha, product)
        z = system.m(r)
        after = tnp.real(_inner(r, z))
        return x, r, after, _plus(z, after / gamma, p), k + 1

    r = _plus(b, -1, a(x0))
    z = system.m(r)
    return while_loop(going, step, (x0, r, tnp.real(_inner(r, z)), z, np.int32(0)))[0]


def _biconjugate_gradients(system: _Unknown, tol: Any, atol: Any, a: Map, b: Any) -> Any:
    least, x0 = _bound(tol, atol, b), _plus(system.x0, 0, b)  # nan where b is

    def going(state: Any) -> Any:
        r, k = state[1], state[-1]
        return (_norm(r) > least) & (k < system.maxiter) & (k >= 0)

    def step(state: Any) -> Any:
        x, r, shadow, alpha, omega, rho, p, q, k = state
        rho_next = _inner(shadow, r)
        beta = rho_next / rho * alpha / omega
        p = _plus(r, beta, _plus(p, -omega, q))
        conditioned = system.m(p)
        q = a(conditioned)
        alpha = rho_next / _inner(shadow, q)
        s = _plus(r, -alpha, q)
        small = _norm(s) <= least  # then omega would be a quotient of rounding errors
        turned = system.m(s)
        t = a(turned)
        square = tnp.real(_inner(t, t))
        omega = tnp.where(small, 0, _inner(t, s) / tnp.where(small, 1, square))
        x = _plus(_plus(x, alpha, conditioned), omega, turned)
        r = _plus(s, -omega, t)
        failed = (rho_next == 0) | (alpha == 0) | ((omega == 0) & ~small)
        return x, r, shadow, alpha, omega, rho_next, p, q, tnp.where(failed, -1, k + 1).astype(np.int32)

    r = _plus(b, -1, a(x0))
    one = tnp.ones_like(_inner(r, r))
    return while_loop(going, step, (x0, r, r, one, one, one, r, r, np.int32(0)))[0]


def _minimal_residuals(system: _Unknown, tol: Any, atol: Any, n: int, early: bool, a: Map, b: Any) -> Any:
    conditioned = _norm(system.m(b))
    least, x0 = _bound(tol, atol, b), _plus(system.x0, 0, b)  # nan where b is
    size = _norm(b)
    enough = conditioned * tnp.minimum(1, least / tnp.where(size == 0, 1, size))

    def residual(x: Any) -> Any:
        return system.m(_plus(b, -1, a(x)))

    def going(state: Any) -> Any:
        _, r, k = state
        return (_norm(r) > enough) & (k < system.maxiter)

    def step(state: Any) -> Any:
        x, r, k = state
        x = _best(lambda v: system.m(a(v)), x, r, n, enough if early else None)
        return x, residual(x), k + 1

    return while_loop(going, step, (x0, residual(x0), np.int32(0)))[0]


def _best(apply: Map, x: Any, r: Any, n: int, enough: Any) -> Any:
    """Look for the x with the least residual in the space of r, A r, .., A^(n-1) r, by Arnoldi's basis of it.

    Columns of the upper triangular matrix are turned into their place one by one, which gives the norm of the residual.
    """
    size = _norm(r)
    basis = pytree.tree_map(lambda v: tnp.zeros((n + 1, *v.shape), v.dtype).at[0].set(_over(v, size)), r)
    dtype = _inner(r, r).dtype
    right = tnp.zeros(n + 1, dtype).at[0].set(size.astype(dtype))
    triangle, turns = tnp.zeros((n, n + 1), dtype), tnp.zeros((n, 2), dtype)

    def going(state: Any) -> Any:
        k, error = state[0], state[1]
        return (k < n) & (error > (0 if enough is None else enough))

    def step(state: Any) -> Any:
        k, _, basis, triangle, turns, right = state
        image = apply(pytree.tree_map(lambda v: v[k], basis))
        length = _norm(image)
        v, column = _orthogonal(basis, image)
        rest = _norm(v)
        rest = tnp.where(rest > float(dtypes.finfo(dtype).eps) * length, rest, 0)
        basis = pytree.tree_map(lambda s, y: s.at[k + 1].set(_over(y, rest)), basis, v)
        column = column.at[k + 1].set(rest.astype(dtype))
        column = fori_loop(0, k, lambda i, v: _turned(v, i, turns), column)
        turns = turns.at[k].set(_rotation(column[k], column[k + 1]))
        triangle, right = triangle.at[k].set(_turned(column, k, turns)), _turned(right, k, turns)
        return k + 1, tnp.where(rest > 0, tnp.abs(right[k + 1]), 0), basis, triangle, turns, right

    k, _, basis, triangle, _, right = while_loop(going, step, (np.int32(0), size, basis, triangle, turns, right))
    used = np.arange(n) < k
    diagonal = tnp.diagonal(triangle)
    good = used & (diagonal != 0)
    upper = tnp.where(good[:, None] & good, triangle[:, :n].T, tnp.eye(n, dtype=dtype))
    weights = triangular_solve(upper, tnp.where(good, right[:n], 0)[:, None], left_side=True)[:, 0]
    return pytree.tree_map(
        lambda v, s: v + tnp.tensordot(weights, s[:n], 1, precision=_HIGHEST).astype(v.dtype), x, basis
    )


def _orthogonal(basis: Any, v: Any) -> tuple[Any, Any]:
    """Subtract from v its projections on a basis, twice, as rounding leaves much; return also what was subtracted."""
    total: Any = 0
    for _ in range(2):
        parts = pytree.tree_map(lambda s, y: tnp.matmul(_rows(s), y.ravel(), precision=_HIGHEST), basis, v)
        weights = reduce(operator.add, pytree.leaves(parts))
        v = pytree.tree_map(lambda s, y, w=weights: y - _combined(w, s, y), basis, v)
        total = total + weights
    return v, total


def _combined(weights: Any, vectors: Any, like: Any) -> Any:
    return tnp.tensordot(weights, vectors, 1, precision=_HIGHEST).astype(like.dtype)


def _rows(s: Any) -> Any:
    return tnp.conj(s.reshape(s.shape[0], -1))


def _rotation(a: Any, b: Any) -> Any:
    """Compute cosine and sine of the rotation of (a, b), b real, to (r, 0). Source: Golub & Van Loan 2013, 5.1.8."""
    length = tnp.sqrt(tnp.square(tnp.abs(a)) + tnp.square(tnp.abs(b)))
    safe = tnp.where(length == 0, 1, length).astype(a.dtype)
    return tnp.where(length == 0, tnp.stack([tnp.ones_like(a), tnp.zeros_like(a)]), tnp.stack([a / safe, b / safe]))


def _turned(v: Any, k: Any, turns: Any) -> Any:
    cosine, sine = turns[k, 0], turns[k, 1]
    first, second = v[k], v[k + 1]
    return v.at[k].set(tnp.conj(cosine) * first + sine * second).at[k + 1].set(cosine * second - sine * first)


# ---- vectors -------------------------------------------------------------------------------------------------


def _inner(x: Any, y: Any) -> Any:
    """Sum conj(x) y over all leaves."""
    parts = pytree.tree_map(lambda u, v: tnp.vdot(u, v, precision=_HIGHEST), x, y)
    return reduce(operator.add, pytree.leaves(parts))


def _norm(x: Any) -> Any:
    squares = [tnp.sum(tnp.square(tnp.abs(v))) for v in pytree.leaves(x)]
    return tnp.sqrt(reduce(operator.add, squares)) if squares else tnp.zeros(())


def _plus(x: Any, factor: Any, y: Any) -> Any:
    """Compute x + factor y, in the dtypes of x."""
    return pytree.tree_map(lambda u, v: u + (factor * v).astype(u.dtype), x, y)


def _over(v: Any, length: Any) -> Any:
    return v / tnp.where(length == 0, 1, length).astype(v.dtype)


def _bound(tol: Any, atol: Any, b: Any) -> Any:
    return tnp.maximum(tol * _norm(b), atol)
