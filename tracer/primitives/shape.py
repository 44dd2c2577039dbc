"""Operations that move elements without computing: creation, broadcasting, reshaping, joining, cutting.

Shapes are tuples of known integers: a size that is traced is refused by `static_shape`.
"""

import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.advice.widths import mismatch
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive, Tracer
from tapeless.tracer.errors import ConcretizationTypeError, not_supported
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.operands import (
    argsort,
    canonical_axes,
    canonical_axis,
    convert_number,
    exact_integer,
    match_dtypes,
    ndim,
    shape_of,
)
from tapeless.tracer.types import ShapedArray, aval_of

PaddingConfig = Sequence[tuple[int, int, int]]


def static_shape(shape: Any, name: str) -> tuple[int, ...]:
    """Convert `shape` to a tuple of ints, on behalf of the function `name`.

    Raises: TypeError if a size is no integer, or is being traced; ValueError if one is negative; all are named.
    """
    sizes = static_ints(shape, name, "shape")
    if sizes and min(sizes) < 0:
        raise ValueError(f"{find_called(name)}: shape {sizes} has a negative size.")
    return sizes


def static_ints(items: Any, name: str, what: str) -> tuple[int, ...]:
    """Convert `items` to a tuple of ints. Raises: TypeError if one is no integer, or is being traced."""
    try:
        return tuple([operator.index(n) for n in ([items] if isinstance(items, Tracer) else items)])
    except ConcretizationTypeError as error:
        told = str(error).removeprefix("the integer value of a traced array")
        if what != "shape" or told == str(error):
            raise
        raise type(error)(f"{find_called(name)}: the size given by a traced array{told}") from None
    except TypeError:
        raise TypeError(f"{find_called(name)}: {what} must be a sequence of integers, not {items!r}.") from None


def as_sizes(shape: Any) -> Any:
    """Convert a length, a number or an array without axes, to the shape of a vector; return a shape as it is."""
    return (shape,) if not hasattr(shape, "__iter__") or getattr(shape, "ndim", 1) == 0 else shape


# ---- creation and broadcasting -------------------------------------------------------------------------------


def broadcast_in_dim(
    operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: None = None
) -> Array:
    """Broadcast operand to `shape`: axis i becomes axis broadcast_dimensions[i]; axes of length 1 are repeated.

    Args:
      operand: [...] of any dtype.
      shape: shape of the result.
      broadcast_dimensions: one per axis of operand, all different; where they do not increase, operand is transposed.
    Raises: ValueError if an axis of operand has neither length 1 nor that of the result, both are named; or if there is
      not one dimension per axis.
    Source: StableHLO spec, broadcast_in_dim.
    """
    if out_sharding is not None:
        raise not_supported("broadcast_in_dim", "out_sharding", out_sharding)
    shape, dims = static_shape(shape, "broadcast_in_dim"), tuple(broadcast_dimensions)
    increasing = tuple(sorted(dims))
    if dims != increasing and len(dims) == ndim(operand):
        return broadcast_in_dim(transpose(operand, argsort(dims)), shape, increasing)
    if shape_of(operand) == shape and isinstance(operand, Array) and dims == tuple(range(len(shape))):
        return operand
    return broadcast_in_dim_p.bind(operand, shape=shape, dims=dims)[0]


def _broadcast_in_dim_type(x: ShapedArray, *, shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    if len(dims) != x.ndim or any(a >= b for a, b in pairwise(dims)):
        raise ValueError(f"broadcast_in_dim: dims {dims} must be different, one per axis of {x}.")
    for size, d in zip(x.shape, dims):
        if not 0 <= d < len(shape) or size not in (1, shape[d]):
            raise ValueError(f"broadcast_in_dim: {x} does not broadcast to {shape} along {dims}.")
    return (x.update(shape=shape),)


broadcast_in_dim_p: Final = Primitive("broadcast_in_dim", _broadcast_in_dim_type, takes_keys=True)


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: None = None) -> Array:
    """Repeat operand along new leading axes of `sizes`."""
    if out_sharding is not None:
        raise not_supported("broadcast", "out_sharding", out_sharding)
    sizes, shape = static_shape(sizes, "broadcast"), shape_of(operand)
    return broadcast_in_dim(operand, sizes + shape, range(len(sizes), len(sizes) + len(shape)))


