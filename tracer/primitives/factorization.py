"""Factorizations of general matrices, with determinants, adjugates and pseudo-inverses."""

from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.linalg import check_matrix, check_square
from tapeless.tracer.primitives.shape import broadcast_in_dim
from tapeless.tracer.types import ShapedArray, aval_of

# ---- lu ------------------------------------------------------------------------------------------------------


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """Decompose x with its rows exchanged into triangular factors: x[permutation] = l @ u.

    Args:
      x: [.., m, n], floating point of 32 or 64 bits, or complex; k is the lesser of m and n.
    Returns: lu [.., m, n], u and below its diagonal l, whose diagonal is 1; pivots int32[.., k], row i having been
      exchanged with row pivots[i], in turn; permutation int32[.., m].
    Raises: TypeError if x has another dtype, ValueError if it has fewer than two axes.
    Source: LAPACK, getrf.
    """
    check_matrix("lu", aval_of(x))
    factors, pivots, permutation = lu_p.bind(x)
    return factors, pivots, permutation


def _lu_type(x: ShapedArray) -> tuple[ShapedArray, ...]:
    check_matrix("lu", x)
    *batch, m, n = x.shape
    integers = x.update(dtype=np.dtype(np.int32), weak_type=False)
    return x, integers.update(shape=(*batch, min(m, n))), integers.update(shape=(*batch, m))


lu_p: Final = Primitive("lu", _lu_type)

# ---- qr ------------------------------------------------------------------------------------------------------


def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: None = None) -> Any:
    """Decompose x = q @ r, with a unitary q and an upper triangular r, whose diagonal is real.

    Args:
      x: [.., m, n], floating point of 32 or 64 bits, or complex; k is the lesser of m and n.
      pivoting: exchange columns so that the sizes of r's diagonal descend: x[.., p] = q @ r.
      full_matrices: complete the columns of q to a basis.
      use_magma: None.
    Returns: (q [.., m, k], r [.., k, n]), or [.., m, m] and [.., m, n] if `full_matrices`; and p, int32[.., n], if
      `pivoting`.
    Raises: TypeError if x has another dtype, ValueError if it has fewer than two axes, NotImplementedError for MAGMA.
    Source: LAPACK, geqrf or geqp3, and orgqr. Derivatives of the completion: see interpreters/rules/factorization.py.
    """
    if use_magma is not None:
        raise NotImplementedError(f"qr: use_magma={use_magma!r}: there is LAPACK only, leave use_magma=None.")
    check_matrix("qr", aval_of(x))
    return qr_p.bind(x, full_matrices=bool(full_matrices), pivoting=bool(pivoting))


def _qr_type(x: ShapedArray, *, full_matrices: bool, pivoting: bool) -> tuple[ShapedArray, ...]:
    check_matrix("qr", x)
    *batch, m, n = x.shape
    k = m if full_matrices else min(m, n)
    factors = x.update(shape=(*batch, m, k)), x.update(shape=(*batch, k, n))
    places = x.update(shape=(*batch, n), dtype=np.dtype(np.int32), weak_type=False)
    return (*factors, places) if pivoting else factors


qr_p: Final = Primitive("qr", _qr_type)


def geqrf(x: ArrayLike) -> tuple[Array, Array]:
    """Decompose x = q @ r with q left as a product of reflections, which `householder_product` and `ormqr` take.

    Args:
      x: [.., m, n], floating point of 32 or 64 bits, or complex; k is the lesser of m and n. There is no derivative.
    Returns: [.., m, n], r on and above the diagonal, below it the vectors of the reflections; [.., k], their factors.
    Raises: TypeError if x has another dtype, ValueError if it has fewer than two axes.
    Source: LAPACK, geqrf.
    """
    check_matrix("geqrf", aval_of(x))
    packed, taus = geqrf_p.bind(x)
    return packed, taus


def _geqrf_type(x: ShapedArray) -> tuple[ShapedArray, ...]:
    check_matrix("geqrf", x)
    *batch, m, n = x.shape
    return x, x.update(shape=(*batch, min(m, n)))


