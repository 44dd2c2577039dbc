"""Schur's form of matrices, and its uses: square roots, other functions, Sylvester's equation.

Source: Golub & Van Loan 2013, chapters 7.6 and 9; Higham 2008, "Functions of matrices".
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapeless.batch.vmap import vectorize
from tapeless.compile.jit import jit
from tapeless.control_flow.branches_and_loops import cond, fori_loop
from tapeless.control_flow.scan import scan
from tapeless.custom.jvp import custom_jvp
from tapeless.custom.linear_solves import custom_linear_solve
from tapeless.lax.householder import householder_product
from tapeless.lax.matrix_functions import lu_pivots_to_permutation
from tapeless.scipy.matrices.linear_systems import solve_system
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy import triangles
from tapeless.tracer.numpy.decompositions import matrix_operand
from tapeless.tracer.numpy.norms import norm
from tapeless.tracer.numpy.promotion import array_operand, as_weak_as, cast, promoted_inexact_dtypes, strong
from tapeless.tracer.primitives import spectral
from tapeless.tracer.primitives.contraction import Precision
from tapeless.tracer.primitives.elementwise import stop_gradient
from tapeless.tracer.primitives.linalg import adjoint, check_square, triangular_solve

# ---- forms ---------------------------------------------------------------------------------------------------


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Reduce a matrix to Schur's form: a = z @ t @ z^H, z unitary.

    Args:
      a: [.., n, n].
      output: "complex" for a triangular t also if a is real; "real" keeps the dtype of a, and pairs of conjugate
        eigenvalues are 2 x 2 blocks on the diagonal.
    Returns: (t, z), each [.., n, n]. They have no derivative.
    Raises: ValueError if a is not a square matrix or there is no such output, TypeError if it is of half precision.
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be 'real' or 'complex', not {output!r}.")
    x = matrix_operand("schur", a)
    t, z = spectral.schur(_complex(x) if output == "complex" else x)
    return t, z


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Make the real form of Schur complex: t triangular also where eigenvalues are not real.

    Args:
      T, Z: [.., n, n], as of `schur`.
    Returns: (t, z), complex, with z @ t @ z^H = Z @ T @ Z^H.
    Raises: ValueError if these are no square matrices of one size, TypeError if they are of half precision.
    Source: Golub & Van Loan 2013, section 7.4; SciPy.
    """
    t, z = (_complex(array_operand("rsf2csf", v)) for v in promoted_inexact_dtypes("rsf2csf", T, Z))
    check_square("rsf2csf", t.aval, f"{t.aval} and {z.aval}")
    check_square("rsf2csf", z.aval, f"{t.aval} and {z.aval}")
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(f"rsf2csf: T and Z must have one size: {t.aval} and {z.aval}.")
    new_t, new_z = _triangular(strong(t), strong(z))
    return as_weak_as(new_t, t, z), as_weak_as(new_z, t, z)


@jit
@partial(vectorize, signature="(n,n),(n,n)->(n,n),(n,n)")
def _triangular(t: Any, z: Any) -> Any:
    n = t.shape[0]
    eps = float(dtypes.finfo(t.dtype).eps)

    def eliminate(k: Any, tz: Any) -> Any:
        t, z = tz
        m = n - k
        small = tnp.abs(t[m, m - 1]) <= eps * (tnp.abs(t[m - 1, m - 1]) + tnp.abs(t[m, m]))
        t, z = cond(small, lambda m, t, z: (t, z), _rotated, m, t, z)
        return t.at[m, m - 1].set(0), z

    return fori_loop(1, n, eliminate, (t, z)) if n > 1 else (t, z)


def _rotated(m: Any, t: Any, z: Any) -> Any:
    """Turn rows and columns m - 1 and m so that the block there is triangular."""
    a, b, c, d = t[m - 1, m - 1], t[m - 1, m], t[m, m - 1], t[m, m]
    half = (a - d) / 2
    mu = half + tnp.sqrt(half * half + b * c)  # an eigenvalue of the block, less d
    r = tnp.sqrt(tnp.square(tnp.abs(mu)) + tnp.square(tnp.abs(c))).astype(t.dtype)
    cosine, sine = mu / r, c / r
    turn = tnp.stack([tnp.stack([tnp.conj(cosine), sine]), tnp.stack([-sine, cosine])])
    pair = tnp.stack([m - 1, m])
    t = t.at[pair].set(_product(turn, t[pair]))
    t = t.at[:, pair].set(_product(t[:, pair], adjoint(turn)))
    return t, z.at[:, pair].set(_product(z[:, pair], adjoint(turn)))


