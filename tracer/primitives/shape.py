"""Operations that move elements without computing: creation, broadcasting, reshaping, joining, cutting."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.operands import constant, ndim, shape_of
from tapeless.tracer.types import ShapedArray, aval_of


def broadcast_in_dim(x: ArrayLike, shape: Sequence[int], dims: Sequence[int]) -> Array:
    """x repeated to `shape`: axis i of x becomes axis dims[i]; axes of length 1 are repeated too.

    Args:
      x: [...] of any dtype.
      shape: shape of the result.
      dims: strictly increasing, one per axis of x.
    Raises: ValueError if an axis of x has neither length 1 nor that of the result; both are named.
    Source: StableHLO spec, broadcast_in_dim.
    """
    shape, dims = tuple(shape), tuple(dims)
    if shape_of(x) == shape and isinstance(x, Array):
        return x
    return broadcast_in_dim_p.bind(x, shape=shape, dims=dims)[0]


def _broadcast_in_dim_type(x: ShapedArray, *, shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    if len(dims) != x.ndim or any(a >= b for a, b in zip(dims, dims[1:])):
        raise ValueError(f"broadcast_in_dim: dims {dims} must be increasing, one per axis of {x}.")
    for size, d in zip(x.shape, dims):
        if not 0 <= d < len(shape) or size not in (1, shape[d]):
            raise ValueError(f"broadcast_in_dim: {x} does not broadcast to {shape} along {dims}.")
    return (x.update(shape=shape),)


broadcast_in_dim_p = Primitive("broadcast_in_dim", _broadcast_in_dim_type)


def full(shape: Sequence[int], value: Any, dtype: Any = None) -> Array:
    """An array of `shape` with every element `value`, a number or a scalar array."""
    dtype = aval_of(value).dtype if dtype is None else dtypes.canonical(dtype)
    scalar = value if isinstance(value, Array) else constant(value, ShapedArray((), dtype))
    return broadcast_in_dim_p.bind(scalar, shape=tuple(shape), dims=())[0]


def reshape(x: ArrayLike, shape: Sequence[int]) -> Array:
    """x with the same elements, in row-major order, in another shape. Raises: ValueError if sizes differ."""
    shape = tuple(shape)
    if shape_of(x) == shape and isinstance(x, Array):
        return x
    return reshape_p.bind(x, shape=shape)[0]


def _reshape_type(x: ShapedArray, *, shape: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    out = x.update(shape=shape)
    if out.size != x.size:
        raise ValueError(f"reshape: {x} has {x.size} elements, shape {shape} has {out.size}.")
    return (out,)


reshape_p = Primitive("reshape", _reshape_type)


def transpose(x: ArrayLike, permutation: Sequence[int]) -> Array:
    """x with its axes permuted: axis i of the result is axis permutation[i] of x."""
    permutation = tuple(permutation)
    if permutation == tuple(range(ndim(x))) and isinstance(x, Array):
        return x
    return transpose_p.bind(x, permutation=permutation)[0]


def _transpose_type(x: ShapedArray, *, permutation: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    if sorted(permutation) != list(range(x.ndim)):
        raise ValueError(f"transpose: {permutation} is not a permutation of the {x.ndim} axes of {x}.")
    return (x.update(shape=tuple(x.shape[i] for i in permutation)),)


transpose_p = Primitive("transpose", _transpose_type)


def iota(dtype: Any, shape: Sequence[int], dimension: int = 0) -> Array:
    """The index along `dimension`, as an array of `shape` and `dtype`."""
    return iota_p.bind(dtype=dtypes.canonical(dtype), shape=tuple(shape), dimension=dimension)[0]


def _iota_type(*, dtype: np.dtype[Any], shape: tuple[int, ...], dimension: int) -> tuple[ShapedArray, ...]:
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota: dimension {dimension} is out of range for shape {shape}.")
    return (ShapedArray(shape, dtype),)


iota_p = Primitive("iota", _iota_type)