def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: None = None) -> Array:
    """Make an array of `shape` with every element `fill_value`, a number or a scalar array, converted to `dtype`.

    Without a dtype it is weak if `fill_value` is.
    Raises: OverflowError for an integer of Python or NumPy that does not fit `dtype`.
    """
    if sharding is not None:
        raise not_supported("full", "sharding", sharding)
    dtype, aval = None if dtype is None else dtypes.canonical(dtype), aval_of(fill_value)
    if dtype is None or (aval.dtype == dtype and not aval.weak_type):
        scalar = fill_value
    elif not isinstance(fill_value, Array):
        scalar = convert_number(np.asarray(fill_value)[()], dtype)
    else:
        scalar = convert_element_type(fill_value, dtype)
    return broadcast_in_dim_p.bind(scalar, shape=static_shape(as_sizes(shape), "full"), dims=())[0]


def full_like(
    x: ArrayLike, fill_value: Any, dtype: Any = None, shape: int | Sequence[int] | None = None, sharding: None = None
) -> Array:
    """Make an array with every element `fill_value`, of the shape and dtype of x, or others, weak if x is."""
    if sharding is not None:
        raise not_supported("full_like", "sharding", sharding)
    aval = aval_of(x)
    found = full(aval.shape if shape is None else shape, fill_value, aval.dtype if dtype is None else dtype)
    weak = dtype is None and aval.weak_type
    return convert_element_type(found, found.dtype, weak_type=True) if weak else found


def zeros_like(x: ArrayLike) -> Array:
    """Make an array of zeros of the shape and dtype of x."""
    return full_like(x, 0)


def iota(dtype: Any, size: int) -> Array:
    """Make the vector of integers from 0 below `size`; integers that do not fit `dtype` wrap around."""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: None = None) -> Array:
    """Make an array of `shape` whose elements are their index along `dimension`; integers wrap around."""
    if out_sharding is not None:
        raise not_supported("broadcasted_iota", "out_sharding", out_sharding)
    shape, dtype = static_shape(shape, "iota"), dtypes.canonical(dtype)
    axis = canonical_axis(dimension, len(shape))
    return iota_p.bind(dtype=dtype, shape=shape, dimension=axis)[0]


def _iota_type(*, dtype: np.dtype[Any], shape: tuple[int, ...], dimension: int) -> tuple[ShapedArray, ...]:
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota: dimension {dimension} is out of range for shape {shape}.")
    if dtypes.is_bool(dtype):
        raise TypeError(f"iota: the dtype must be a number's, not {dtype}.")
    return (ShapedArray(shape, dtype),)


iota_p: Final = Primitive("iota", _iota_type)


# ---- the same elements in another shape ----------------------------------------------------------------------