@one_program
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """Reduce a matrix to Hessenberg form, which is 0 below its first subdiagonal: a = q @ h @ q^H, q unitary.

    Args:
      a: [.., n, n].
      calc_q: whether q is wanted.
    Returns: h, or (h, q); each [.., n, n]. They have no derivative.
    Raises: ValueError if a is not a square matrix, TypeError if it is of half precision.
    """
    x = matrix_operand("hessenberg", a)
    check_square("hessenberg", x.aval, f"{x.aval}")
    if not x.shape[-1]:
        return (x, x) if calc_q else x
    form, taus = spectral.hessenberg(x)
    h = tnp.triu(form, -1)
    if not calc_q:
        return h
    inner = householder_product(form[..., 1:, :-1], taus)
    beside = [(0, 0)] * (x.ndim - 2) + [(1, 0)] * 2
    first = np.zeros(x.shape[-2:], bool)
    first[0, 0] = True
    return h, tnp.where(first, 1, tnp.pad(inner, beside))


# ---- functions -----------------------------------------------------------------------------------------------


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Compute the principal square root of a matrix. Its derivative solves Sylvester's equation.

    Args:
      A: [.., n, n].
      blocksize: 1.
    Returns: [.., n, n], complex; not finite if A is singular and has no root.
    Raises: ValueError if A is not a square matrix, TypeError if it is of half precision; NotImplementedError for
      blocks.
    Source: Björck & Hammarling 1983, "A Schur method for the square root of a matrix".
    """
    if blocksize != 1:
        raise NotImplementedError(f"sqrtm: columns are computed one by one: blocksize must be 1, not {blocksize}.")
    x = matrix_operand("sqrtm", A)
    check_square("sqrtm", x.aval, f"{x.aval}")
    return _square_root(_complex(x)) if x.size else _complex(x)


@custom_jvp
def _square_root(x: Any) -> Any:
    return _sqrtm(x)


@_square_root.defjvp
def _square_root_jvp(primals: Any, tangents: Any) -> Any:
    root = _square_root(*primals)
    return root, solve_sylvester(root, root, tangents[0])


@jit
@partial(vectorize, signature="(n,n)->(n,n)")
def _sqrtm(x: Any) -> Any:
    t, z = spectral.schur(x)
    roots = tnp.sqrt(tnp.diagonal(t))
    tiny = float(dtypes.finfo(t.dtype).tiny)  # instead of 0, so that 0 divided by it is 0

    def column(j: Any, u: Any) -> Any:
        """Compute the first rows of u^2 = t: (u + u_jj) u_j = t_j, of which rows below j are not read."""
        above = np.arange(t.shape[0]) < j
        diagonal = tnp.where(above, roots + roots[j], 1)
        matrix = u - tnp.diag(tnp.diagonal(u)) + tnp.diag(tnp.where(diagonal == 0, tiny, diagonal))
        found = _solve_upper(matrix, tnp.where(above, t[:, j], 0))
        found = tnp.where((diagonal == 0) & (found != 0), np.inf, found)
        return u.at[:, j].set(tnp.where(above, found, u[:, j]))

    root = fori_loop(0, t.shape[0], column, tnp.diag(roots))
    return _product(_product(z, root), adjoint(z))


def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """Compute a function of a matrix, given the function of numbers.

    Args:
      A: [.., n, n].
      func: maps complex numbers [n] to [n].
      disp: False to get an estimate of the error, too.
    Returns: [.., n, n], complex; nan where equal eigenvalues belong together, for then the derivatives of the function
      are missing. Or (that, [..], an estimate of its error in the 1-norm, relative). They have no derivative.
    Raises: ValueError if A is not a square matrix, TypeError if it is of half precision.
    Source: Parlett 1976, "A recurrence among the elements of functions of triangular matrices"; SciPy.
    """
    x = matrix_operand("funm", A)
    check_square("funm", x.aval, f"{x.aval}")
    if not x.shape[-1]:
        return _complex(x) if disp else (_complex(x), tnp.zeros(x.shape[:-2]))
    found, error = vectorize(partial(_function_of_one, func), signature="(n,n)->(n,n),()")(_complex(x))
    return found if disp else (found, error)


def _function_of_one(func: Callable[[Any], Any], x: Any) -> Any:
    t, z = spectral.schur(x)
    n = t.shape[0]
    eigenvalues, places = tnp.diagonal(t), np.arange(n)
    gaps = tnp.abs(eigenvalues[:, None] - eigenvalues)
    coupled = tnp.cumsum(tnp.where(places[:, None] < places, tnp.abs(t), 0), axis=1) > 0

    def column(j: Any, f: Any) -> Any:
        """Solve f t = t f above the diagonal: (t - t_jj) f_j = (f - f_jj) t_j, of which rows below j are not read."""
        above = places < j
        right = _product(f, tnp.where(above, t[:, j], 0)[:, None])[:, 0] - t[:, j] * f[j, j]
        diagonal = tnp.where(above, eigenvalues - eigenvalues[j], 1)
        matrix = t - tnp.diag(eigenvalues) + tnp.diag(tnp.where(diagonal == 0, 1, diagonal))
        upper = tnp.where(above[:, None] & above, matrix, tnp.eye(n, dtype=t.dtype))
        found = _solve_upper(upper, tnp.where(above, right, 0))
        found = tnp.where((diagonal == 0) & coupled[:, j], np.nan, found)
        return f.at[:, j].set(tnp.where(above, found, f[:, j]))

    values = tnp.asarray(func(eigenvalues)).astype(t.dtype)
    f = fori_loop(0, n, column, tnp.diag(values))
    eps = float(dtypes.finfo(t.dtype).eps)
    least = tnp.min(tnp.where(places[:, None] < places, gaps, tnp.inf), initial=tnp.abs(t[0, 0]))
    estimate = eps / tnp.where(least == 0, eps, least) * norm(tnp.triu(f, 1), 1)
    estimate = tnp.where(tnp.isfinite(estimate), tnp.clip(estimate, eps, 1), np.inf)
    return _product(_product(z, f), adjoint(z)), estimate


# ---- equations -----------------------------------------------------------------------------------------------


def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """Solve Sylvester's equation A @ X + X @ B = C.

    Args:
      A: [.., m, m].
      B: [.., n, n].
      C: [.., m, n]; leading axes broadcast.
      method: "schur" or "eigen": by Schur's forms in either case.
      tol: the result is nan if the sum of an eigenvalue of A and one of B is less in size.
    Returns: [.., m, n], real if all are.
    Raises: ValueError if shapes do not fit or there is no such method, TypeError for half precision.
    Source: Bartels & Stewart 1972, "Solution of the matrix equation AX + XB = C".
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"solve_sylvester: method must be 'schur' or 'eigen', not {method!r}.")
    a, b, c = (array_operand("solve_sylvester", v) for v in promoted_inexact_dtypes("solve_sylvester", A, B, C))
    given = f"{a.aval}, {b.aval} and {c.aval}"
    for x in (a, b):
        check_square("solve_sylvester", x.aval, given)
    if c.ndim < 2 or c.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise ValueError(f"solve_sylvester: A [.., m, m], B [.., n, n] and C [.., m, n], not {given}.")
    return vectorize(partial(_sylvester, tol=float(tol)), signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)


