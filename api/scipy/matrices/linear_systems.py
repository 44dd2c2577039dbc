"""Matrix factorizations and linear systems with the conventions of `scipy.linalg`.

Matrices are in the last two axes, with any batch axes before them; integers become floating point. The parameters
`overwrite_*`, `lwork` and `turbo` have no effect; neither have `check_finite` and `debug`: elements are not checked,
and nonfinite ones give nan. docs/linalg.md explains derivatives.
"""

from collections.abc import Callable
from typing import Any

from tapeless.tracer import core, dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy import decompositions, systems
from tapeless.tracer.numpy.decompositions import matrix_operand
from tapeless.tracer.numpy.promotion import array_operand, broadcast_to_shape, common_shape, promoted_inexact_dtypes
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives import factorization, linalg, spectral
from tapeless.tracer.primitives.contraction import Precision, full_matmul
from tapeless.tracer.primitives.linalg import adjoint, check_matrix, check_square, triangular_solve

# ---- Cholesky ------------------------------------------------------------------------------------------------


@one_program
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Factor a positive definite matrix: a = u^H @ u, or l @ l^H if `lower`.

    Args:
      a: [.., n, n], Hermitian; only the upper triangle is read, or the lower one if `lower`.
    Returns: u or l, [.., n, n], triangular; nan where a is not positive definite.
    Raises: ValueError if a is not a square matrix, TypeError if it is of half precision.
    """
    x = matrix_operand("cholesky", a)
    check_square("cholesky", x.aval, f"{x.aval}")
    if lower:
        return linalg.cholesky(x, symmetrize_input=False)
    return adjoint(linalg.cholesky(adjoint(x), symmetrize_input=False))


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Factor a positive definite matrix for `cho_solve`: return the result of `cholesky`, and `lower`.

    Raises: as `cholesky`.
    """
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """Solve a @ x = b, given the result of `cho_factor` for a.

    Args:
      c_and_lower: the triangular factor [.., n, n], and whether it is the lower.
      b: [.., n, m], or a vector [n]; leading axes broadcast.
    Returns: x, of the shape of b with broadcast leading axes.
    Raises: ValueError if shapes do not fit, TypeError for half precision; both operands are named.
    """
    c, lower = c_and_lower

    def solve(c: Array, b: Array) -> Array:
        first = {"transpose_a": not lower, "conjugate_a": not lower}
        second = {"transpose_a": bool(lower), "conjugate_a": bool(lower)}
        half = triangular_solve(c, b, left_side=True, lower=bool(lower), **first)
        return triangular_solve(c, half, left_side=True, lower=bool(lower), **second)

    return solve_system("cho_solve", c, b, solve)


# ---- triangular and general systems --------------------------------------------------------------------------

_TRANSPOSED = {0: (False, False), 1: (True, False), 2: (True, True), "N": (False, False), "T": (True, False)}


@one_program
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """Solve a @ x = b for a triangular matrix.

    Args:
      a: [.., n, n]; the other triangle is not read.
      b: [.., n, m], or a vector [n]; leading axes broadcast.
      trans: 0 or "N"; 1 or "T" for the transpose of a, 2 or "C" for its adjoint.
      lower: whether a is lower triangular; else it is upper triangular.
      unit_diagonal: assume ones on the diagonal, without reading it.
    Returns: x, of the shape of b with broadcast leading axes; infinite or nan if a is singular.
    Raises: ValueError if shapes do not fit or there is no such `trans`; TypeError for half precision.
    """
    if trans not in (*_TRANSPOSED, "C"):
        raise ValueError(f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', not {trans!r}.")
    transposed, conjugated = _TRANSPOSED[2 if trans == "C" else trans]

    def solve(a: Array, b: Array) -> Array:
        turned = {"transpose_a": transposed, "conjugate_a": conjugated}
        return triangular_solve(a, b, left_side=True, lower=lower, unit_diagonal=unit_diagonal, **turned)

    return solve_system("solve_triangular", a, b, solve)


@one_program
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solve a @ x = b.

    Args:
      a: [.., n, n]; leading axes broadcast with those of b.
      b: [.., n, m], or a vector [n].
      lower: the triangle that is read if `assume_a` is "pos".
      assume_a: "gen"; "sym" and "her" promise symmetry, without effect; "pos" promises that a is Hermitian and positive
        definite, and solves by its Cholesky factor.
    Returns: x, of the shape of b with broadcast leading axes; infinite or nan if a is singular or breaks the promise.
    Raises: ValueError if shapes do not fit or for another `assume_a`; TypeError for half precision.
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"solve: assume_a must be 'gen', 'sym', 'her' or 'pos', not {assume_a!r}.")
    if assume_a != "pos":
        return systems.solve(a, b)
    a, b = promoted_inexact_dtypes("solve", a, b)
    return cho_solve(cho_factor(a, lower), b)


