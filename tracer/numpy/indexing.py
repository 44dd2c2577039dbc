"""Indexed reads: `x[...]`, take and take_along_axis; index_plan.py analyses the indices.

A known integer is a slice and a reshape; eagerly it is an operand, so that `for i in range(n): x[i]` compiles one
program. Traced positions outside of the array are clipped to its ends, as in JAX.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import core, dtypes, source
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.arithmetic import maximum, remainder
from tapeless.tracer.numpy.index_plan import (
    BodyIndexError,
    Cut,
    IndexPlan,
    SingleBooleanError,
    WindowError,
    from_the_front,
    index_dtype,
    inside,
    plan_index,
    widen_indices,
    window_axes,
    without_booleans,
)
from tapeless.tracer.numpy.promotion import array_operand, broadcast_to_shape, check_no_out, check_operands
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.indexing import GatherDimensionNumbers, GatherScatterMode, dynamic_slice, gather
from tapeless.tracer.primitives.operands import canonical_axis
from tapeless.tracer.primitives.shape import concatenate, expand_dims, full, full_like, reshape, reshape_p, rev, slice_p
from tapeless.tracer.primitives.shape import slice as cut_out
from tapeless.tracer.types import ShapedArray, aval_of, by_protocol, exact

Mode = str | GatherScatterMode | None

# ---- x[index] ------------------------------------------------------------------------------------------------


def getitem(x: Array, index: Any) -> Array:
    """Return x[index], by NumPy's rules.

    Raises: IndexError for known positions outside of x, or too many; TypeError for what is no index.
    """
    if type(index) is int and x.aval.shape:
        if index < 0:
            _check_in_body(x, (index,))
        return _row(x, index)
    if type(index) is tuple:
        _check_in_body(x, index)
    try:
        plan, positions = plan_index(x.aval, index)
    except (SingleBooleanError, WindowError, BodyIndexError) as error:
        otherwise = _OTHERWISE[type(error)]
    else:
        if positions and core.is_in_body(core.current_trace()):
            if not any(p.shape for p in positions):
                return _read_in_body(x, index)
            if _is_asked_by_user(2):
                return _total_reads().read_at_arrays(x, index)
        return read_plan(x, plan, positions)
    return otherwise(x, index)  # outside of the except clause, so that errors are not chained to that one


def _read_with_booleans(x: Array, index: Any) -> Array:
    axes, index = without_booleans(x.ndim, index)
    return getitem(expand_dims(x, axes), index)


def _read_with_windows(x: Array, index: Any) -> Array:
    return getitem(*windows().without_windows(x, index))


def _check_in_body(x: Array, items: tuple[Any, ...]) -> None:
    """Check that user code in an index-language body reads by no negative number. Raises: IndexError."""
    negative = [i for i in items if type(i) is int and i < 0]
    if negative and core.is_in_body(core.current_trace()) and _is_asked_by_user(3):
        raise IndexError(
            f"index {negative[0]} of {x.aval}: negative numbers are outside in a body, so that A[i - 1] is 0 at i = 0. "
            f"The element that is {-negative[0]} before the end of an axis of length n is A[n - {-negative[0]}].\n"
            f"  At {source.describe_here()}"
        )


def _is_asked_by_user(depth: int) -> bool:
    """Tell whether the frame `depth` calls above, which wrote `x[...]`, is user code, not a function of Tapeless."""
    frame = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]  # the documented cheap way to a frame
    return source.include_frame(frame)


def _read_in_body(x: Array, index: Any) -> Any:
    """Read x by index variables of an index-language body: elements outside of x are 0."""
    try:
        return _total_reads().read(x, index)
    except IndexError as error:
        source.name_line(error)
        raise


def _total_reads() -> Any:
    """Import the module of total reads in index-language bodies; tracing a body has loaded it."""
    return importlib.import_module("tapeless.tracer.indices.reads")


_OTHERWISE: Final[dict[type[Exception], Callable[[Array, Any], Any]]] = {
    SingleBooleanError: _read_with_booleans,
    WindowError: _read_with_windows,
    BodyIndexError: _read_in_body,
}


def windows() -> Any:
    """Import the module of index windows; making a window has loaded it."""
    return importlib.import_module("tapeless.tracer.numpy.dynamic_windows")


def _row(x: Array, i: int) -> Array:
    aval = x.aval
    shape = aval.shape
    n = shape[0]
    if not 0 <= i < n:
        i = inside(aval, 0, i)
    if core.is_evaluating():
        return _window(x, index_dtype(n).type(i), axes=(0,), sizes=(1, *shape[1:]), shape=shape[1:])
    rest = (0,) * (len(shape) - 1)
    part = slice_p.bind(x, start_indices=(i, *rest), limit_indices=(i + 1, *shape[1:]), strides=(1,) * len(shape))[0]
    return reshape_p.bind(part, shape=shape[1:])[0]


def read_plan(
    x: Array, plan: IndexPlan, positions: Sequence[Any], mode: Mode = GatherScatterMode.CLIP, fill: Any = None
) -> Array:
    """Read the elements that a plan names; `mode` applies to positions that are not known to be inside.

    Raises: IndexError if an element is to be read along an axis that has none.
    """
    if positions:
        _check_not_empty(x.aval, plan)
        mode = GatherScatterMode.PROMISE_IN_BOUNDS if plan.in_bounds else GatherScatterMode.from_any(mode)
        return _read_positions(x, *positions, plan=plan, mode=mode, fill=fill)
    if core.is_evaluating() and all(isinstance(e, int) or e.step == 1 for e in plan.entries if e is not None):
        return _read_window(x, plan)
    return _read_known(x, plan=plan)


def _check_not_empty(aval: ShapedArray, plan: IndexPlan) -> None:
    empty = [axis for axis in plan.taken if not aval.shape[axis]]
    if empty and 0 not in plan.shape:
        raise IndexError(f"an index is out of bounds for axis {empty[0]} of {aval}, which has no element to read.")


def _read_window(x: Array, plan: IndexPlan) -> Array:
    """Read a contiguous part with its start as an operand, so that one program serves all starts."""
    starts = {a: e if isinstance(e, int) else e.start for a, e in enumerate(plan.entries) if e is not None}
    sizes = tuple(1 if isinstance(e, int) else e.size for e in plan.entries if e is not None)
    moved = tuple(a for a, start in starts.items() if start)
    places = [index_dtype(x.aval.shape[a]).type(starts[a]) for a in moved]
    return _window(x, *places, axes=moved, sizes=sizes, shape=plan.shape)


@core.compound
def _window(x: Array, *starts: Any, axes: tuple[int, ...], sizes: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    dtype = starts[0].dtype if starts else np.dtype("int32")
    places: list[Any] = [exact(0, dtype)] * len(sizes)
    for axis, start in zip(axes, starts, strict=True):
        places[axis] = start
    return reshape(dynamic_slice(x, places, sizes, allow_negative_indices=False), shape)


@core.compound
def _read_known(x: Array, *, plan: IndexPlan) -> Array:
    return reshape(_cut(x, plan), plan.shape)


def _cut(x: Array, plan: IndexPlan) -> Array:
    """Slice x by the slices and known integers of a plan; axes whose positions are operands stay whole."""
    spans = [_span(e, n) for e, n in zip(plan.entries, x.aval.shape, strict=True)]
    starts, limits, steps = zip(*spans, strict=True) if spans else ((), (), ())
    backwards = tuple(a for a, e in enumerate(plan.entries) if isinstance(e, Cut) and e.step < 0 and e.size > 1)
    part = cut_out(x, starts, limits, steps)
    return rev(part, backwards) if backwards else part


def _span(entry: Cut | int | None, n: int) -> tuple[int, int, int]:
    if entry is None:
        return 0, n, 1
    if isinstance(entry, int):
        return entry, entry + 1, 1
    return (entry.low, entry.limit, abs(entry.step)) if entry.size else (0, 0, 1)


@core.compound
def _read_positions(x: Array, *positions: Any, plan: IndexPlan, mode: GatherScatterMode, fill: Any) -> Array:
    if not all(plan.shape):
        return full_like(x, 0, shape=plan.shape)  # x may be empty, and too small for the window of a gather
    part = _cut(x, plan)
    taken, shape = plan.taken, part.aval.shape
    sizes = tuple(1 if axis in taken else n for axis, n in enumerate(shape))
    if not plan.block and mode is not GatherScatterMode.FILL_OR_DROP:
        places = _places(len(shape), taken, positions)
        return reshape(dynamic_slice(part, places, sizes, allow_negative_indices=False), plan.shape)
    numbers = GatherDimensionNumbers(tuple(at for _, at in window_axes(plan)), taken, taken)
    return reshape(
        gather(part, index_vectors(positions, plan.block), numbers, sizes, mode=mode, fill_value=fill), plan.shape
    )


def _places(ndim: int, taken: tuple[int, ...], positions: Sequence[Any]) -> list[Any]:
    same = _same_dtype(positions)
    zero = exact(0, same[0].dtype)
    return [same[taken.index(axis)] if axis in taken else zero for axis in range(ndim)]


def index_vectors(positions: Sequence[Any], block: tuple[int, ...]) -> Any:
    """Stack arrays of positions, broadcast to `block`, to index vectors: [block.., number of positions]."""
    same = _same_dtype(positions)
    if all(isinstance(p, np.ndarray) for p in same):
        return np.stack([np.broadcast_to(p, block) for p in same], -1)
    columns = [reshape(broadcast_to_shape(p, block), (*block, 1)) for p in same]
    return columns[0] if len(columns) == 1 else concatenate(columns, len(block))


def _same_dtype(positions: Sequence[Any]) -> list[Any]:
    found = {p.dtype for p in positions}
    if len(found) == 1:
        return list(positions)
    wide = np.dtype("int64" if any(dtypes.bits_of(d) > 32 or d == np.uint32 for d in found) else "int32")
    return [p.astype(wide) if isinstance(p, np.ndarray) else convert_element_type(p, wide) for p in positions]


# ---- take and relatives --------------------------------------------------------------------------------------


@one_program
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """Take elements at positions along `axis`.

    Args:
      indices: [k..] integers; negative ones count from the end, but are 0 if mode is "clip".
      axis: the array is flattened if None.
      mode: "fill" (the default; positions outside read as `fill_value`), "clip" or "wrap".
      unique_indices, indices_are_sorted: promises, without effect.
      fill_value: if None, nan, or the least integer of a signed dtype, the greatest of an unsigned one.
    Returns: [axes of a before, k.., axes of a after].
    Raises: TypeError if indices are not integers, ValueError if axis is out of range, or there is no such mode.
    """
    check_no_out("take", out)
    if mode != "wrap":
        GatherScatterMode.from_any(mode)
    x, indices = array_operand("take", a), by_protocol(indices)
    check_operands("take", x, indices)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis = canonical_axis(axis, x.ndim)
    if dtypes.is_bool(aval_of(indices).dtype):  # taken as 0 and 1, not as a mask
        known = isinstance(indices, (bool, np.ndarray, np.generic))
        indices = np.asarray(indices, np.int32) if known else convert_element_type(indices, np.int32)
    if mode == "wrap":
        indices, mode = _wrapped(indices, x.shape[axis]), "clip"
    elif mode in ("clip", GatherScatterMode.CLIP):
        indices = maximum(indices, 0) if isinstance(indices, Array) else np.maximum(indices, 0)
    plan, positions = plan_index(x.aval, (slice(None),) * axis + (indices,), check=False)
    return read_plan(x, plan, positions, mode, fill_value)


def _wrapped(indices: ArrayLike, n: int) -> Any:
    """Return positions modulo n, as int32 or wider, since a narrow dtype may not hold n."""
    if not isinstance(indices, Array):
        return widen_indices(indices) % n
    narrow = dtypes.bits_of(indices.dtype) < 32
    return remainder(convert_element_type(indices, np.int32) if narrow else indices, n)


@one_program
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Take elements along `axis` at positions that are given for each index of the other axes.

    Args:
      arr: [.., n, ..].
      indices: [.., k, ..] integers; other axes broadcast with those of arr.
      axis: the array is flattened if None.
      mode: "fill" (the default; positions outside read as `fill_value`), "clip", or "one_hot": they read as 0.
      fill_value: as in `take`.
      wrap_negative_indices: whether negative indices count from the end, as by default; else they are outside.
    Returns: [.., k, ..].
    Raises: TypeError if indices are not integers; ValueError if the number of axes differs, both shapes are named, the
      other axes do not broadcast, or there is no such axis or mode.
    """
    x, positions = array_operand("take_along_axis", arr), array_operand("take_along_axis", indices)
    if not dtypes.is_integer(positions.dtype):
        raise TypeError(f"take_along_axis: indices must be integers, not {positions.aval}.")
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    if mode == "one_hot":
        mode, fill_value = "fill", 0
    if x.ndim != positions.ndim:
        raise ValueError(f"take_along_axis: {x.aval} and indices {positions.aval} must have as many axes.")
    return _take_along(
        x,
        positions,
        axis=canonical_axis(axis, x.ndim),
        mode=GatherScatterMode.from_any(mode),
        fill=fill_value,
        wrap=wrap_negative_indices in (None, True),
    )