def _sylvester(a: Any, b: Any, c: Any, *, tol: float) -> Any:
    def apply(x: Any) -> Any:
        return _product(a, x) + _product(x, b)

    def solve(_: Any, right: Any) -> Any:
        return _by_schur(stop_gradient(a), stop_gradient(b), right, tol)

    def solve_transposed(_: Any, right: Any) -> Any:
        return _by_schur(stop_gradient(a).T, stop_gradient(b).T, right, tol)

    return custom_linear_solve(apply, c, solve, solve_transposed)


def _by_schur(a: Any, b: Any, c: Any, tol: float) -> Any:
    """Solve in triangular form, column by column: (r + s_jj) y_j = f_j - y s_j, y being what is known before j."""
    if not c.size:
        return c
    (r, u), (s, v) = (spectral.schur(_complex(x)) for x in (a, b))
    f = _product(_product(adjoint(u), _complex(c)), v)
    identity = tnp.eye(r.shape[0], dtype=r.dtype)

    def column(y: Any, j: Any) -> tuple[Any, None]:
        right = f[:, j] - _product(y, s[:, j][:, None])[:, 0]
        return y.at[:, j].set(_solve_upper(r + s[j, j] * identity, right)), None

    y, _ = scan(column, tnp.zeros_like(f), np.arange(f.shape[1], dtype=np.int32))
    x = _product(_product(u, y), adjoint(v))
    x = x if dtypes.is_complex(c.dtype) else tnp.real(x)
    sums = tnp.abs(tnp.diagonal(r)[:, None] + tnp.diagonal(s))
    return tnp.where(tnp.any(sums < tol), np.nan, x)


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve a @ x = b, given what `lu_factor` made of a.

    Args:
      lu_and_piv: factors [.., n, n], and exchanges int32[.., n].
      b: [.., n, m], or a vector [n]; leading axes broadcast.
      trans: 0; 1 for the transpose of a, 2 for its adjoint.
    Returns: x, of the shape of b but for the leading axes; infinite or nan if a is singular.
    Raises: ValueError if shapes do not fit or there is no such `trans`; TypeError for half precision.
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, not {trans!r}.")
    factors, exchanges = lu_and_piv
    x = matrix_operand("lu_solve", factors)
    check_square("lu_solve", x.aval, f"{x.aval}")
    permutation = lu_pivots_to_permutation(tnp.asarray(exchanges), x.shape[-1])

    def solve(factors: Array, right: Array) -> Array:
        rows = tnp.broadcast_to(permutation, factors.shape[:-1])
        if trans == 2:
            return tnp.conj(triangles.lu_solve(factors, rows, tnp.conj(right), transposed=True))
        return triangles.lu_solve(factors, rows, right, transposed=trans == 1)

    return solve_system("lu_solve", x, b, solve)


# ---- parts ---------------------------------------------------------------------------------------------------


def _solve_upper(matrix: Any, vector: Any) -> Any:
    return triangular_solve(matrix, vector[:, None], left_side=True)[:, 0]


def _complex(x: Array) -> Array:
    return cast(x, dtypes.complex_of(x.dtype), x.aval.weak_type)


def _product(x: Any, y: Any) -> Any:
    return tnp.matmul(x, y, precision=Precision.HIGHEST)
