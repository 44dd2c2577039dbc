"""Functions of shapes, and arrays of shapes, under the names of `jax.lax`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.primitives.contraction import transposed_padding
from tapeless.tracer.primitives.dimension_numbers import ConvDimensionNumbers, conv_dimension_numbers
from tapeless.tracer.primitives.elementwise import copy
from tapeless.tracer.primitives.operands import argsort, canonical_axis
from tapeless.tracer.primitives.shape import concatenate, expand_dims, index_in_dim, reshape
from tapeless.tracer.primitives.shape import slice_in_dim as sliced
from tapeless.tracer.primitives.windows import count, dilate_size, explicit_padding, per_axis
from tapeless.tracer.types import aval_of, is_arraylike

Shape = Sequence[int]

# ---- arrays --------------------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """Compute the shape to which arrays of these shapes broadcast.

    Raises: ValueError if there is none.
    """
    return tnp.broadcast_shapes(*shapes)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Add leading axes of length 1 to x, up to `rank` axes. Raises: ValueError if x has more."""
    shape = aval_of(x).shape
    if len(shape) > rank:
        raise ValueError(f"broadcast_to_rank: {aval_of(x)} has more than {rank} axes.")
    return reshape(x, (1,) * (rank - len(shape)) + shape)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcast an array to the shape of another, as NumPy does. Raises: ValueError if it does not fit."""
    return tnp.broadcast_to(arr, aval_of(like_arr).shape)


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Join arrays of one shape and dtype along a new axis.

    Raises: ValueError if there are none, their shapes differ or there is no such axis; TypeError if dtypes differ.
    """
    given = list(operands)
    if not given:
        raise ValueError("stack: there are no arrays to join.")
    shapes = {aval_of(x).shape for x in given}
    if len(shapes) > 1:
        raise ValueError(f"stack: operands differ in shape: {', '.join(str(aval_of(x)) for x in given)}.")
    place = canonical_axis(axis, aval_of(given[0]).ndim + 1)
    return concatenate([expand_dims(x, (place,)) for x in given], place)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Split x into its parts along an axis, which is dropped. Raises: ValueError if there is no such axis."""
    aval = aval_of(x)
    if not aval.ndim:
        raise ValueError(f"unstack: {aval} has no axis.")
    place = canonical_axis(axis, aval.ndim)
    return tuple(index_in_dim(x, i, place, keepdims=False) for i in range(aval.shape[place]))


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """Slice along one axis, with bounds as in Python, None or negative to count from the end, but not beyond the ends.

    Raises: IndexError if they are out of range, or the start is after the limit.
    """
    aval = aval_of(operand)
    n = aval.shape[canonical_axis(axis, aval.ndim)]
    start, limit = 0 if start_index is None else start_index, n if limit_index is None else limit_index
    start, limit = (i + n if i < 0 else i for i in (start, limit))
    if not 0 <= start <= limit <= n:
        raise IndexError(f"slice_in_dim: {start_index} to {limit_index} is out of range for axis {axis} of {aval}.")
    return sliced(operand, start, limit, stride, axis)


def stage(x: ArrayLike, /) -> Array:
    """Convert x to an array; while tracing, to a value of the program, even if x is known."""
    return copy(x)


def empty(shape: int | Shape, dtype: DTypeLike, *, out_sharding: None = None) -> Array:
    """Make an array whose elements are not specified: zeros. Raises: NotImplementedError for a sharding."""
    if out_sharding is not None:
        raise NotImplementedError(f"empty: out_sharding={out_sharding!r} is not supported, only None.")
    return tnp.zeros(shape, dtype)


def shape_as_value(shape: Shape) -> Any:
    """Make an array of a shape, int32[n], or int64[n] if a size is too large for int32."""
    wide = max(shape, default=0) > np.iinfo(np.int32).max
    return tnp.asarray(np.array(tuple(shape), np.int64 if wide else np.int32))


def dtype(x: Any) -> np.dtype[Any]:
    """Return the dtype of an array, a number, a type, or a name of a dtype.

    Raises: TypeError if it stands for none.
    """
    return aval_of(x).dtype if is_arraylike(x) else dtypes.canonical(x)


# ---- sizes of results ----------------------------------------------------------------------------------------


def reduce_window_shape_tuple(
    operand_shape: Shape,
    window_dimensions: Shape,
    window_strides: Shape,
    padding: Sequence[tuple[int, int]],
    base_dilation: Shape | None = None,
    window_dilation: Shape | None = None,
) -> tuple[int, ...]:
    """Compute the shape of `reduce_window` for these parameters; `padding` in pairs."""
    who, n = "reduce_window_shape_tuple", len(operand_shape)
    base, gaps = (
        per_axis(who, what, values, n)
        for what, values in (("base_dilation", base_dilation), ("window_dilation", window_dilation))
    )
    return tuple(map(count, operand_shape, window_dimensions, window_strides, padding, base, gaps))


def conv_shape_tuple(
    lhs_shape: Shape,
    rhs_shape: Shape,
    strides: Shape,
    pads: str | Sequence[tuple[int, int]],
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """Compute the shape of a convolution of lhs [n, c, ..] with rhs [o, c, ..]. Raises: ValueError for bad padding."""
    space, kernel = lhs_shape[2:], rhs_shape[2:]
    pairs = explicit_padding("conv_shape_tuple", pads, space, kernel, strides)
    sizes = [count(n, k, s, p, 1, 1) for n, k, s, p in zip(space, kernel, strides, pairs, strict=True)]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *sizes)


def conv_general_shape_tuple(
    lhs_shape: Shape,
    rhs_shape: Shape,
    window_strides: Shape,
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """Compute the shape of a convolution with `dimension_numbers`."""
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    found = conv_shape_tuple(_taken(lhs_shape, lhs), _taken(rhs_shape, rhs), window_strides, padding)
    return _taken(found, argsort(out))


def conv_transpose_shape_tuple(
    lhs_shape: Shape,
    rhs_shape: Shape,
    window_strides: Shape,
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """Compute the shape of `conv_transpose` with `dimension_numbers`."""
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    (n, _, *space), (o, _, *kernel) = _taken(lhs_shape, lhs), _taken(rhs_shape, rhs)
    if isinstance(padding, str):
        padding = [transposed_padding(k, s, padding) for k, s in zip(kernel, window_strides)]
    sizes = [
        dilate_size(m, s) + sum(p) - k + 1 for m, k, s, p in zip(space, kernel, window_strides, padding, strict=True)
    ]
    return _taken((n, o, *sizes), argsort(out))


def conv_general_permutations(dimension_numbers: Any) -> ConvDimensionNumbers:
    """Parse the three words of dimension numbers: the axes (batch, feature, space..) of lhs and out, those of rhs.

    Raises: ValueError if the words are not so.
    """
    rank = (1,) * len(dimension_numbers[0])
    return conv_dimension_numbers(rank, rank, dimension_numbers)


def _taken(shape: Shape, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(shape[i]) for i in axes)
