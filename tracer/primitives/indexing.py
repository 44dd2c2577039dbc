"""Reading and writing parts of arrays at positions that are computed: slices, gather, scatter.

Positions are nonnegative here: the NumPy layer counts negative ones from the end before it comes here.
Gather and scatter are StableHLO's, with the index vector always in the last axis of the indices, and with a
mode (`GatherScatterMode`) for windows that are not inside the operand.
"""

import enum
import operator
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.elementwise import neg
from tapeless.tracer.primitives.operands import canonical_axis, matched, ndim, shape_of
from tapeless.tracer.primitives.shape import concatenate, expand_dims, index_in_dim, squeeze, static_shape
from tapeless.tracer.types import ShapedArray, aval_of

# ---- one window, of a known size -----------------------------------------------------------------------------

StartIndices = ArrayLike | Sequence[ArrayLike]


def dynamic_slice(x: ArrayLike, start_indices: StartIndices, slice_sizes: Sequence[int]) -> Array:
    """The window of x of `slice_sizes` that begins at `start_indices`, moved inside x if it is not.

    Args:
      x: [...] of any dtype.
      start_indices: one integer per axis, as scalars or as one array.
      slice_sizes: one per axis, at most the size of x there.
    Raises: TypeError if an index is no integer; ValueError if sizes do not fit x; both are named.
    Source: StableHLO spec, dynamic_slice.
    """
    sizes = static_shape(slice_sizes, "dynamic_slice")
    return dynamic_slice_p.bind(x, *_scalars(start_indices), slice_sizes=sizes)[0]


def _dynamic_slice_type(
    x: ShapedArray, *start_indices: ShapedArray, slice_sizes: tuple[int, ...]
) -> tuple[ShapedArray, ...]:
    _check_window("dynamic_slice", x, slice_sizes, start_indices, f"operand {x}, slice_sizes {slice_sizes}")
    return (x.update(shape=slice_sizes),)


dynamic_slice_p = Primitive("dynamic_slice", _dynamic_slice_type)


def dynamic_update_slice(x: ArrayLike, update: ArrayLike, start_indices: StartIndices) -> Array:
    """x with the window that begins at `start_indices`, moved inside x if it is not, replaced by `update`.

    Args:
      x: [...] of any dtype.
      update: as many axes, none longer; dtype of x.
      start_indices: one integer per axis, as scalars or as one array.
    Raises: TypeError if dtypes differ or an index is no integer; ValueError if update does not fit; both are named.
    Source: StableHLO spec, dynamic_update_slice.
    """
    return dynamic_update_slice_p.bind(*matched(x, update), *_scalars(start_indices))[0]


def _dynamic_update_slice_type(
    x: ShapedArray, update: ShapedArray, *start_indices: ShapedArray
) -> tuple[ShapedArray, ...]:
    given = f"operand {x}, update {update}"
    _check_window("dynamic_update_slice", x, update.shape, start_indices, given)
    if x.dtype != update.dtype:
        raise TypeError(f"dynamic_update_slice: dtypes differ: {given}, {_listed(start_indices)}. Convert with astype.")
    return (x.update(weak_type=x.weak_type and update.weak_type),)


dynamic_update_slice_p = Primitive("dynamic_update_slice", _dynamic_update_slice_type)


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
        return tuple(start_indices)
    aval = aval_of(start_indices)
    if aval.ndim != 1:
        raise ValueError(f"start indices must be a sequence of scalars or an array of one axis, not {aval}.")
    return tuple(_element(start_indices, k) for k in range(aval.size))


def _element(vector: ArrayLike, k: int) -> ArrayLike:
    """Element k of a vector, as a scalar."""
    return np.asarray(vector[k]) if isinstance(vector, np.ndarray) else index_in_dim(vector, k, keepdims=False)


def dynamic_slice_in_dim(x: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0) -> Array:
    """`dynamic_slice` along one axis."""
    shape = shape_of(x)
    axis = canonical_axis(axis, len(shape))
    return dynamic_slice(x, _at(axis, start_index, len(shape)), (*shape[:axis], slice_size, *shape[axis + 1 :]))


def dynamic_index_in_dim(x: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True) -> Array:
    """The part of x at `index` along `axis`."""
    part = dynamic_slice_in_dim(x, index, 1, axis)
    return part if keepdims else squeeze(part, (axis,))


