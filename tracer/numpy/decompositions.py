"""Matrix decompositions as `numpy.linalg` has them: of the last two axes; integers become floating point.

docs/linalg.md explains derivatives, also where eigenvalues or singular values are equal or 0.
"""

from typing import Any, NamedTuple

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.arithmetic import select
from tapeless.tracer.numpy.promotion import array_operand, inexact
from tapeless.tracer.numpy.shaping import matrix_transpose
from tapeless.tracer.numpy.sorting import argsort
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives import factorization, linalg, spectral
from tapeless.tracer.primitives.linalg import adjoint
from tapeless.tracer.primitives.shape import broadcast_in_dim, full_like, rev
from tapeless.tracer.primitives.sorting import sort, take_along_axis


class EigResult(NamedTuple):
    """Eigenvalues [.., n], in no order, and eigenvectors [.., n, n], in columns; both complex."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues [.., n], ascending, and eigenvectors [.., n, n], in columns."""

    eigenvalues: Array
    eigenvectors: Array


class SVDResult(NamedTuple):
    """Left singular vectors in columns, descending singular values, and right singular vectors, conjugated, in rows."""

    U: Array
    S: Array
    Vh: Array


class QRResult(NamedTuple):
    """The unitary matrix Q and the upper triangular matrix R."""

    Q: Array
    R: Array


def matrix_operand(name: str, a: ArrayLike) -> Array:
    """Convert `a` to an array of floating point or complex numbers. Raises: TypeError if it is no array of numbers."""
    return array_operand(name, inexact(name, a))


