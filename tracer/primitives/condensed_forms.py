"""Unitary reductions of square matrices to condensed forms: Hessenberg, tridiagonal, Schur's.

The first two are found in finitely many reflections, which they keep in the elements that become 0; Schur's form is the
limit of an iteration. Source: Golub and Van Loan 2013, chapters 7.4 and 8.3; LAPACK, gehrd, sytrd, hetrd and gees.
"""

from typing import Any, Final

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.linalg import check_square
from tapeless.tracer.types import ShapedArray


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