def dynamic_update_slice_in_dim(x: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int) -> Array:
    """`dynamic_update_slice` along one axis."""
    return dynamic_update_slice(x, update, _at(canonical_axis(axis, ndim(x)), start_index, ndim(x)))


def dynamic_update_index_in_dim(x: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int) -> Array:
    """x with the part at `index` along `axis` replaced; `update` has that axis with length 1, or lacks it."""
    axis = canonical_axis(axis, ndim(x))
    whole = update if ndim(update) == ndim(x) else expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(x, whole, index, axis)


def _at(axis: int, start: ArrayLike, rank: int) -> tuple[ArrayLike, ...]:
    return tuple(start if d == axis else 0 for d in range(rank))


# ---- many windows: gather ------------------------------------------------------------------------------------


class GatherScatterMode(enum.Enum):
    """What becomes of a window that is not inside the operand.

    CLIP: it is moved inside. FILL_OR_DROP: it reads as a fill value, its update is dropped.
    PROMISE_IN_BOUNDS: there is none, says the caller; otherwise the result is undefined.
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    @staticmethod
    def from_any(mode: "str | GatherScatterMode | None") -> "GatherScatterMode":
        """A mode by its name; "drop" is "fill", and so is None. Raises: ValueError listing the names."""
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode is None or mode == "drop":
            return GatherScatterMode.FILL_OR_DROP
        if mode not in (known := [m.value for m in GatherScatterMode]):
            raise ValueError(f"mode {mode!r} is none of {', '.join(map(repr, [*known, 'drop']))}.")
        return GatherScatterMode(mode)


class GatherDimensionNumbers(NamedTuple):
    """Which axes of operand, indices and result belong together in a gather. Source: StableHLO spec, gather."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which axes of operand, indices and updates belong together in a scatter; field by field those of the gather
    that reads what the scatter writes. Source: StableHLO spec, scatter."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


DimensionNumbers = GatherDimensionNumbers | ScatterDimensionNumbers


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
    """Windows of `operand`, one per index vector.

    Args:
      operand: [...] of any dtype.
      start_indices: [batch.., k] integers: where windows begin, along the k axes in start_index_map.
      dimension_numbers: axes of the result that are the window's, axes of the window to drop, and so on.
      slice_sizes: shape of a window, one size per axis of operand.
      unique_indices, indices_are_sorted: promises that may save time.
      mode: what becomes of windows that are not inside; FILL_OR_DROP if None.
      fill_value: what they read as in that mode; if None nan, the least signed integer, the greatest unsigned, True.
    Returns: [batch.. and window axes], dtype of operand.
    Raises: TypeError if indices are no integers; ValueError naming what does not fit, and all shapes.
    Source: StableHLO spec, gather, C1 to C22; modes as in JAX.
    """
    mode = GatherScatterMode.from_any(mode)
    filled = mode is GatherScatterMode.FILL_OR_DROP
    is_default = fill_value is None or fill_value != fill_value  # one nan is not another, as a parameter
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=_exact(dimension_numbers),
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
    **_: Any,
) -> tuple[ShapedArray, ...]:
    given = f"operand {operand}, indices {indices}, slice_sizes {slice_sizes}, {_named(dimension_numbers)}"
    _check_indices("gather", indices, given)
    fault = next(_faults(operand, indices, dimension_numbers, slice_sizes), None)
    if fault:
        raise ValueError(f"gather: {fault}: {given}.")
    return (operand.update(shape=_windows_shape(indices, dimension_numbers, slice_sizes)),)


gather_p = Primitive("gather", _gather_type)


def index_take(
    x: ArrayLike, indices: Sequence[ArrayLike], axes: Sequence[int], mode: str | GatherScatterMode | None = None
) -> Array:
    """The parts of x at positions along `axes`, which are given by one integer array each, of one shape.

    Returns: [shape of the positions, axes of x that are left].
    """
    taken = tuple(canonical_axis(a, ndim(x)) for a in axes)
    vectors = stack_indices(indices)
    batch, shape = ndim(vectors) - 1, shape_of(x)
    offset = tuple(range(batch, batch + len(shape) - len(taken)))
    sizes = tuple(1 if d in taken else n for d, n in enumerate(shape))
    return gather(x, vectors, GatherDimensionNumbers(offset, tuple(sorted(taken)), taken), sizes, mode=mode)


def stack_indices(indices: Sequence[ArrayLike]) -> Array:
    """Index arrays of one shape and dtype as one array of index vectors, [..., len(indices)]."""
    return concatenate([expand_dims(i, (ndim(i),)) for i in indices], ndim(indices[0]))