def solve_system(name: str, a: Any, b: Any, solve: Callable[[Array, Array], Array]) -> Array:
    """Promote and check operands, broadcast leading axes, and call `solve`; b is [.., n, m], or a vector [n]."""
    x, y = (array_operand(name, v) for v in promoted_inexact_dtypes(name, a, b))
    given = f"{x.aval} and {y.aval}"
    check_square(name, x.aval, given)
    vector = y.ndim == 1
    columns = y[:, None] if vector else y
    if columns.ndim < 2 or columns.shape[-2] != x.shape[-1]:
        raise ValueError(f"{name}: the right side must be [.., n, m], or [n], with n = {x.shape[-1]}: {given}.")
    batch = common_shape(name, x.shape[:-2], columns.shape[:-2])
    found = solve(*(broadcast_to_shape(v, (*batch, *v.shape[-2:])) for v in (x, columns)))
    return found[..., 0] if vector else found


@one_program
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the inverse [.., n, n] of a matrix [.., n, n]; infinite or nan if it is singular.

    Raises: ValueError if it is not square, TypeError if it is of half precision.
    """
    return systems.inv(a)


@one_program
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the determinant [..] of a matrix [.., n, n]. Raises: as `inv`."""
    return systems.det(a)


# ---- LU ------------------------------------------------------------------------------------------------------


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """Factor a general matrix for `lu_solve`.

    Args:
      a: [.., m, n]; k is the lesser of m and n.
    Returns: lu [.., m, n], with u in its upper triangle and l below the diagonal; pivots int32[.., k]: row i was
      exchanged with row pivots[i], for each i in turn.
    Raises: ValueError if a has fewer than two axes, TypeError if it is of half precision.
    """
    factors, pivots, _ = factorization.lu(matrix_operand("lu_factor", a))
    return factors, pivots


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """Factor a general matrix: a = p @ l @ u, with partial pivoting.

    Args:
      a: [.., m, n]; k is the lesser of m and n.
      permute_l: whether to return p @ l instead of both.
    Returns: (p [.., m, m], real; l [.., m, k], with ones on its diagonal; u [.., k, n]), or (p @ l, u).
    Raises: ValueError if a has fewer than two axes, TypeError if it is of half precision.
    """
    p, lower, upper = _lu(matrix_operand("lu", a))
    if permute_l:
        return tnp.matmul(p.astype(lower.dtype), lower), upper
    return p, lower, upper


@core.compound
def _lu(x: Any) -> Any:
    factors, _, permutation = factorization.lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    p = (permutation[..., None, :] == tnp.arange(m)[:, None]).astype(dtypes.real_part_dtype(x.dtype))
    lower = tnp.tril(factors, -1)[..., :k] + tnp.eye(m, k, dtype=x.dtype)
    return p, lower, tnp.triu(factors)[..., :k, :]