def reshape(
    operand: ArrayLike,
    new_sizes: int | Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Reshape operand, in row-major order, after transposing it by `dimensions` if given.

    Args:
      new_sizes: the shape, or the length of a vector.
    Raises: ValueError if sizes differ.
    """
    if out_sharding is not None:
        raise not_supported("reshape", "out_sharding", out_sharding)
    shape = static_shape(as_sizes(new_sizes), "reshape")
    operand = operand if dimensions is None else transpose(operand, dimensions)
    if shape_of(operand) == shape and isinstance(operand, Array):
        return operand
    return reshape_p.bind(operand, shape=shape)[0]


def _reshape_type(x: ShapedArray, *, shape: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    out = x.update(shape=shape)
    if out.size != x.size:
        raise ValueError(f"reshape: {x} has {x.size} elements, shape {shape} has {out.size}.")
    return (out,)


reshape_p: Final = Primitive("reshape", _reshape_type, takes_keys=True)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Remove the axes `dimensions`, which have length 1. Raises: ValueError if an axis has another length."""
    aval = aval_of(array)
    dropped = canonical_axes(dimensions, aval.ndim)
    if any(aval.shape[d] != 1 for d in dropped):
        raise ValueError(f"squeeze: axes {dropped} of {aval} must have length 1.")
    return reshape(array, tuple(n for d, n in enumerate(aval.shape) if d not in dropped))


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Add axes of length 1, at positions `dimensions` of the result."""
    kept, rank = iter(shape_of(array)), ndim(array) + len(tuple(dimensions))
    new = canonical_axes(dimensions, rank)
    return reshape(array, tuple(1 if d in new else next(kept) for d in range(rank)))


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge the axes from start_dimension to stop_dimension (not included) into one, of length 1 if there are none."""
    shape = shape_of(operand)
    start, stop, _ = builtin_slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        given = f"{start_dimension} to {stop_dimension} in {aval_of(operand)}"
        raise ValueError(f"collapse: there is no axis from {given}.")
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Permute the axes of operand: axis i of the result is axis permutation[i] of operand."""
    permutation = tuple(exact_integer(i, "transpose: an axis") for i in permutation)
    if permutation == tuple(range(ndim(operand))) and isinstance(operand, Array):
        return operand
    return transpose_p.bind(operand, permutation=permutation)[0]


def _transpose_type(x: ShapedArray, *, permutation: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    if sorted(permutation) != list(range(x.ndim)):
        raise ValueError(f"transpose: {permutation} is not a permutation of the {x.ndim} axes of {x}.")
    return (x.update(shape=tuple(x.shape[i] for i in permutation)),)


transpose_p: Final = Primitive("transpose", _transpose_type, takes_keys=True)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the elements along `dimensions`. Raises: ValueError if an axis is out of range."""
    axes = canonical_axes(dimensions, ndim(operand))
    return operand if not axes and isinstance(operand, Array) else rev_p.bind(operand, dimensions=axes)[0]


def _rev_type(x: ShapedArray, *, dimensions: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    if len(set(dimensions)) < len(dimensions) or not all(0 <= d < x.ndim for d in dimensions):
        raise ValueError(f"rev: dimensions {dimensions} must be distinct axes of {x}.")
    return (x,)


rev_p: Final = Primitive("rev", _rev_type, takes_keys=True)


# ---- joining -------------------------------------------------------------------------------------------------


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Join the operands along axis `dimension`.

    Args:
      operands: one or more, [..., k, ...] each, of one dtype, equal in shape but along `dimension`.
    Raises: TypeError if dtypes differ, ValueError if shapes do or `dimension` is out of range; all are named.
    Source: StableHLO spec, concatenate.
    """
    operands = tuple(operands)
    if not operands:
        raise ValueError("concatenate: there must be at least one operand.")
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    return concatenate_p.bind(*operands, dimension=canonical_axis(dimension, ndim(operands[0]), "dimension"))[0]


def _concatenate_type(*xs: ShapedArray, dimension: int) -> tuple[ShapedArray, ...]:
    first, listed = xs[0], ", ".join(map(str, xs))
    if any(x.dtype != first.dtype for x in xs):
        raise mismatch(f"concatenate: operands differ in dtype: {listed}. Convert with astype.", *xs)
    if not all(0 <= dimension < x.ndim for x in xs) or len({_less(x.shape, dimension) for x in xs}) > 1:
        raise ValueError(f"concatenate: operands must agree in shape except along axis {dimension}: {listed}.")
    total = sum(x.shape[dimension] for x in xs)
    return (first.update(shape=_resized(first.shape, dimension, total), weak_type=all(x.weak_type for x in xs)),)


def _less(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _resized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


concatenate_p: Final = Primitive("concatenate", _concatenate_type, takes_keys=True)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat operand as a whole, reps[i] times along axis i. Raises: ValueError unless reps are one per axis."""
    shape, reps = shape_of(operand), static_shape(reps, "tile")
    if len(reps) != len(shape):
        raise ValueError(f"tile: reps {reps} must be one per axis of {aval_of(operand)}.")
    pairs = tuple(n for pair in zip(reps, shape) for n in pair)
    repeated = broadcast_in_dim(operand, pairs, range(1, 2 * len(shape), 2))
    return reshape(repeated, tuple(r * n for r, n in zip(reps, shape)))


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: PaddingConfig) -> Array:
    """Pad operand with `padding_value` before, after and between its elements.

    Args:
      operand: [...] of any dtype.
      padding_value: a scalar of the dtype of operand.
      padding_config: (low, high, interior) per axis; a negative low or high cuts instead, interior comes first.
    Raises: TypeError if dtypes differ; ValueError if the config does not fit operand. Both are named.
    Source: StableHLO spec, pad.
    """
    config = tuple(static_ints(triple, "pad", "padding_config") for triple in padding_config)
    operand, value = match_dtypes(operand, padding_value)
    return pad_p.bind(operand, value, padding_config=config)[0]


def _pad_type(x: ShapedArray, value: ShapedArray, *, padding_config: PaddingConfig) -> tuple[ShapedArray, ...]:
    if value.shape or value.dtype != x.dtype:
        raise mismatch(f"pad: the padding value must be a scalar of the dtype of {x}, not {value}.", x, value)
    given = f"operand {x}, padding value {value}, padding_config {padding_config}"
    if len(padding_config) != x.ndim or any(len(t) != 3 or t[2] < 0 for t in padding_config):
        raise ValueError(f"pad: every axis needs (low, high, interior), interior not negative: {given}.")
    shape = tuple(lo + n + max(n - 1, 0) * gap + hi for n, (lo, hi, gap) in zip(x.shape, padding_config))
    if any(n < 0 for n in shape):
        raise ValueError(f"pad: negative padding removes too many elements, which leaves {shape}: {given}.")
    return (x.update(shape=shape, weak_type=x.weak_type and value.weak_type),)


pad_p: Final = Primitive("pad", _pad_type, takes_keys=True)


# ---- cutting -------------------------------------------------------------------------------------------------

builtin_slice = slice


def slice(
    operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """Slice from start_indices up to limit_indices, in steps of strides.

    Args:
      operand: [...] of any dtype.
      start_indices, limit_indices: one per axis, 0 <= start <= limit <= size.
      strides: one per axis, at least 1; 1 if None.
    Raises: ValueError if they do not fit operand; all are named.
    Source: StableHLO spec, slice.
    """
    starts, limits = (static_ints(i, "slice", what) for i, what in ((start_indices, "start"), (limit_indices, "limit")))
    steps = (1,) * len(starts) if strides is None else static_ints(strides, "slice", "strides")
    whole = not any(starts) and limits == shape_of(operand) and all(n == 1 for n in steps)
    if whole and len(starts) == len(limits) == len(steps) and isinstance(operand, Array):
        return operand
    return slice_p.bind(operand, start_indices=starts, limit_indices=limits, strides=steps)[0]


def _slice_type(
    x: ShapedArray, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[ShapedArray, ...]:
    cut = f"from {start_indices} to {limit_indices} by {strides}"
    if not len(start_indices) == len(limit_indices) == len(strides) == x.ndim:
        raise ValueError(f"slice: {cut} must have one number per axis of {x}.")
    if any(not 0 <= a <= b <= n or step < 1 for a, b, step, n in zip(start_indices, limit_indices, strides, x.shape)):
        raise ValueError(f"slice: {cut} does not fit {x}: 0 <= start <= limit <= size and stride >= 1 must hold.")
    shape = tuple(-(-(b - a) // step) for a, b, step in zip(start_indices, limit_indices, strides))
    return (x.update(shape=shape),)


slice_p: Final = Primitive("slice", _slice_type, takes_keys=True)


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """Slice along one axis, with bounds as in Python: None, or negative to count from the end."""
    shape = shape_of(operand)
    axis = canonical_axis(axis, len(shape))
    start, limit, _ = builtin_slice(start_index, limit_index).indices(shape[axis])
    starts, strides = _resized((0,) * len(shape), axis, start), _resized((1,) * len(shape), axis, stride)
    return slice(operand, starts, _resized(shape, axis, max(start, limit)), strides)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Take the part of operand at a known `index` along `axis`, which may count from the end.

    Raises: IndexError if it is out of range.
    """
    n = shape_of(operand)[canonical_axis(axis, ndim(operand), "index_in_dim: axis")]
    if not -n <= index < n:
        raise IndexError(f"index_in_dim: index {index} is out of range for axis {axis} of {aval_of(operand)}.")
    part = slice_in_dim(operand, index % n, index % n + 1, axis=axis)
    return part if keepdims else squeeze(part, (axis,))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> tuple[Array, ...]:
    """Split operand along `axis` into parts of `sizes`, which sum to its length.

    Raises: ValueError if they do not; both are named.
    """
    parts = static_shape(sizes, "split")
    return split_p.bind(operand, sizes=parts, axis=canonical_axis(axis, ndim(operand)))


def _split_type(x: ShapedArray, *, sizes: tuple[int, ...], axis: int) -> tuple[ShapedArray, ...]:
    if not 0 <= axis < x.ndim or sum(sizes) != x.shape[axis]:
        raise ValueError(f"split: sizes {sizes} must sum to the length of axis {axis} of {x}.")
    return tuple(x.update(shape=_resized(x.shape, axis, n)) for n in sizes)


split_p: Final = Primitive("split", _split_type, takes_keys=True)
