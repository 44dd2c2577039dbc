"""Reductions: sum, product, extremes, logic over axes; positions of extremes; cumulative and windowed forms."""

from collections.abc import Sequence

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.operands import canonical_axes, ndim, without
from tapeless.tracer.types import ShapedArray


def reduce_sum(x: ArrayLike, axes: Sequence[int]) -> Array:
    """Sum of x over `axes`, which are dropped.

    Args:
      x: [...], numbers.
      axes: distinct axes of x.
    Returns: x's shape without `axes`, dtype of x.
    Raises: ValueError if an axis is out of range or named twice.
    Source: StableHLO spec, reduce.
    """
    return reduce_sum_p.bind(x, axes=canonical_axes(axes, ndim(x)))[0]


def _reduce_type(x: ShapedArray, *, axes: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    return (x.update(shape=without(x.shape, axes)),)


reduce_sum_p = Primitive("reduce_sum", _reduce_type)