@one_program
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Compute the lower triangular L with a = L @ L^H, or its adjoint if `upper`.

    Args:
      a: [.., n, n], Hermitian and positive definite.
      symmetrize_input: take the mean of a and its adjoint first, so that gradients are Hermitian too.
    Returns: [.., n, n], of the dtype of a; nan where a is not positive definite.
    Raises: ValueError if a is not a square matrix, TypeError if it is of half precision.
    """
    factor = linalg.cholesky(matrix_operand("cholesky", a), symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


def eig(a: ArrayLike) -> EigResult:
    """Compute eigenvalues and right eigenvectors of a general matrix: a @ v = v * w.

    Args:
      a: [.., n, n].
    Returns: (w [.., n], in no order; v [.., n, n], columns of length 1 whose largest element is real), a named tuple:
      complex, also where NumPy's are real since all imaginary parts are 0.
    Raises: ValueError if a is not a square matrix, TypeError if it is of half precision.
    """
    w, v = spectral.eig(matrix_operand("eig", a), compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return EigResult(w, v)


def eigvals(a: ArrayLike) -> Array:
    """Compute the eigenvalues of a general matrix, faster than `eig`.

    Args:
      a: [.., n, n].
    Returns: [.., n], complex, in no order.
    Raises: ValueError if a is not a square matrix, TypeError if it is of half precision.
    """
    x = matrix_operand("eigvals", a)
    return spectral.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@one_program
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Compute eigenvalues and eigenvectors of a Hermitian matrix: a @ v = v * w.

    Args:
      a: [.., n, n].
      UPLO: "L" or "U", the triangle that is read if not `symmetrize_input`; None is "L".
      symmetrize_input: take the mean of a and its adjoint first, so that gradients are Hermitian too.
    Returns: (w [.., n], real, ascending; v [.., n, n], unitary), a named tuple.
    Raises: ValueError if a is not a square matrix or there is no such triangle, TypeError if it is of half precision.
    """
    lower = _is_lower("eigh", UPLO)
    v, w = spectral.eigh(matrix_operand("eigh", a), lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@one_program
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Compute the eigenvalues of a Hermitian matrix, faster than `eigh`.

    Args:
      a: [.., n, n], Hermitian.
      UPLO, symmetrize_input: as for `eigh`.
    Returns: [.., n], real, ascending.
    Raises: ValueError if a is not a square matrix or there is no such triangle, TypeError if it is of half precision.
    """
    lower = _is_lower("eigvalsh", UPLO)
    return spectral.eigvalsh(matrix_operand("eigvalsh", a), lower=lower, symmetrize_input=symmetrize_input)


def _is_lower(name: str, triangle: Any) -> bool:
    if triangle not in (None, "L", "U"):
        raise ValueError(f"{name}: UPLO must be 'L', 'U' or None, not {triangle!r}.")
    return triangle != "U"


@one_program
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Compute singular values and vectors: a = U * S @ Vh.

    Args:
      a: [.., m, n]; k is the lesser of m and n.
      full_matrices: complete the vectors to bases: U [.., m, m], Vh [.., n, n]; else U [.., m, k], Vh [.., k, n]. Full
        matrices have derivatives only if m is n.
      compute_uv: whether to return the vectors; else the result is S alone.
      hermitian: a is Hermitian, which is not checked: its eigenvalues and eigenvectors are computed.
      subset_by_index: (start, end), which singular values to return, if not `full_matrices`. All are computed; with
        `hermitian` all are returned.
    Returns: (U, S [.., k], Vh), a named tuple, or S; S is real, descending and not negative.
    Raises: ValueError if a has fewer than two axes, or is not square if `hermitian`; TypeError if it is of half
      precision.
    """
    x = matrix_operand("svd", a)
    if hermitian:
        return _hermitian_svd(x, compute_uv)
    found = spectral.svd(x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
    return SVDResult(*found) if compute_uv else found


def _hermitian_svd(x: Array, compute_uv: bool) -> Any:
    if not compute_uv:
        sizes = lax.abs(spectral.eigvalsh(x))
        return rev(sort(sizes), (sizes.ndim - 1,))
    v, w = spectral.eigh(x)
    places = rev(argsort(lax.abs(w)), (w.ndim - 1,))  # equal values in NumPy's order
    w = take_along_axis(w, places, -1)
    v = take_along_axis(v, _in_rows(places, v), -1)
    signs = select(lax.lt(w, 0.0), full_like(w, -1.0), 1.0)
    turned = lax.mul(v, _in_rows(lax.convert_element_type(signs, v.dtype), v))
    return SVDResult(v, lax.abs(w), adjoint(turned))


def _in_rows(values: Array, like: Array) -> Array:
    """Broadcast values [.., n] to the matrices of `like`: every row is a copy."""
    n = like.ndim
    return broadcast_in_dim(values, like.shape, (*range(n - 2), n - 1))


@one_program
def svdvals(x: ArrayLike, /) -> Array:
    """Compute the singular values, without the vectors.

    Sums and maxima of them have derivatives also where values are equal; the derivative of a value that is 0 is 0.

    Args:
      x: [.., m, n]; k is the lesser of m and n.
    Returns: [.., k], real, descending, not negative.
    Raises: ValueError if x has fewer than two axes, TypeError if it is of half precision.
    """
    return spectral.svd(matrix_operand("svdvals", x), compute_uv=False)


@one_program
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Decompose a = Q @ R, with a unitary Q and an upper triangular R.

    Args:
      a: [.., m, n]; k is the lesser of m and n.
      mode: "reduced" for Q [.., m, k] and R [.., k, n]; "complete" for Q [.., m, m] and R [.., m, n]; "r" for R
        [.., k, n] alone; "raw" for the Householder reflections that `lax.linalg.ormqr` takes, transposed, [.., n, m],
        and their factors, [.., k], without derivatives.
    Returns: (Q, R), a named tuple, or R, or a pair.
    Raises: ValueError if a has fewer than two axes or there is no such mode, TypeError if it is of half precision.
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete', 'r' or 'raw', not {mode!r}.")
    if mode == "raw":
        packed, taus = factorization.geqrf(matrix_operand("qr", a))
        return matrix_transpose(packed), taus
    q, r = factorization.qr(matrix_operand("qr", a), full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)