# ---- many windows: scatter -----------------------------------------------------------------------------------


class ScatterOptions(TypedDict, total=False):
    """Keyword arguments of the scatters: promises about the indices, and the mode; all are optional."""

    indices_are_sorted: bool
    unique_indices: bool
    mode: str | GatherScatterMode | None


def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    **options: Unpack[ScatterOptions],
) -> Array:
    """`operand` with windows replaced by `updates`; where windows overlap, one of them wins.

    Args:
      operand: [...] of any dtype.
      scatter_indices: [batch.., k] integers: where windows begin, along the k axes in scatter_dims_to_operand_dims.
      updates: [batch.. and window axes], dtype of operand.
      dimension_numbers: axes of updates that are the window's, axes of operand that windows lack, and so on.
      indices_are_sorted, unique_indices: promises that may save time; without the latter derivatives take longer.
      mode: what becomes of windows that are not inside; FILL_OR_DROP if None.
    Returns: shape and dtype of operand.
    Raises: TypeError if dtypes differ or indices are no integers; ValueError naming what does not fit, and all shapes.
    Source: StableHLO spec, scatter, C1 to C24; modes as in JAX.
    """
    return _scatter(scatter_p, operand, scatter_indices, updates, dimension_numbers, **options)


def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    **options: Unpack[ScatterOptions],
) -> Array:
    """`operand` with `updates` added to windows; numbers. Arguments and errors are those of `scatter`."""
    return _scatter(scatter_add_p, operand, scatter_indices, updates, dimension_numbers, **options)


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    **options: Unpack[ScatterOptions],
) -> Array:
    """`operand` with `updates` subtracted from windows; numbers. Arguments and errors are those of `scatter`."""
    operand, updates = matched(operand, updates)
    return scatter_add(operand, scatter_indices, neg(updates), dimension_numbers, **options)


def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    **options: Unpack[ScatterOptions],
) -> Array:
    """`operand` with windows multiplied by `updates`; numbers. Arguments and errors are those of `scatter`.

    It has a derivative in `updates` only with unique_indices.
    """
    return _scatter(scatter_mul_p, operand, scatter_indices, updates, dimension_numbers, **options)


def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    **options: Unpack[ScatterOptions],
) -> Array:
    """`operand` with windows lowered to `updates` where these are less. Arguments and errors are those of `scatter`."""
    return _scatter(scatter_min_p, operand, scatter_indices, updates, dimension_numbers, **options)


def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    **options: Unpack[ScatterOptions],
) -> Array:
    """`operand` with windows raised to `updates` where these are more. Arguments and errors are those of `scatter`."""
    return _scatter(scatter_max_p, operand, scatter_indices, updates, dimension_numbers, **options)


