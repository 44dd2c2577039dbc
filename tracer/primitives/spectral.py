"""Eigenvalues of Hermitian and of general matrices, singular values, and condensed forms, for batches of matrices."""

import operator
from enum import Enum
from typing import Any, Final

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.elementwise import add, mul
from tapeless.tracer.primitives.linalg import adjoint, check_matrix, check_square
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.shape import slice_in_dim
from tapeless.tracer.types import ShapedArray, aval_of


class EigImplementation(Enum):
    """Libraries with eigenvalues of general matrices, under JAX's names: there is LAPACK alone."""

    LAPACK = "lapack"
    CUSOLVER = "cusolver"
    MAGMA = "magma"


class EighImplementation(Enum):
    """Algorithms for eigenvalues of Hermitian matrices, under JAX's names: LAPACK has QR alone."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(Enum):
    """Algorithms for singular values, under JAX's names: LAPACK has divide and conquer, the default, and QR."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


# ---- eigenvalues ---------------------------------------------------------------------------------------------


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Compute eigenvectors and eigenvalues of a Hermitian matrix, x @ v = v * w.

    Args:
      x: [.., n, n], floating point of 32 or 64 bits, or complex.
      lower: which triangle is read; the other, and the imaginary part of the diagonal, is not.
      symmetrize_input: take the mean of x and its adjoint first, so that gradients are Hermitian too.
      sort_eigenvalues: they are sorted in any case.
      subset_by_index: (start, end), the range of eigenvalues to return, from the least on. All are computed.
      implementation: None or EighImplementation.QR.
    Returns: v [.., n, k], dtype of x, its columns the eigenvectors; w [.., k], real, ascending; k is n, or end - start.
      nan where the iteration fails, as with nan in x.
    Raises: TypeError if x has another dtype; ValueError if it is not a square matrix, or for a range that it does
      not have; NotImplementedError for another implementation.
    Source: LAPACK, syevd and heevd. Derivatives, also where eigenvalues are equal: docs/linalg.md.
    """
    aval = aval_of(x)
    check_square("eigh", aval, f"{aval}")
    start, end = _subset("eigh", aval.shape[-1], subset_by_index)
    _check_choice("eigh", "implementation", implementation, (None, EighImplementation.QR))
    v, w = eigh_p.bind(hermitian_part(x) if symmetrize_input else x, lower=bool(lower), compute_v=True)
    return slice_in_dim(v, start, end, axis=-1), slice_in_dim(w, start, end, axis=-1)


def eigvalsh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True) -> Array:
    """Compute the eigenvalues [.., n] of a Hermitian matrix [.., n, n], as `eigh` does, without the eigenvectors."""
    check_square("eigvalsh", aval_of(x), f"{aval_of(x)}")
    return eigh_p.bind(hermitian_part(x) if symmetrize_input else x, lower=bool(lower), compute_v=False)[0]


def hermitian_part(x: ArrayLike) -> Array:
    """Compute the mean of x [.., n, n] and its adjoint."""
    return mul(add(x, adjoint(x)), constant(0.5, aval_of(x).update(shape=())))


def _eigh_type(x: ShapedArray, *, lower: bool, compute_v: bool) -> tuple[ShapedArray, ...]:
    check_square("eigh", x, f"{x}")
    w = _real(x, x.shape[:-1])
    return (x, w) if compute_v else (w,)


eigh_p: Final = Primitive("eigh", _eigh_type)

# ---- eigenvalues of general matrices -------------------------------------------------------------------------


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
) -> list[Array]:
    """Compute eigenvalues and eigenvectors of a general matrix: vl^H @ x = w vl^H, x @ vr = vr * w.

    Args:
      x: [.., n, n], floating point of 32 or 64 bits, or complex.
      compute_left_eigenvectors, compute_right_eigenvectors: whether the vectors are returned.
      enable_eigvec_derivs: let the vectors be differentiated: promises that eigenvalues differ.
      implementation: None or EigImplementation.LAPACK.
    Returns: w [.., n], in no order; vl [.., n, n] and vr [.., n, n] if they are to be computed, in columns of length 1
      whose largest element is real. All complex; nan where the iteration fails, as with nan in x.
    Raises: TypeError if x has another dtype, ValueError if it is not a square matrix, NotImplementedError for
      another implementation.
    Source: LAPACK, geev. Derivatives, also where eigenvalues are equal: docs/linalg.md.
    """
    aval = aval_of(x)
    check_square("eig", aval, f"{aval}")
    _check_choice("eig", "implementation", implementation, (None, EigImplementation.LAPACK))
    left, right = bool(compute_left_eigenvectors), bool(compute_right_eigenvectors)
    return list(eig_p.bind(x, left=left, right=right, vector_derivatives=bool(enable_eigvec_derivs)))


def _eig_type(x: ShapedArray, *, left: bool, right: bool, vector_derivatives: bool) -> tuple[ShapedArray, ...]:
    check_square("eig", x, f"{x}")
    vectors = x.update(dtype=dtypes.complex_of(x.dtype))
    return vectors.update(shape=x.shape[:-1]), *[vectors] * (left + right)


eig_p: Final = Primitive("eig", _eig_type)

# ---- singular values -----------------------------------------------------------------------------------------


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Compute singular values and vectors: x = u * s @ vh, u and vh unitary, s descending and not negative.

    Args:
      x: [.., m, n], floating point of 32 or 64 bits, or complex; k is the lesser of m and n.
      full_matrices: complete the vectors to bases. Such have derivatives only where m is n.
      compute_uv: whether the vectors are returned.
      subset_by_index: (start, end), the range of singular values to return, from the greatest on; k is their number
        then. All are computed.
      algorithm: None, or one of DEFAULT, DIVIDE_AND_CONQUER, QR of SvdAlgorithm.
    Returns: (u, s, vh), of [.., m, k], [.., k] and [.., k, n], or [.., m, m] and [.., n, n] for vectors if
      `full_matrices`; or s. nan where the iteration fails, as with nan in x.
    Raises: TypeError if x has another dtype; ValueError if it has fewer than two axes, for a range that it does not
      have, or for a part of the range with `full_matrices`; NotImplementedError for another algorithm.
    Source: LAPACK, gesdd and gesvd. Derivatives, also where singular values are equal or 0: docs/linalg.md.
    """
    aval = aval_of(x)
    check_matrix("svd", aval)
    k = min(aval.shape[-2:])
    start, end = _subset("svd", k, subset_by_index)
    if full_matrices and (start, end) != (0, k):
        raise ValueError(f"svd: subset_by_index={subset_by_index} of {aval} leaves no bases: pass full_matrices=False.")
    _check_choice("svd", "algorithm", algorithm, (None, *_ROUTINES))
    routine = _ROUTINES[algorithm or SvdAlgorithm.DEFAULT]
    full = bool(full_matrices and compute_uv)
    found = svd_p.bind(x, full_matrices=full, compute_uv=bool(compute_uv), routine=routine)
    if not compute_uv:
        return slice_in_dim(found[0], start, end, axis=-1)
    if (start, end) == (0, k):
        return found
    return tuple(slice_in_dim(y, start, end, axis=axis) for y, axis in zip(found, (-1, -1, -2), strict=True))


