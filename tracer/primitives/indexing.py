"""Reads and writes of parts of arrays at computed positions: slices, gather, scatter.

The primitives' positions count from the front. `dynamic_slice` and its like count negative ones from the end, as
JAX's do, unless `allow_negative_indices` is false: rules pass this, and the NumPy layer, which counts them itself.
Gather and scatter are StableHLO's, with the index vector always in the last axis of the indices, and with a
mode (`GatherScatterMode`) for windows that are not inside the operand.
"""

import enum
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.advice.widths import mismatch
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.dimension_numbers import GatherDimensionNumbers as GatherDimensionNumbers
from tapeless.tracer.primitives.dimension_numbers import ScatterDimensionNumbers as ScatterDimensionNumbers
from tapeless.tracer.primitives.dimension_numbers import (
    check_indices,
    faults,
    list_fields,
    normalize_dimension_numbers,
    scatter_faults,
    windows_shape,
)
from tapeless.tracer.primitives.elementwise import add, convert_element_type, lt, neg, rem, select_n
from tapeless.tracer.primitives.operands import canonical_axis, match_dtypes, ndim, shape_of
from tapeless.tracer.primitives.shape import concatenate, expand_dims, index_in_dim, squeeze, static_shape
from tapeless.tracer.types import ShapedArray, aval_of, by_protocol

# ---- one window, of a known size -----------------------------------------------------------------------------

StartIndices = Array | np.ndarray[Any, Any] | Sequence[ArrayLike]