# ---- QR ------------------------------------------------------------------------------------------------------


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """Factor a general matrix: a = q @ r, q unitary and r upper triangular.

    Args:
      a: [.., m, n]; k is the lesser of m and n.
      mode: "full" for q [.., m, m] and r [.., m, n]; "economic" for q [.., m, k] and r [.., k, n]; "r" for a tuple of
        r [.., m, n] alone.
      pivoting: permute columns, a[:, p] = q @ r, so that the diagonal of r descends in absolute value.
    Returns: (q, r), or (r,); followed by p int32[.., n] if `pivoting`.
    Raises: ValueError if a has fewer than two axes or there is no such mode, TypeError if it is of half precision.
    """
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"qr: mode must be 'full', 'economic' or 'r', not {mode!r}.")
    x = matrix_operand("qr", a)
    found = factorization.qr(x, pivoting=bool(pivoting), full_matrices=mode != "economic")
    return found[1:] if mode == "r" else found


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    """Multiply by the factor q of the economic `qr` of a.

    Args:
      a: [.., m, n]; k is the lesser of m and n.
      c: [.., k, p] or [k] for q @ c, if mode is "left"; [.., p, m] or [m] for c @ q, if it is "right".
      conjugate: multiply by the conjugate of q.
      pivoting: as for `qr`.
    Returns: the product [.., m, p] or [.., p, k], without the axis that c lacks; r [.., k, n]; and p if `pivoting`.
    Raises: ValueError if shapes do not fit, both named, or there is no such mode; TypeError for half precision.
    """
    x, y = (array_operand("qr_multiply", v) for v in promoted_inexact_dtypes("qr_multiply", a, c))
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'left' or 'right', not {mode!r}.")
    check_matrix("qr_multiply", x.aval)
    q, *others = factorization.qr(x, pivoting=bool(pivoting), full_matrices=False)
    q = tnp.conj(q) if conjugate else q
    first, second, rows = (q, y, q.shape[-1]) if mode == "left" else (y, q, q.shape[-2])
    if not y.ndim or y.shape[-2 if mode == "left" and y.ndim > 1 else -1] != rows:
        side = "rows" if mode == "left" else "columns"
        raise ValueError(f"qr_multiply: c must have {rows} {side} for mode={mode!r}: {x.aval} and {y.aval}.")
    return tnp.matmul(first, second, precision=Precision.HIGHEST), *others


# ---- spectra -------------------------------------------------------------------------------------------------


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Compute singular values and vectors: a = u * s @ vh; a plain tuple, or s alone.

    Args, Raises: as for `tapeless.numpy.linalg.svd`; NotImplementedError for another `lapack_driver`.
    """
    if lapack_driver != "gesdd":
        raise NotImplementedError(f"svd: lapack_driver={lapack_driver!r}: there is 'gesdd' only.")
    found = decompositions.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


@one_program
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Compute eigenvalues and eigenvectors of a Hermitian matrix, or of a generalized problem.

    Args:
      a: [.., n, n]; the mean of it and its adjoint is taken, so that gradients are Hermitian too.
      b: [.., n, n], positive definite, for a generalized problem.
      lower: has no effect, as both triangles are read.
      eigvals_only: whether to return the eigenvalues alone.
      eigvals: must be None; slice the result for a part.
      type: of the generalized problem: 1 for a @ v = b @ v * w, 2 for a @ b @ v = v * w, 3 for b @ a @ v = v * w.
    Returns: (w [.., n], real, ascending; v [.., n, n], in columns, with v^H @ b @ v = 1, or of b^-1 for type 3), or w.
    Raises: ValueError if a is not a square matrix, shapes differ or there is no such type; TypeError for half
      precision; NotImplementedError for `eigvals`.
    Source: LAPACK, hegst.
    """
    if eigvals is not None:
        raise NotImplementedError(f"eigh: eigvals={eigvals}: all are computed. Slice the result.")
    if type not in (1, 2, 3):
        raise ValueError(f"eigh: type must be 1, 2 or 3, not {type!r}.")
    if b is None:
        x = matrix_operand("eigh", a)
        if eigvals_only:
            return spectral.eigvalsh(x)
        v, w = spectral.eigh(x)
        return w, v
    x, y = (array_operand("eigh", v) for v in promoted_inexact_dtypes("eigh", a, b))
    check_square("eigh", x.aval, f"{x.aval} and {y.aval}")
    if x.shape != y.shape:
        raise ValueError(f"eigh: a and b must have one shape: {x.aval} and {y.aval}.")
    found = _generalized(x, y, type=type, vectors=not eigvals_only)
    return found[0] if eigvals_only else found