@core.compound
def _take_along(x: Array, positions: Array, *, axis: int, mode: GatherScatterMode, fill: Any, wrap: bool) -> Array:
    """Gather with all other axes as batch axes; axes of length 1 in x that broadcast are part of the window."""
    shape = _along_shape(x, positions, axis)
    if 0 in shape:
        return full(shape, 0, x.dtype)
    positions = broadcast_to_shape(from_the_front(positions, x.shape[axis], wrap), shape)
    batch = tuple(d for d in range(x.ndim) if (d != axis and x.shape[d] != 1) or (d != axis and shape[d] == 1))
    single = tuple(d for d in range(x.ndim) if d not in batch)
    numbers = GatherDimensionNumbers((), single, (axis,), batch, batch)
    return gather(x, reshape(positions, (*shape, 1)), numbers, (1,) * x.ndim, mode=mode, fill_value=fill)


def _along_shape(x: Array, positions: Array, axis: int) -> tuple[int, ...]:
    sizes = [(n, k) for d, (n, k) in enumerate(zip(x.shape, positions.shape, strict=True)) if d != axis]
    if any(n != k and 1 not in (n, k) for n, k in sizes):
        raise ValueError(f"take_along_axis: {x.aval} and indices {positions.aval} must broadcast but in axis {axis}.")
    joint = [max(n, k) if 0 not in (n, k) else 0 for n, k in sizes]
    joint[axis:axis] = [positions.shape[axis]]
    return tuple(joint)