geqrf_p: Final = Primitive("geqrf", _geqrf_type)

# ---- determinants --------------------------------------------------------------------------------------------


def det(x: ArrayLike) -> Array:
    """Compute the determinant [..] of x [.., n, n], by `lu`.

    Its gradient is the transposed adjugate, also if x is singular.
    """
    return det_p.bind(x)[0]


def adjugate(x: ArrayLike) -> Array:
    """Compute the adjugate det(x) inv(x), [.., n, n]; if x is singular, by `svd`. It has derivatives there, too."""
    return adjugate_p.bind(x)[0]


def _det_type(x: ShapedArray) -> tuple[ShapedArray, ...]:
    check_square("det", x, f"{x}")
    return (x.update(shape=x.shape[:-2]),)


def _adjugate_type(x: ShapedArray) -> tuple[ShapedArray, ...]:
    check_square("adjugate", x, f"{x}")
    return (x,)


det_p: Final = Primitive("det", _det_type)
adjugate_p: Final = Primitive("adjugate", _adjugate_type)

# ---- pseudo-inverse ------------------------------------------------------------------------------------------


def pinv(x: ArrayLike, rtol: ArrayLike, hermitian: bool = False) -> Array:
    """Compute the pseudo-inverse [.., n, m] of x [.., m, n], by `svd`, or by `eigh` if x is Hermitian.

    Singular values up to `rtol`, one number or [..], times the largest count as 0. The derivative is that along
    matrices of the same rank; there is none with respect to `rtol`.
    Source: Golub and Pereyra 1973, "The differentiation of pseudo-inverses".
    """
    matrices = aval_of(x)
    check_matrix("pinv", matrices)
    least = convert_element_type(rtol, dtypes.real_part_dtype(matrices.dtype))
    of_each = broadcast_in_dim(least, (*matrices.shape[:-2], 1, 1), range(least.ndim))
    return pinv_p.bind(x, of_each, hermitian=bool(hermitian))[0]


def _pinv_type(x: ShapedArray, rtol: ShapedArray, *, hermitian: bool) -> tuple[ShapedArray, ...]:
    if hermitian:
        check_square("pinv", x, f"{x}")
    check_matrix("pinv", x)
    *batch, m, n = x.shape
    wanted = rtol.update(shape=(*batch, 1, 1), dtype=dtypes.real_part_dtype(x.dtype))
    if rtol != wanted:
        raise TypeError(f"pinv: rtol must be {wanted} beside {x}, not {rtol}.")
    return (x.update(shape=(*batch, n, m)),)


pinv_p: Final = Primitive("pinv", _pinv_type)


def least_squares(x: ArrayLike, b: ArrayLike, rtol: ArrayLike) -> tuple[Array, Array]:
    """Solve least-squares problems by `svd`: return the x^+ @ b of least norm, [.., n, k], and x^+, [.., n, m].

    The solution is computed from singular vectors, and not by a product with x^+, which is not backward stable. b is
    [.., m, k], of the dtype of x [.., m, n]; `rtol` and derivatives are as for `pinv`.
    """
    matrices = aval_of(x)
    check_matrix("lstsq", matrices)
    least = convert_element_type(rtol, dtypes.real_part_dtype(matrices.dtype))
    of_each = broadcast_in_dim(least, (*matrices.shape[:-2], 1, 1), range(least.ndim))
    solution, inverse = least_squares_p.bind(x, b, of_each)
    return solution, inverse


def _least_squares_type(x: ShapedArray, b: ShapedArray, rtol: ShapedArray) -> tuple[ShapedArray, ...]:
    (inverse,) = _pinv_type(x, rtol, hermitian=False)
    if b.dtype != x.dtype or b.shape[:-1] != x.shape[:-1]:
        raise TypeError(f"lstsq: the right side must have the rows and dtype of the matrix: {x} and {b}.")
    weak = x.weak_type and b.weak_type
    return x.update(shape=(*inverse.shape[:-1], b.shape[-1]), weak_type=weak), inverse


least_squares_p: Final = Primitive("least_squares", _least_squares_type)