_ROUTINES = {SvdAlgorithm.DEFAULT: "gesdd", SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd", SvdAlgorithm.QR: "gesvd"}


def _svd_type(x: ShapedArray, *, full_matrices: bool, compute_uv: bool, routine: str) -> tuple[ShapedArray, ...]:
    check_matrix("svd", x)
    *batch, m, n = x.shape
    k = min(m, n)
    s = _real(x, (*batch, k))
    if not compute_uv:
        return (s,)
    p, q = (m, n) if full_matrices else (k, k)
    return x.update(shape=(*batch, m, p)), s, x.update(shape=(*batch, q, n))


svd_p: Final = Primitive("svd", _svd_type)

# ---- both ----------------------------------------------------------------------------------------------------


def _real(x: ShapedArray, shape: tuple[int, ...]) -> ShapedArray:
    return x.update(shape=shape, dtype=dtypes.real_part_dtype(x.dtype))


def _subset(who: str, n: int, subset: tuple[int, int] | None) -> tuple[int, int]:
    """Return the range of values to return, all n if `subset` is None. Raises: ValueError for a range beyond n."""
    if subset is None:
        return 0, n
    start, end = map(operator.index, subset)
    if not 0 <= start <= end <= n:
        raise ValueError(f"{who}: subset_by_index={subset}: there are {n} values, 0 <= start <= end <= {n}.")
    return start, end


def _check_choice(who: str, name: str, choice: Any, known: tuple[Any, ...]) -> None:
    if choice not in known:
        raise NotImplementedError(f"{who}: {name}={choice}: LAPACK has {', '.join(str(x) for x in known)}.")


# ---- condensed forms -----------------------------------------------------------------------------------------
# Unitary reductions of square matrices to condensed forms: Hessenberg, tridiagonal, Schur's.
#
# The first two are found in finitely many reflections, which they keep in the elements that become 0; Schur's form is
# the limit of an iteration. Source: Golub and Van Loan 2013, chapters 7.4 and 8.3; LAPACK, gehrd, sytrd, hetrd and
# gees.


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Reduce a square matrix to Hessenberg form H, which is 0 below its first subdiagonal: a = Q @ H @ Q^H.

    Args:
      a: [.., n, n], floating point of 32 or 64 bits, or complex; n is at least 1.
    Returns: (H with the reflections' vectors below its subdiagonal [.., n, n], their factors [.., n-1]), in the dtype
      of a. `householder_product` of the rows from 1 on and columns up to n-1 is Q without its first row and column.
    Raises: TypeError if a has another dtype, ValueError if it is no square matrix or has no rows. It has no derivative.
    Source: LAPACK, gehrd.
    """
    form, taus = hessenberg_p.bind(a)
    return form, taus


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Reduce a Hermitian matrix to tridiagonal form T, which is real: a = Q @ T @ Q^H.

    Args:
      a: [.., n, n], floating point of 32 or 64 bits, or complex; n is at least 1.
      lower: which triangle is read. The other is not, and stays in the first result as it is.
    Returns: (T with the reflections' vectors beyond its diagonals [.., n, n], T's diagonal [.., n], T's other diagonal
      [.., n-1], the reflections' factors [.., n-1]); the diagonals are real.
    Raises: TypeError if a has another dtype, ValueError if it is no square matrix or has no rows. It has no derivative.
    Source: LAPACK, sytrd and hetrd.
    """
    form, diagonal, beside, taus = tridiagonal_p.bind(a, lower=bool(lower))
    return form, diagonal, beside, taus


def schur(
    x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Any = None
) -> tuple[Array, ...]:
    """Reduce a square matrix to Schur form T: x = Q @ T @ Q^H, with a unitary Q.

    Args:
      x: [.., n, n], floating point of 32 or 64 bits, or complex.
      compute_schur_vectors: whether Q is returned.
      sort_eig_vals: False: eigenvalues stand in the order in which they are found.
      select_callable: None.
    Returns: (T, Q), or (T,): of the type of x. T is upper triangular if x is complex; if it is real, pairs of conjugate
      eigenvalues are 2 x 2 blocks on T's diagonal. nan where the iteration fails, as with nan in x.
    Raises: TypeError if x has another dtype, ValueError if it is not a square matrix, NotImplementedError for an order
      of eigenvalues. It has no derivative.
    Source: LAPACK, gees.
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError(
            "schur: eigenvalues are not ordered: leave sort_eig_vals=False, select_callable=None."
        )
    return schur_p.bind(x, compute_schur_vectors=bool(compute_schur_vectors))


def _hessenberg_type(a: ShapedArray) -> tuple[ShapedArray, ...]:
    _check_nonempty("hessenberg", a)
    return a, _one_less(a)


def _tridiagonal_type(a: ShapedArray, *, lower: bool) -> tuple[ShapedArray, ...]:
    _check_nonempty("tridiagonal", a)
    real = a.update(dtype=dtypes.real_part_dtype(a.dtype))
    return a, real.update(shape=a.shape[:-1]), _one_less(real), _one_less(a)


def _schur_type(x: ShapedArray, *, compute_schur_vectors: bool) -> tuple[ShapedArray, ...]:
    check_square("schur", x, f"{x}")
    return (x,) * (2 if compute_schur_vectors else 1)


def _check_nonempty(who: str, a: ShapedArray) -> None:
    check_square(who, a, f"{a}")
    if not a.shape[-1]:
        raise ValueError(f"{who}: the matrix must have a row at least: {a}.")


def _one_less(a: ShapedArray) -> ShapedArray:
    return a.update(shape=(*a.shape[:-2], a.shape[-1] - 1))


hessenberg_p: Final = Primitive("hessenberg", _hessenberg_type)
tridiagonal_p: Final = Primitive("tridiagonal", _tridiagonal_type)
schur_p: Final = Primitive("schur", _schur_type)