@core.compound
def _generalized(a: Any, b: Any, *, type: int, vectors: bool) -> Any:
    """Reduce to a standard problem: with b = f f^H, of f^-1 a f^-H, or f^H a f; v = f^-H u, or f u."""
    factor, a = linalg.cholesky(b), spectral.hermitian_part(a)
    if type == 1:
        half = triangular_solve(factor, a, left_side=True, lower=True)
        reduced = triangular_solve(factor, half, lower=True, transpose_a=True, conjugate_a=True)
    else:
        reduced = full_matmul(adjoint(factor), full_matmul(a, factor))
    if not vectors:
        return (spectral.eigvalsh(reduced),)
    u, w = spectral.eigh(reduced)
    if type == 3:
        return w, full_matmul(factor, u)
    return w, triangular_solve(factor, u, left_side=True, lower=True, transpose_a=True, conjugate_a=True)


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """Compute eigenvalues and eigenvectors of a Hermitian tridiagonal matrix, by `eigh` of the full matrix.

    Args:
      d: [n], the diagonal; imaginary parts are not read.
      e: [n - 1], the diagonal above it.
      eigvals_only: whether to return the eigenvalues alone.
      select: "a" for all, or "i" for those with positions from select_range[0] to select_range[1], inclusive.
      tol: has no effect: values have the precision of the dtype.
      key: has no effect, as nothing is drawn at random.
    Returns: (w [k], real, ascending; v [n, k], in columns), or w.
    Raises: ValueError if shapes do not fit, or for another `select` or a range out of bounds; TypeError for dtypes
      that differ or half precision; NotImplementedError for select="v", whose result has no static shape.
    """
    x, y = matrix_operand("eigh_tridiagonal", d), matrix_operand("eigh_tridiagonal", e)
    if x.dtype != y.dtype:
        raise TypeError(f"eigh_tridiagonal: the diagonals must have one dtype: {x.aval} and {y.aval}.")
    if x.ndim != 1 or y.shape != (max(x.size - 1, 0),):
        raise ValueError(f"eigh_tridiagonal: diagonals [n] and [n - 1], not {x.aval} and {y.aval}.")
    first, last = _selected(x.size, select, select_range)
    if dtypes.is_complex(x.dtype):
        x = tnp.real(x).astype(x.dtype)
    matrix = tnp.diag(x) + tnp.diag(y, 1) + tnp.diag(tnp.conj(y), -1) if x.size else tnp.zeros((0, 0), x.dtype)
    if eigvals_only:
        return spectral.eigvalsh(matrix)[first:last]
    v, w = spectral.eigh(matrix)
    return w[first:last], v[:, first:last]


def _selected(n: int, select: str, span: Any) -> tuple[int, int]:
    if select == "a":
        return 0, n
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal: how many values are in a range is not known: take all of them.")
    if select != "i" or span is None:
        raise ValueError(f"eigh_tridiagonal: select must be 'a', or 'i' with select_range, not {select!r} and {span}.")
    first, last = (int(v) for v in span)
    if not 0 <= first <= last < n:
        raise ValueError(f"eigh_tridiagonal: select_range {span} is not within the {n} eigenvalues.")
    return first, last + 1


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Compute the polar decomposition: a factor with orthonormal columns or rows, and a positive semidefinite one.

    Args:
      a: [.., m, n].
      side: "right" for a = u @ p, "left" for a = p @ u.
      method: "qdwh" or "svd": by singular values in either case.
      eps, max_iterations: must be None: nothing is iterated.
    Returns: (u [.., m, n], p [.., n, n] or [.., m, m], Hermitian).
    Raises: ValueError if a has fewer than two axes, or for another side or method; TypeError if it is of half
      precision; NotImplementedError for `eps` or `max_iterations`.
    Source: Higham 1986, "Computing the polar decomposition".
    """
    if side not in ("left", "right") or method not in ("qdwh", "svd"):
        raise ValueError(f"polar: side 'left' or 'right', method 'qdwh' or 'svd', not {side!r} and {method!r}.")
    if eps is not None or max_iterations is not None:
        raise NotImplementedError("polar: singular values are computed at once: leave eps and max_iterations None.")
    return _polar(matrix_operand("polar", a), right=side == "right")


@core.compound
def _polar(x: Any, *, right: bool) -> Any:
    u, s, vh = spectral.svd(x, full_matrices=False)
    vectors = adjoint(vh) if right else u
    scaled = lax.mul(vectors, broadcast_to_shape(s.astype(x.dtype)[..., None, :], vectors.shape))
    return full_matmul(u, vh), full_matmul(scaled, adjoint(vectors))
