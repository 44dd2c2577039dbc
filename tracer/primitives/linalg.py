"""Cholesky decomposition, and systems of equations with triangular and tridiagonal matrices, for batches of them."""

from typing import Final

from tapeless.tracer import dtypes
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.advice.widths import mismatch
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.elementwise import add, conj, mul
from tapeless.tracer.primitives.kinds import list_types
from tapeless.tracer.primitives.operands import constant, ndim
from tapeless.tracer.primitives.shape import expand_dims, squeeze, transpose
from tapeless.tracer.types import ShapedArray, aval_of


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Compute the lower triangular factor L, with positive diagonal, of a positive definite matrix: L @ L^H is x.

    Args:
      x: [.., n, n], floating point of 32 or 64 bits, or complex; Hermitian.
      symmetrize_input: take the mean of x and its adjoint, so that gradients are Hermitian too; else the lower
        triangle of x is read and the upper is not.
    Returns: [.., n, n], dtype of x; nan where x is not positive definite.
    Raises: TypeError if x has another dtype, ValueError if it is not a square matrix.
    Source: StableHLO spec, cholesky.
    """
    check_square("cholesky", aval_of(x), f"{aval_of(x)}")
    if symmetrize_input:
        half = constant(0.5, aval_of(x).update(shape=()))
        x = mul(add(x, adjoint(x)), half)
    return cholesky_p.bind(x)[0]


def adjoint(x: ArrayLike) -> Array:
    """Return the conjugate transpose of x [.., n, m], over its last two axes."""
    n = ndim(x)
    turned = transpose(x, (*range(n - 2), n - 1, n - 2))
    return conj(turned) if dtypes.is_complex(aval_of(x).dtype) else turned


def _cholesky_type(x: ShapedArray) -> tuple[ShapedArray, ...]:
    check_square("cholesky", x, f"{x}")
    return (x,)


cholesky_p: Final = Primitive("cholesky", _cholesky_type)


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve op(a) @ x = b if `left_side`, else x @ op(a) = b, for a triangular matrix a.

    Args:
      a: [.., n, n], floating point of 32 or 64 bits, or complex; the other triangle is not read.
      b: [.., n, m] if `left_side`, else [.., m, n]; or a vector [.., n]. Dtype and batch of a.
      lower: whether the lower triangle of a is the matrix, or the upper.
      transpose_a, conjugate_a: whether op transposes a, and conjugates it.
      unit_diagonal: take the diagonal for ones, without reading it.
    Returns: x, of the type of b.
    Raises: TypeError if dtypes differ, ValueError if shapes do not fit; both are named.
    Source: StableHLO spec, triangular_solve.
    """
    if ndim(b) == ndim(a) - 1:
        side = (ndim(b) if left_side else ndim(b) - 1,)
        flags = {"lower": lower, "transpose_a": transpose_a, "conjugate_a": conjugate_a, "unit_diagonal": unit_diagonal}
        return squeeze(triangular_solve(a, expand_dims(b, side), left_side=left_side, **flags), side)
    if conjugate_a and dtypes.is_complex(aval_of(a).dtype):
        a = conj(a)
    flags = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a, "unit_diagonal": unit_diagonal}
    return triangular_solve_p.bind(a, b, **{name: bool(flag) for name, flag in flags.items()})[0]


def _triangular_solve_type(
    a: ShapedArray, b: ShapedArray, *, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool
) -> tuple[ShapedArray, ...]:
    given = f"{a} and {b}"
    check_square("triangular_solve", a, given)
    if a.dtype != b.dtype:
        raise mismatch(f"triangular_solve: the operands differ in dtype: {given}. Convert with astype.", a, b)
    if b.ndim != a.ndim or b.shape[:-2] != a.shape[:-2]:
        raise ValueError(f"triangular_solve: the operands differ in their leading axes: {given}.")
    axis = -2 if left_side else -1
    if b.shape[axis] != a.shape[-1]:
        raise ValueError(f"triangular_solve: axis {axis} of the right side must have {a.shape[-1]} elements: {given}.")
    return (b.update(weak_type=a.weak_type and b.weak_type),)


triangular_solve_p: Final = Primitive("triangular_solve", _triangular_solve_type)


def check_square(who: str, x: ShapedArray, given: str) -> None:
    """Check that x is a square matrix of a dtype that LAPACK has. Raises: ValueError, TypeError."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{find_called(who)}: the matrix must be square, [.., n, n]: {given}.")
    check_dtype(who, x, given)


def check_matrix(who: str, x: ShapedArray) -> None:
    """Check that x has at least two axes and a dtype that LAPACK has. Raises: ValueError, TypeError."""
    if x.ndim < 2:
        raise ValueError(f"{find_called(who)}: a matrix has at least two axes, [.., m, n]: {x}.")
    check_dtype(who, x, f"{x}")


def check_dtype(who: str, x: ShapedArray, given: str) -> None:
    """Check that x has a dtype that LAPACK has: float or complex of at least 32 bits. Raises: TypeError."""
    if not dtypes.is_inexact(x.dtype) or dtypes.bits_of(x.dtype) < 32:
        raise TypeError(f"{who}: the matrix must be of 32-bit or 64-bit floating point, or complex: {given}.")


# ---- tridiagonal systems -------------------------------------------------------------------------------------


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solve A @ x = b for x [.., n, m] and a tridiagonal matrix A.

    Args:
      dl: [.., n], A's elements [i, i-1]; the first is not read. Floating point of 32 or 64 bits, or complex.
      d: [.., n], A's diagonal.
      du: [.., n], A's elements [i, i+1]; the last is not read.
      b: [.., n, m]; all are of one dtype.
      perturb_singular: move pivots that are nearly 0 away from it by roundings of the largest, so that x is finite, as
        inverse iteration needs.
    Returns: x, of the type of b; nan where A is singular, if not `perturb_singular`.
    Raises: TypeError if dtypes differ, or are narrower; ValueError if shapes do not fit; all are named.
    Source: LAPACK, gtsv.
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=bool(perturb_singular))[0]


def _tridiagonal_solve_type(
    dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *, perturb_singular: bool
) -> tuple[ShapedArray, ...]:
    given = list_types((dl, d, du, b))
    if len({x.dtype for x in (dl, d, du, b)}) > 1:
        raise mismatch(f"tridiagonal_solve: operands differ in dtype: {given}. Convert with astype.", dl, d, du, b)
    check_dtype("tridiagonal_solve", d, given)
    if not d.ndim or dl.shape != d.shape or du.shape != d.shape or b.ndim < 2 or b.shape[:-1] != d.shape:
        raise ValueError(f"tridiagonal_solve: three diagonals [.., n] and a right side [.., n, m], not {given}.")
    return (b.update(weak_type=all(x.weak_type for x in (dl, d, du, b))),)


tridiagonal_solve_p: Final = Primitive("tridiagonal_solve", _tridiagonal_solve_type)