def dynamic_slice(
    operand: ArrayLike,
    start_indices: StartIndices,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Slice a window of `slice_sizes` at `start_indices`, which may be traced; starts out of range are clamped.

    Args:
      operand: [...] of any dtype.
      start_indices: one integer per axis, as scalars or as one array.
      slice_sizes: one per axis, at most the size of operand there.
      allow_negative_indices: whether negative starts count from the end, for all axes or for each; else they are 0.
    Raises: TypeError if an index is no integer; ValueError if sizes do not fit operand; both are named.
    Source: StableHLO spec, dynamic_slice; negative starts as in JAX.
    """
    starts = _from_front(shape_of(operand), _scalars(start_indices), allow_negative_indices)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=static_shape(slice_sizes, "dynamic_slice"))[0]


def _dynamic_slice_type(
    x: ShapedArray, *start_indices: ShapedArray, slice_sizes: tuple[int, ...]
) -> tuple[ShapedArray, ...]:
    _check_window("dynamic_slice", x, slice_sizes, start_indices, f"operand {x}, slice_sizes {slice_sizes}")
    return (x.update(shape=slice_sizes),)


dynamic_slice_p: Final = Primitive("dynamic_slice", _dynamic_slice_type, takes_keys=True)


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: StartIndices,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Replace the window of `operand` at `start_indices` by `update`; starts out of range are clamped.

    Args:
      operand: [...] of any dtype.
      update: as many axes, none longer; dtype of operand.
      start_indices: one integer per axis, as scalars or as one array.
      allow_negative_indices: whether negative starts count from the end, for all axes or for each; else they are 0.
    Raises: TypeError if dtypes differ or an index is no integer; ValueError if update does not fit; both are named.
    Source: StableHLO spec, dynamic_update_slice; negative starts as in JAX.
    """
    starts = _from_front(shape_of(operand), _scalars(start_indices), allow_negative_indices)
    return dynamic_update_slice_p.bind(*match_dtypes(operand, update), *starts)[0]


def _dynamic_update_slice_type(
    x: ShapedArray, update: ShapedArray, *start_indices: ShapedArray
) -> tuple[ShapedArray, ...]:
    given = f"operand {x}, update {update}"
    _check_window("dynamic_update_slice", x, update.shape, start_indices, given)
    if x.dtype != update.dtype:
        told = f"dynamic_update_slice: dtypes differ: {given}, {_listed(start_indices)}. Convert with astype."
        raise mismatch(told, x, update)
    return (x.update(weak_type=x.weak_type and update.weak_type),)


dynamic_update_slice_p: Final = Primitive("dynamic_update_slice", _dynamic_update_slice_type, takes_keys=True)


def _check_window(
    name: str, x: ShapedArray, sizes: tuple[int, ...], starts: tuple[ShapedArray, ...], given: str
) -> None:
    given = f"{given}, {_listed(starts)}"
    if len(sizes) != x.ndim or any(k > n for k, n in zip(sizes, x.shape)):
        raise ValueError(f"{name}: the window must have the axes of the operand and be no larger: {given}.")
    if len(starts) != x.ndim:
        raise ValueError(f"{name}: there must be one start index per axis: {given}.")
    if any(s.shape or not dtypes.is_integer(s.dtype) for s in starts):
        raise TypeError(f"{name}: start indices must be integer scalars: {given}.")


def _listed(starts: tuple[ShapedArray, ...]) -> str:
    return f"start indices ({', '.join(map(str, starts))})"


def _scalars(start_indices: StartIndices) -> tuple[ArrayLike, ...]:
    if not isinstance(start_indices, (Array, np.ndarray)):
        try:
            return tuple(start_indices)
        except TypeError:
            told = f"start indices must be a sequence, one for each axis, not {start_indices!r}."
            raise TypeError(told) from None
    aval = aval_of(start_indices)
    if aval.ndim != 1:
        raise ValueError(f"start indices must be a sequence of scalars or an array of one axis, not {aval}.")
    return tuple(_element(start_indices, k) for k in range(aval.size))


def _element(vector: ArrayLike, k: int) -> ArrayLike:
    """Return element k of a vector, as a scalar."""
    return np.asarray(vector[k]) if isinstance(vector, np.ndarray) else index_in_dim(vector, k, keepdims=False)


def _from_front(
    shape: tuple[int, ...], starts: tuple[ArrayLike, ...], allow_negative: bool | Sequence[bool]
) -> tuple[ArrayLike, ...]:
    """Count negative `starts`, where they are allowed, from the end of their axis."""
    allowed = (allow_negative,) * len(shape) if isinstance(allow_negative, bool) else tuple(allow_negative)
    if len(allowed) != len(shape):
        raise ValueError(f"allow_negative_indices {allowed} must be one boolean, or one per axis of shape {shape}.")
    if len(starts) != len(shape):  # the typing rule raises a better error
        return starts
    return tuple(_counted(i, n) if may else i for i, n, may in zip(starts, shape, allowed))


def _counted(start: ArrayLike, n: int) -> ArrayLike:
    """Add n to `start` if it is negative, without an equation if it is known; only signed integers change."""
    start = by_protocol(start)
    aval = aval_of(start)
    if aval.shape or not dtypes.is_integer(aval.dtype) or dtypes.iinfo(aval.dtype).min == 0:
        return start
    if not isinstance(start, Array):
        return start if (known := int(np.asarray(start))) >= 0 else known + n
    if n > dtypes.iinfo(aval.dtype).max:
        start = convert_element_type(start, np.int32 if n <= np.iinfo(np.int32).max else np.int64)
    return select_n(lt(start, 0), start, add(start, n))


def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """Slice along one axis: see `dynamic_slice`."""
    shape = shape_of(operand)
    axis = canonical_axis(axis, len(shape))
    starts, sizes = _at(axis, start_index, len(shape)), (*shape[:axis], slice_size, *shape[axis + 1 :])
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """Take the part of `operand` at `index` along `axis`, which may be traced."""
    part = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return part if keepdims else squeeze(part, (axis,))


def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """Replace a slice along one axis: see `dynamic_update_slice`."""
    starts = _at(canonical_axis(axis, ndim(operand)), start_index, ndim(operand))
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """Replace the part of `operand` at `index` along `axis`; `update` has that axis with length 1, or lacks it."""
    axis = canonical_axis(axis, ndim(operand))
    whole = update if ndim(update) == ndim(operand) else expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(operand, whole, index, axis, allow_negative_indices=allow_negative_indices)


def _at(axis: int, start: ArrayLike, rank: int) -> tuple[ArrayLike, ...]:
    return tuple(start if d == axis else 0 for d in range(rank))


# ---- many windows: gather ------------------------------------------------------------------------------------


class GatherScatterMode(enum.Enum):
    """The treatment of windows out of range.

    CLIP: they are moved inside. FILL_OR_DROP: they read as a fill value, their updates are dropped.
    PROMISE_IN_BOUNDS: the caller promises that there are none; otherwise the result is undefined.
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    @staticmethod
    def from_any(mode: "str | GatherScatterMode | None") -> "GatherScatterMode":
        """Convert a name to a mode; "drop" and None mean "fill". Raises: ValueError listing the names."""
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode is None or mode == "drop":
            return GatherScatterMode.FILL_OR_DROP
        if mode not in (known := [m.value for m in GatherScatterMode]):
            raise ValueError(f"mode {mode!r} is none of {', '.join(map(repr, [*known, 'drop']))}.")
        return GatherScatterMode(mode)


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Array:
    """Gather windows of `operand`, one for each index vector.

    Args:
      operand: [...] of any dtype.
      start_indices: [batch.., k] integers: where windows begin, along the k axes in start_index_map.
      dimension_numbers: axes of the result that are the window's, axes of the window to drop, and so on.
      slice_sizes: shape of a window, one size per axis of operand.
      unique_indices, indices_are_sorted: promises that may save time.
      mode: treatment of windows that are not inside; if None PROMISE_IN_BOUNDS, or FILL_OR_DROP with a `fill_value`.
      fill_value: value that they read in that mode; if None nan, the least signed integer, the greatest unsigned, True.
    Returns: [batch.. and window axes], dtype of operand.
    Raises: TypeError if indices are no integers; ValueError naming what does not fit, and all shapes.
    Source: StableHLO spec, gather, C1 to C22; modes as in JAX.
    """
    if mode is None and fill_value is None:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    mode = GatherScatterMode.from_any(mode)
    filled = mode is GatherScatterMode.FILL_OR_DROP
    is_default = fill_value is None or fill_value != fill_value  # a nan in params is unequal to itself
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=normalize_dimension_numbers("gather", dimension_numbers, GatherDimensionNumbers),
        slice_sizes=static_shape(slice_sizes, "gather"),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=mode,
        fill_value=None if is_default or not filled else np.asarray(fill_value).item(),
    )[0]


def _gather_type(
    operand: ShapedArray,
    indices: ShapedArray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    unique_indices: bool,
    indices_are_sorted: bool,
    mode: GatherScatterMode,
    fill_value: Any,
) -> tuple[ShapedArray, ...]:
    given = f"operand {operand}, indices {indices}, slice_sizes {slice_sizes}, {list_fields(dimension_numbers)}"
    check_indices("gather", indices, given)
    fault = next(faults(operand, indices, dimension_numbers, slice_sizes), None)
    if fault:
        raise ValueError(f"gather: {fault}: {given}.")
    return (operand.update(shape=windows_shape(indices, dimension_numbers, slice_sizes)),)


gather_p: Final = Primitive("gather", _gather_type, takes_keys=True)


def index_take(
    src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int], mode: str | GatherScatterMode | None = None
) -> Array:
    """Gather the parts of `src` at positions along `axes`, which are given by one integer array each, of one shape.

    Args:
      mode: treatment of positions that are not inside, as in `gather`; if None, they count modulo the axis's size.
    Returns: [shape of the positions, axes of src that are left].
    """
    taken, shape = tuple(canonical_axis(a, ndim(src)) for a in axes), shape_of(src)
    if mode is None:
        idxs = [_modulo(i, shape[a]) for i, a in zip(idxs, taken, strict=True)]
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    vectors = stack_indices(idxs)
    batch = ndim(vectors) - 1
    offset = tuple(range(batch, batch + len(shape) - len(taken)))
    sizes = tuple(1 if d in taken else n for d, n in enumerate(shape))
    return gather(src, vectors, GatherDimensionNumbers(offset, tuple(sorted(taken)), taken), sizes, mode=mode)


def _modulo(index: ArrayLike, n: int) -> ArrayLike:
    """Compute integers modulo n, as int32 or wider: a narrower dtype may not hold n."""
    dtype = aval_of(index).dtype
    wide = np.dtype(np.int32) if dtypes.bits_of(dtype) < 32 else dtype
    if not isinstance(index, Array):
        return np.asarray(index, wide) % wide.type(max(n, 1))
    rest = rem(convert_element_type(index, wide), n)
    return select_n(lt(rest, 0), rest, add(rest, n)) if dtypes.is_signed(wide) else rest


def stack_indices(indices: Sequence[ArrayLike]) -> Array:
    """Stack index arrays of one shape and dtype to one array of index vectors, [..., len(indices)]."""
    return concatenate([expand_dims(i, (ndim(i),)) for i in indices], ndim(indices[0]))


# ---- many windows: scatter -----------------------------------------------------------------------------------


def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Replace windows of `operand` by `updates`; where windows overlap, one update wins.

    Args:
      operand: [...] of any dtype.
      scatter_indices: [batch.., k] integers: where windows begin, along the k axes in scatter_dims_to_operand_dims.
      updates: [batch.. and window axes], dtype of operand.
      dimension_numbers: the window axes of updates, axes of operand that windows lack, and so on.
      indices_are_sorted, unique_indices: promises that may save time; without the latter derivatives take longer.
      mode: treatment of windows that are not inside; FILL_OR_DROP if None.
    Returns: shape and dtype of operand.
    Raises: TypeError if dtypes differ or indices are no integers; ValueError naming what does not fit, and all shapes.
    Source: StableHLO spec, scatter, C1 to C24; modes as in JAX.
    """
    given = (operand, scatter_indices, updates, dimension_numbers)
    return _scatter(scatter_p, *given, indices_are_sorted, unique_indices, mode)


def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Add `updates` to windows of `operand`; numbers. Arguments and errors: see `scatter`."""
    given = (operand, scatter_indices, updates, dimension_numbers)
    return _scatter(scatter_add_p, *given, indices_are_sorted, unique_indices, mode)


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Subtract `updates` from windows of `operand`; numbers. Arguments and errors: see `scatter`."""
    operand, updates = match_dtypes(operand, updates)
    given = (operand, scatter_indices, neg(updates), dimension_numbers)
    return _scatter(scatter_add_p, *given, indices_are_sorted, unique_indices, mode)


def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Multiply windows of `operand` by `updates`; numbers. Arguments and errors: see `scatter`.

    It has a derivative with respect to `updates` only with unique_indices.
    """
    given = (operand, scatter_indices, updates, dimension_numbers)
    return _scatter(scatter_mul_p, *given, indices_are_sorted, unique_indices, mode)


def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Replace elements in windows of `operand` by smaller elements of `updates`: see `scatter`."""
    given = (operand, scatter_indices, updates, dimension_numbers)
    return _scatter(scatter_min_p, *given, indices_are_sorted, unique_indices, mode)


def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Replace elements in windows of `operand` by greater elements of `updates`: see `scatter`."""
    given = (operand, scatter_indices, updates, dimension_numbers)
    return _scatter(scatter_max_p, *given, indices_are_sorted, unique_indices, mode)


def _scatter(
    primitive: Primitive,
    operand: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: str | GatherScatterMode | None,
) -> Array:
    operand, updates = match_dtypes(operand, updates)
    return primitive.bind(
        operand,
        indices,
        updates,
        dimension_numbers=normalize_dimension_numbers(primitive.name, dimension_numbers, ScatterDimensionNumbers),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
    )[0]


def _scatter_primitive(name: str, *, numbers_only: bool = True, takes_keys: bool = False) -> Primitive:
    def typing_rule(
        operand: ShapedArray,
        indices: ShapedArray,
        updates: ShapedArray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        unique_indices: bool,
        indices_are_sorted: bool,
        mode: GatherScatterMode,
    ) -> tuple[ShapedArray, ...]:
        given = f"operand {operand}, indices {indices}, updates {updates}, {list_fields(dimension_numbers)}"
        if operand.dtype != updates.dtype:
            told = f"{name}: operand and updates differ in dtype: {given}. Convert with astype."
            raise mismatch(told, operand, updates)
        if numbers_only and dtypes.is_bool(operand.dtype):
            raise TypeError(f"{name}: the operand must be a number: {given}.")
        check_indices(name, indices, given)
        fault = next(scatter_faults(operand, indices, updates, dimension_numbers), None)
        if fault:
            raise ValueError(f"{name}: {fault}: {given}.")
        return (operand.update(weak_type=operand.weak_type and updates.weak_type),)

    return Primitive(name, typing_rule, takes_keys=takes_keys)


scatter_p: Final = _scatter_primitive("scatter", numbers_only=False, takes_keys=True)
scatter_add_p: Final = _scatter_primitive("scatter_add")
scatter_mul_p: Final = _scatter_primitive("scatter_mul")
scatter_min_p: Final = _scatter_primitive("scatter_min", numbers_only=False)
scatter_max_p: Final = _scatter_primitive("scatter_max", numbers_only=False)
