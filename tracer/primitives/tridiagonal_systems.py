"""Systems of linear equations with tridiagonal matrices."""

from typing import Final

from tapeless.tracer.advice.widths import mismatch
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.kinds import listed
from tapeless.tracer.primitives.linalg import check_dtype
from tapeless.tracer.types import ShapedArray


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
    given = listed((dl, d, du, b))
    if len({x.dtype for x in (dl, d, du, b)}) > 1:
        raise mismatch(f"tridiagonal_solve: operands differ in dtype: {given}. Convert with astype.", dl, d, du, b)
    check_dtype("tridiagonal_solve", d, given)
    if not d.ndim or dl.shape != d.shape or du.shape != d.shape or b.ndim < 2 or b.shape[:-1] != d.shape:
        raise ValueError(f"tridiagonal_solve: three diagonals [.., n] and a right side [.., n, m], not {given}.")
    return (b.update(weak_type=all(x.weak_type for x in (dl, d, du, b))),)


tridiagonal_solve_p: Final = Primitive("tridiagonal_solve", _tridiagonal_solve_type)
