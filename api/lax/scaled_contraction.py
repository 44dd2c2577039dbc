"""Products of arrays that have a scale for each block of elements: `lax.scaled_dot`."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.primitives.contraction import dot_general
from tapeless.tracer.primitives.operands import canonical_axis
from tapeless.tracer.types import ShapedArray, aval_of


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Multiply (lhs * lhs_scale) by (rhs * rhs_scale), where each scale is of a block of elements.

    Args:
      lhs, rhs: as of `dot_general`; they, and the scales, are converted to bfloat16, in which they are multiplied.
      lhs_scale, rhs_scale: arrays of the rank of their operand: of its sizes along the axes that are not contracted;
        along contracted ones, of a size that divides it at least twice. Ones if None.
      dimension_numbers: as of `dot_general`; if None, of batches of matrices [.., m, k] and [.., k, n].
      preferred_element_type: dtype of the sum and the result; bfloat16 if None.
    Returns: as `dot_general`.
    Raises: TypeError naming the shapes if they do not fit, or for operands with fewer than two axes and no dimension
      numbers.
    """
    left, right = aval_of(lhs), aval_of(rhs)
    dims = _of_matrices(left, right) if dimension_numbers is None else dimension_numbers
    (of_left, of_right), _ = dims
    return dot_general(
        _scaled("lhs", lhs, lhs_scale, of_left),
        _scaled("rhs", rhs, rhs_scale, of_right),
        dims,
        preferred_element_type=_BFLOAT16 if preferred_element_type is None else preferred_element_type,
    )


_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def _of_matrices(x: ShapedArray, y: ShapedArray) -> Any:
    n = x.ndim
    if n < 2 or y.ndim != n:
        raise TypeError(f"scaled_dot: without dimension_numbers it takes batches of matrices, not {x} and {y}.")
    batch = tuple(range(n - 2))
    return ((n - 1,), (n - 2,)), (batch, batch)


def _scaled(name: str, x: ArrayLike, scale: ArrayLike | None, contracted: Sequence[int]) -> Any:
    """Multiply an operand by its scales, in bfloat16."""
    narrow = tnp.asarray(x).astype(_BFLOAT16)
    if scale is None:
        return narrow
    contracted = [canonical_axis(a, narrow.ndim) for a in contracted]
    _check_scale(name, aval_of(x), aval_of(scale), contracted)
    return narrow * repeat_scale(tnp.asarray(scale).astype(_BFLOAT16), narrow.shape)


def repeat_scale(scale: Any, shape: Sequence[int]) -> Any:
    """Repeat each scale for the elements of its block: to `shape`, whose sizes are multiples of its own."""
    for axis, n in enumerate(shape):
        if scale.shape[axis] != n:
            scale = tnp.repeat(scale, n // scale.shape[axis], axis=axis, total_repeat_length=n)
    return scale


def _check_scale(name: str, x: ShapedArray, scale: ShapedArray, contracted: Sequence[int]) -> None:
    """Raise TypeError unless sizes are equal, or, along contracted axes, at least twice those of the scale."""
    fits = scale.ndim == x.ndim and all(
        n and size % n == 0 and size // n >= 2 if axis in contracted else size == n
        for axis, (size, n) in enumerate(zip(x.shape, scale.shape, strict=True))
    )
    if not fits:
        raise TypeError(
            f"scaled_dot: {name} is {x}, its scale {scale}: sizes must be equal, except along the axes that are "
            f"contracted, {tuple(contracted)}, where the scale's divides the other at least twice."
        )
    if dtypes.is_complex(x.dtype) or dtypes.is_complex(scale.dtype):
        raise TypeError(f"scaled_dot: {name} and its scale must be real, not {x} and {scale}.")
