"""Contractions: dot_general and convolution."""

from typing import Any

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.operands import without
from tapeless.tracer.types import ShapedArray

Dims = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def dot_general(x: ArrayLike, y: ArrayLike, dims: Any, *, preferred_element_type: Any = None) -> Array:
    """Contract some axes of two arrays, batch others.

    Args:
      x: [b.., m.., k..] in any axis order, numbers.
      y: [b.., n.., k..], dtype of x.
      dims: ((contract_x, contract_y), (batch_x, batch_y)).
      preferred_element_type: dtype of the sum and the result; that of x if None.
    Returns: [b.., m.., n..].
    Raises: TypeError if dtypes, contracted sizes or batch sizes differ; both shapes are named.
    Source: StableHLO spec, dot_general, C9 and C10.
    """
    (cx, cy), (bx, by) = dims
    exact = (tuple(map(int, cx)), tuple(map(int, cy))), (tuple(map(int, bx)), tuple(map(int, by)))
    dtype = None if preferred_element_type is None else dtypes.canonical(preferred_element_type)
    return dot_general_p.bind(x, y, dims=exact, preferred_element_type=dtype)[0]


def _dot_general_type(x: ShapedArray, y: ShapedArray, *, dims: Dims, preferred_element_type: Any) -> tuple[ShapedArray, ...]:
    (cx, cy), (bx, by) = dims
    for what, i, j in [*(("contracted", i, j) for i, j in zip(cx, cy)), *(("batch", i, j) for i, j in zip(bx, by))]:
        if x.shape[i] != y.shape[j]:
            raise TypeError(
                f"dot_general: {what} axes differ in size: axis {i} of {x} has {x.shape[i]}, "
                f"axis {j} of {y} has {y.shape[j]}."
            )
    if x.dtype != y.dtype:
        raise TypeError(f"dot_general: operands differ in dtype: {x} and {y}. Convert with astype.")
    batch = tuple(x.shape[i] for i in bx)
    shape = batch + without(x.shape, cx + bx) + without(y.shape, cy + by)
    weak = x.weak_type and y.weak_type and preferred_element_type is None
    return (ShapedArray(shape, preferred_element_type or x.dtype, weak),)


dot_general_p = Primitive("dot_general", _dot_general_type)