def _scatter(
    primitive: Primitive,
    operand: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    operand, updates = matched(operand, updates)
    return primitive.bind(
        operand,
        indices,
        updates,
        dimension_numbers=_exact(dimension_numbers),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
    )[0]


def _scatter_primitive(name: str, *, numbers_only: bool = True) -> Primitive:
    def typing_rule(
        operand: ShapedArray,
        indices: ShapedArray,
        updates: ShapedArray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **_: Any,
    ) -> tuple[ShapedArray, ...]:
        given = f"operand {operand}, indices {indices}, updates {updates}, {_named(dimension_numbers)}"
        if operand.dtype != updates.dtype:
            raise TypeError(f"{name}: operand and updates differ in dtype: {given}. Convert with astype.")
        if numbers_only and dtypes.is_bool(operand.dtype):
            raise TypeError(f"{name}: the operand must be a number: {given}.")
        _check_indices(name, indices, given)
        fault = next(_scatter_faults(operand, indices, updates, dimension_numbers), None)
        if fault:
            raise ValueError(f"{name}: {fault}: {given}.")
        return (operand.update(weak_type=operand.weak_type and updates.weak_type),)

    return Primitive(name, typing_rule)


scatter_p = _scatter_primitive("scatter", numbers_only=False)
scatter_add_p = _scatter_primitive("scatter_add")
scatter_mul_p = _scatter_primitive("scatter_mul")
scatter_min_p = _scatter_primitive("scatter_min", numbers_only=False)
scatter_max_p = _scatter_primitive("scatter_max", numbers_only=False)


# ---- what the types of gather and scatter have in common -----------------------------------------------------


def window_sizes(operand: ShapedArray, updates: ShapedArray, d: ScatterDimensionNumbers) -> tuple[int, ...]:
    """Shape of the windows that a scatter writes, one size per axis of the operand."""
    sizes = iter([updates.shape[i] for i in d.update_window_dims])
    single = (*d.inserted_window_dims, *d.operand_batching_dims)
    return tuple(1 if i in single else next(sizes) for i in range(operand.ndim))


def _exact(d: Any) -> Any:
    return type(d)(*(tuple(operator.index(i) for i in dims) for dims in d))


def _named(d: DimensionNumbers) -> str:
    return ", ".join(f"{name} {dims}" for name, dims in zip(d._fields, d) if dims)


def _check_indices(name: str, indices: ShapedArray, given: str) -> None:
    if not dtypes.is_integer(indices.dtype) or not indices.ndim:
        raise TypeError(f"{name}: indices must be integers, with index vectors in the last axis: {given}.")


def _windows_shape(indices: ShapedArray, d: DimensionNumbers, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of windows of `sizes` at `indices`: batch axes of the indices, window axes where `d` says."""
    window, dropped, _, batching, _ = d
    offsets = iter([n for i, n in enumerate(sizes) if i not in dropped and i not in batching])
    batch = iter(indices.shape[:-1])
    rank = indices.ndim - 1 + len(window)
    return tuple(next(offsets) if i in window else next(batch) for i in range(rank))


def _increasing(dims: tuple[int, ...], rank: int) -> bool:
    return all(a < b for a, b in pairwise(dims)) and _distinct(dims, rank)


def _distinct(dims: tuple[int, ...], rank: int) -> bool:
    return len(set(dims)) == len(dims) and all(0 <= i < rank for i in dims)


def _number_faults(x: ShapedArray, indices: ShapedArray, d: DimensionNumbers) -> Iterator[str]:
    """What is wrong with dimension numbers, the constraints in order; each may lean on those before."""
    window, dropped, index_map, batching, indices_batching = d
    n_window, n_dropped, n_map, n_batching, n_indices_batching = d._fields
    if x.ndim != len(window) + len(dropped) + len(batching):
        yield f"{n_window}, {n_dropped} and {n_batching} must together be as many as the operand has axes"
    if not _increasing(window, indices.ndim - 1 + len(window)):
        yield f"{n_window} must be increasing axes of the windows' array"
    for name, dims in ((n_dropped, dropped), (n_batching, batching)):
        if not _increasing(dims, x.ndim):
            yield f"{name} must be increasing axes of the operand"
    if not _distinct(dropped + batching, x.ndim):
        yield f"{n_dropped} and {n_batching} must not share an axis"
    if not _distinct(index_map + batching, x.ndim):
        yield f"{n_map} and {n_batching} must be distinct axes of the operand"
    if len(index_map) != indices.shape[-1]:
        yield f"{n_map} must name as many axes as the last axis of the indices is long"
    if not _distinct(indices_batching, indices.ndim - 1):
        yield f"{n_indices_batching} must be distinct axes of the indices other than the last"
    if [x.shape[i] for i in batching] != [indices.shape[i] for i in indices_batching]:
        yield f"{n_batching} and {n_indices_batching} must name axes of equal lengths"


def _faults(x: ShapedArray, indices: ShapedArray, d: DimensionNumbers, sizes: tuple[int, ...]) -> Iterator[str]:
    if len(sizes) != x.ndim or any(k > n for k, n in zip(sizes, x.shape)):
        yield "a window must have the axes of the operand and be no larger"
    yield from _number_faults(x, indices, d)
    if any(sizes[i] > 1 for i in (*d[1], *d[3])):
        yield f"a window must have size 1 along {d._fields[1]} and {d._fields[3]}"


def _scatter_faults(
    x: ShapedArray, indices: ShapedArray, updates: ShapedArray, d: ScatterDimensionNumbers
) -> Iterator[str]:
    yield from _number_faults(x, indices, d)
    if updates.ndim != indices.ndim - 1 + len(d.update_window_dims):
        yield "updates must have the axes of the indices but the last, and update_window_dims"
    sizes = window_sizes(x, updates, d)
    if _windows_shape(indices, d, sizes) != updates.shape:
        yield "updates and indices must agree in the axes that are not the window's"
    if any(k > n and i not in d.inserted_window_dims for i, (k, n) in enumerate(zip(sizes, x.shape))):
        yield "a window must be no larger than the operand"
