"""Eigenvalues of Hermitian matrices and singular values, for batches of matrices."""

from typing import Any

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.elementwise import add, mul
from tapeless.tracer.primitives.linalg import adjoint, check_matrix, check_square
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.types import ShapedArray, aval_of

# ---- eigenvalues ---------------------------------------------------------------------------------------------


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: None = None,
) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of a Hermitian matrix, x @ v = v * w.

    Args:
      x: [.., n, n], floating point of 32 or 64 bits, or complex.
      lower: which triangle is read; the other, and the imaginary part of the diagonal, is not.
      symmetrize_input: take the mean of x and its adjoint first, so that gradients are Hermitian too.
      sort_eigenvalues: they are sorted in any case.
      subset_by_index: None, or all of them, (0, n).
      implementation: None.
    Returns: v [.., n, n], dtype of x, its columns the eigenvectors; w [.., n], real, ascending. nan where the iteration
      fails, as with nan in x.
    Raises: TypeError if x has another dtype, ValueError if it is not a square matrix, NotImplementedError for a part
      of the eigenvalues or an implementation.
    Source: LAPACK, syevd and heevd. Derivatives, also where eigenvalues are equal: docs/linalg.md.
    """
    aval = aval_of(x)
    check_square("eigh", aval, f"{aval}")
    _check_choices("eigh", aval.shape[-1], subset_by_index, "implementation", implementation)
    v, w = eigh_p.bind(hermitian_part(x) if symmetrize_input else x, lower=bool(lower), compute_v=True)
    return v, w


def eigvalsh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True) -> Array:
    """The eigenvalues [.., n] of a Hermitian matrix [.., n, n], as of `eigh`, without the eigenvectors."""
    check_square("eigvalsh", aval_of(x), f"{aval_of(x)}")
    return eigh_p.bind(hermitian_part(x) if symmetrize_input else x, lower=bool(lower), compute_v=False)[0]


def hermitian_part(x: ArrayLike) -> Array:
    """The mean of x [.., n, n] and its adjoint."""
    return mul(add(x, adjoint(x)), constant(0.5, aval_of(x).update(shape=(), weak_type=False)))


def _eigh_type(x: ShapedArray, *, lower: bool, compute_v: bool) -> tuple[ShapedArray, ...]:
    check_square("eigh", x, f"{x}")
    w = _real(x, x.shape[:-1])
    return (x.strong(), w) if compute_v else (w,)


eigh_p = Primitive("eigh", _eigh_type)

# ---- singular values -----------------------------------------------------------------------------------------


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: None = None,
) -> Any:
    """Singular values and vectors: x = u * s @ vh, u and vh unitary, s descending and not negative.

    Args:
      x: [.., m, n], floating point of 32 or 64 bits, or complex; k is the lesser of m and n.
      full_matrices: complete the vectors to bases. Such have derivatives only where m is n.
      compute_uv: whether the vectors are wanted.
      subset_by_index: None, or all of them, (0, k).
      algorithm: None.
    Returns: (u, s, vh), of [.., m, k], [.., k] and [.., k, n], or [.., m, m] and [.., n, n] for vectors if
      `full_matrices`; or s. nan where the iteration fails, as with nan in x.
    Raises: TypeError if x has another dtype, ValueError if it has fewer than two axes, NotImplementedError for a part
      of the values or an algorithm.
    Source: LAPACK, gesdd. Derivatives, also where singular values are equal or 0: docs/linalg.md.
    """
    aval = aval_of(x)
    check_matrix("svd", aval)
    _check_choices("svd", min(aval.shape[-2:]), subset_by_index, "algorithm", algorithm)
    found = svd_p.bind(x, full_matrices=bool(full_matrices and compute_uv), compute_uv=bool(compute_uv))
    return found if compute_uv else found[0]


def _svd_type(x: ShapedArray, *, full_matrices: bool, compute_uv: bool) -> tuple[ShapedArray, ...]:
    check_matrix("svd", x)
    *batch, m, n = x.shape
    k = min(m, n)
    s = _real(x, (*batch, k))
    if not compute_uv:
        return (s,)
    p, q = (m, n) if full_matrices else (k, k)
    return x.update(shape=(*batch, m, p), weak_type=False), s, x.update(shape=(*batch, q, n), weak_type=False)


svd_p = Primitive("svd", _svd_type)

# ---- both ----------------------------------------------------------------------------------------------------


def _real(x: ShapedArray, shape: tuple[int, ...]) -> ShapedArray:
    return x.update(shape=shape, dtype=dtypes.real_part_dtype(x.dtype), weak_type=False)


def _check_choices(who: str, n: int, subset: Any, name: str, choice: Any) -> None:
    if subset is not None and tuple(subset) != (0, n):
        raise NotImplementedError(f"{who}: subset_by_index={subset}: all {n} are computed, or none. Slice the result.")
    if choice is not None:
        raise NotImplementedError(f"{who}: {name}={choice!r}: there is one only, leave {name}=None.")
