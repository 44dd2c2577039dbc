"""Lowering of gather, scatter, dynamic_slice and dynamic_update_slice.

Of windows out of bounds, StableHLO moves those of a gather inside and drops those of a scatter. The other modes are
emitted with these: a mask fills elements that a gather reads out of bounds, clamped indices move the windows of a
scatter inside.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.lowering import emit, hlo, physical
from tapeless.lowering.emit import in_float32, in_unsigned
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.physical import WordWriter
from tapeless.lowering.rules.reduction import (
    PROD,
    SUM,
    Operation,
    Reduction,
    extreme,
    is_narrow,
    operation,
    reduce,
)
from tapeless.lowering.xla_workarounds import in_place_loops
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.dimension_numbers import DimensionNumbers, window_sizes
from tapeless.tracer.primitives.indexing import GatherScatterMode
from tapeless.tracer.types import ShapedArray

# ---- indices -------------------------------------------------------------------------------------------------


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a signed dtype for indices of `dtype` that also holds sizes of axes: XLA clamps in the index's dtype."""
    bits = dtypes.bits_of(dtype) + (not dtypes.is_signed(dtype))
    return np.dtype(np.int32 if bits <= 32 else np.int64)


def _signed(f: Function, indices: Value, dtype: Any) -> Value:
    """Convert indices to a signed type, clamped to its greatest number, which is outside of every axis."""
    if indices.aval.dtype == np.uint64:
        greatest = f.constant(np.iinfo(np.int64).max, indices.aval)
        indices = f.op("minimum", [indices, greatest], indices.aval)
    return f.convert(indices, dtype)


def _starts(f: Function, indices: Sequence[Value], shape: Sequence[int], window: Sequence[int]) -> list[Value]:
    """Convert the scalar starts of a window to one type, as StableHLO requires, and clamp them so that it is inside.

    StableHLO moves windows inside as well, but XLA adds the starts of nested windows before it does that
    (docs/xla_defects.md, `nested_windows`).
    """
    dtype = np.result_type(np.int32, *[_wide(x.aval.dtype) for x in indices])
    rooms = [n - size for n, size in zip(shape, window, strict=True)]
    return [_moved_inside(f, x, room, dtype) for x, room in zip(indices, rooms, strict=True)]


def _moved_inside(f: Function, start: Value, room: int, dtype: np.dtype[Any]) -> Value:
    """Clamp a start to 0 .. `room`, in this dtype; a constant if it is known."""
    aval, known, room = start.aval.update(dtype=dtype), f.number(start), min(room, np.iinfo(dtype).max)
    if room == 0 or known is not None:
        return f.constant(min(max(int(known or 0), 0), room), aval)
    return f.op("clamp", [f.constant(0, aval), _signed(f, start, dtype), f.constant(room, aval)], aval)


def _last_starts(f: Function, indices: Value, index_map: Sequence[int], shape: Any, window: Any) -> Value:
    """Emit the greatest start whose window is inside the operand, for every index vector."""
    dtype = indices.aval.dtype
    last = np.array([min(shape[d] - window[d], np.iinfo(dtype).max) for d in index_map], dtype)
    vector = f.constant(last, indices.aval.update(shape=last.shape))
    return f.broadcast(vector, indices.aval.shape, [indices.aval.ndim - 1])


def _all_inside(f: Function, indices: Value, index_map: Sequence[int], shape: Any, window: Any) -> Value:
    """Clamp index vectors so that their windows are inside."""
    last = _last_starts(f, indices, index_map, shape, window)
    return f.op("clamp", [f.constant(0, indices.aval), indices, last], indices.aval)


def _is_one(indices: Value) -> bool:
    """Tell whether there is one index vector: XLA rewrites that to a dynamic slice, and merges it with others."""
    return 0 < indices.aval.size == indices.aval.shape[-1]


# ---- one window ----------------------------------------------------------------------------------------------


def _dynamic_slice(f: Function, outs: Any, x: Value, *starts: Value, slice_sizes: tuple[int, ...]) -> Any:
    return (_read(f, x, _starts(f, starts, x.aval.shape, slice_sizes), slice_sizes),)


def _read(f: Function, x: Value, starts: Sequence[Value], sizes: tuple[int, ...]) -> Value:
    """Emit the read of the window of these sizes that begins at `starts` and is inside."""
    part = f.op("dynamic_slice", [x, *starts], x.aval.update(shape=sizes), f"slice_sizes = {hlo.array(sizes)}")
    if f.dataflow is not None:
        f.dataflow.window(part.name, x.name, _places(f, starts))
    return part


def _places(f: Function, starts: Sequence[Value]) -> list[str | int]:
    """Return starts as numbers, or names if they are computed."""
    return [i.name if (known := f.number(i)) is None else int(known) for i in starts]


def _dynamic_update_slice(f: Function, outs: Any, x: Value, update: Value, *starts: Value) -> Any:
    return (_replaced(f, x, update, _starts(f, starts, x.aval.shape, update.aval.shape)),)


def _replaced(f: Function, x: Value, update: Value, starts: Sequence[Value]) -> Value:
    """Replace the window of x that begins at `starts` and is inside by `update`.

    Starts and updates that XLA could compute while it overwrites their operands are kept apart (dataflow.py). An update
    of one element is read before it is written, so it needs none.
    """
    flow = f.dataflow
    if flow is not None and update.aval.size > 1:
        places = _places(f, starts)
        starts = [in_place_loops.apart(f, i) if flow.may_read(i.name, x.name) else i for i in starts]
        update = in_place_loops.apart(f, update) if flow.may_read(update.name, x.name, places) else update
    return f.op("dynamic_update_slice", [x, update, *starts], x.aval)


emit.rules[i.dynamic_slice_p] = _dynamic_slice
emit.rules[i.dynamic_update_slice_p] = _dynamic_update_slice
in_place_loops.index_operands[i.dynamic_slice_p] = 1
in_place_loops.writes[i.dynamic_update_slice_p] = True

# ---- gather --------------------------------------------------------------------------------------------------


def _gather(
    f: Function,
    outs: Any,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: i.GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    unique_indices: bool,
    indices_are_sorted: bool,
    mode: GatherScatterMode,
    fill_value: Any,
) -> Any:
    d, out = dimension_numbers, outs[0]
    indices = _signed(f, indices, _wide(indices.aval.dtype))
    if mode is GatherScatterMode.CLIP and _is_one(indices):
        indices = _all_inside(f, indices, d.start_index_map, x.aval.shape, slice_sizes)
    names = ("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims")
    numbers = _numbers((*names, "start_indices_batching_dims"), d, indices)
    found = f.op(
        "gather",
        [x, indices],
        out,
        f"dimension_numbers = #stablehlo.gather<{numbers}>, "
        f"indices_are_sorted = {str(indices_are_sorted).lower()}, slice_sizes = {hlo.array(slice_sizes)}",
    )
    if mode is not GatherScatterMode.FILL_OR_DROP:
        return (found,)
    inside = _inside(f, indices, d.start_index_map, x.aval.shape, slice_sizes)
    batch = [k for k in range(out.ndim) if k not in d.offset_dims]
    fill = f.constant(_default_fill(out.dtype) if fill_value is None else fill_value, out)
    return (f.op("select", [f.broadcast(inside, out.shape, batch), found, fill], out),)


def _inside(f: Function, indices: Value, index_map: Sequence[int], shape: Any, window: Any) -> Value:
    """Emit, for every index vector, the predicate that its window is inside the operand."""
    low = f.compare(indices, f.constant(0, indices.aval), "GE")
    high = f.compare(indices, _last_starts(f, indices, index_map, shape, window), "LE")
    both = f.op("and", [low, high], low.aval)
    axis = indices.aval.ndim - 1
    return reduce(f, both, operation("and"), True, [axis], both.aval.update(shape=indices.aval.shape[:-1]))


def _default_fill(dtype: np.dtype[Any]) -> Any:
    if dtypes.is_inexact(dtype):
        return np.nan
    if dtypes.is_bool(dtype):
        return True
    limits = dtypes.iinfo(dtype)
    return limits.min if dtypes.is_signed(dtype) else limits.max


def _numbers(names: Sequence[str], d: DimensionNumbers, indices: Value) -> str:
    listed = [f"{name} = {list(dims)}" for name, dims in zip(names, d, strict=True) if dims]
    return ", ".join([*listed, f"index_vector_dim = {indices.aval.ndim - 1}"])


emit.rules[i.gather_p] = _gather
in_place_loops.index_operands[i.gather_p] = 1

# ---- scatter -------------------------------------------------------------------------------------------------


def _scatter(combine: Operation) -> Callable[..., Any]:
    """Return the emit rule of a scatter that combines an element and its update by `combine`."""

    def rule(
        f: Function,
        outs: Any,
        x: Value,
        indices: Value,
        updates: Value,
        *,
        dimension_numbers: i.ScatterDimensionNumbers,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: GatherScatterMode,
    ) -> Any:
        d, scalar = dimension_numbers, x.aval.update(shape=())
        indices = _signed(f, indices, _wide(indices.aval.dtype))
        if _is_one(indices) and updates.aval.size and x.aval.size:
            return (_scatter_of_one(f, combine, x, indices, updates, d, mode),)
        if not d.scatter_dims_to_operand_dims:
            d, x, indices = _with_an_index(f, d, x, indices)
        if mode is GatherScatterMode.CLIP:
            window = window_sizes(x.aval, updates.aval, d)
            indices = _all_inside(f, indices, d.scatter_dims_to_operand_dims, x.aval.shape, window)
        names = ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims")
        numbers = _numbers((*names, "scatter_indices_batching_dims"), d, indices)
        attributes = (
            f"indices_are_sorted = {str(indices_are_sorted).lower()}, "
            f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, unique_indices = {str(unique_indices).lower()}"
        )
        region = f.combination(combine, scalar)
        written = f.op("scatter", [x, indices, updates], x.aval, attributes, region)
        return (written if x.aval.shape == outs[0].shape else f.op("reshape", [written], outs[0]),)

    return rule


def _scatter_of_one(
    f: Function,
    combine: Operation,
    x: Value,
    indices: Value,
    updates: Value,
    d: i.ScatterDimensionNumbers,
    mode: GatherScatterMode,
) -> Value:
    """Emit a scatter of one index vector by a read and a write of its window, as XLA does, but with clamped starts."""
    index_map, shape, window = d.scatter_dims_to_operand_dims, x.aval.shape, window_sizes(x.aval, updates.aval, d)
    starts = [f.constant(0, indices.aval.update(shape=()))] * len(shape)
    vector = f.op("reshape", [indices], indices.aval.update(shape=(len(index_map),)))
    for k, axis in enumerate(index_map):
        element = f.slice(vector, [k], [k + 1])
        starts[axis] = f.op("reshape", [element], starts[axis].aval)
    inside = _starts(f, starts, shape, window)
    old = _read(f, x, inside, window)
    new = combine(f, old, f.op("reshape", [updates], old.aval))
    if mode is GatherScatterMode.FILL_OR_DROP:
        hits = _inside(f, indices, index_map, shape, window)
        hit = f.op("reshape", [hits], hits.aval.update(shape=()))
        new = f.op("select", [f.broadcast(hit, window), new, old], old.aval)
    return _replaced(f, x, new, inside)


def _with_an_index(
    f: Function, d: i.ScatterDimensionNumbers, x: Value, indices: Value
) -> tuple[i.ScatterDimensionNumbers, Value, Value]:
    """Give a scatter with empty index vectors an operand with a first axis of length 1, indexed by zeros.

    XLA writes only one of the windows whose index vectors are empty (jaxlib 0.10.2, CPU).
    """
    inserted, batching = (tuple(k + 1 for k in dims) for dims in (d.inserted_window_dims, d.operand_batching_dims))
    indexed = d._replace(
        inserted_window_dims=(0, *inserted), scatter_dims_to_operand_dims=(0,), operand_batching_dims=batching
    )
    zeros = f.constant(0, indices.aval.update(shape=(*indices.aval.shape[:-1], 1)))
    return indexed, f.op("reshape", [x], x.aval.update(shape=(1, *x.aval.shape))), zeros


# ---- scatters of sums and products of narrow numbers ---------------------------------------------------------

_INSIDE, _FLOAT32 = GatherScatterMode.PROMISE_IN_BOUNDS, np.dtype(np.float32)
_NO_PROMISES = {"unique_indices": False, "indices_are_sorted": False}


def _accumulated(reduction: Reduction) -> Callable[..., Any]:
    """Make the rule of a scatter whose narrow sums or products are accumulated in float32 and rounded once.

    The operand is converted only if updates may meet at an element, and if it is cheaper than to sum the updates of
    each place first: a loop that adds few updates to a long array does not touch all of it in every step.
    """
    scattered = _scatter(reduction[0])
    widened = in_float32(scattered)

    def rule(f: Function, outs: Any, x: Value, indices: Value, updates: Value, **params: Any) -> Any:
        n = _most_at_one_place(indices, **params)
        if not is_narrow(x.aval.dtype) or n < 2 or not updates.aval.size:
            return scattered(f, outs, x, indices, updates, **params)
        if n * n + 4 * updates.aval.size < x.aval.size and _meet_whole(x, updates, params["dimension_numbers"]):
            return _summed_first(f, reduction, x, indices, updates, **params)
        return widened(f, outs, x, indices, updates, **params)

    return rule


def _most_at_one_place(
    indices: Value, *, dimension_numbers: i.ScatterDimensionNumbers, unique_indices: bool, **_: Any
) -> int:
    """Count the index vectors that may name one place: all of a batch, unless they are promised to be distinct."""
    batching = dimension_numbers.scatter_indices_batching_dims
    lengths = [n for axis, n in enumerate(indices.aval.shape[:-1]) if axis not in batching]
    return 1 if unique_indices else math.prod(lengths)


def _meet_whole(x: Value, updates: Value, d: i.ScatterDimensionNumbers) -> bool:
    """Tell whether any two windows are either one place or disjoint, as index vectors say."""
    window = window_sizes(x.aval, updates.aval, d)
    whole = all(window[axis] in (1, x.aval.shape[axis]) for axis in d.scatter_dims_to_operand_dims)
    return whole and bool(d.scatter_dims_to_operand_dims) and not d.operand_batching_dims


def _summed_first(
    f: Function,
    reduction: Reduction,
    x: Value,
    indices: Value,
    updates: Value,
    *,
    dimension_numbers: i.ScatterDimensionNumbers,
    mode: GatherScatterMode,
    **promises: bool,
) -> Any:
    """Sum the updates of each place in float32, where its first index vector stands; every vector writes that sum.

    It costs as many comparisons as there are pairs of index vectors, and otherwise what the scatter costs.
    """
    (combine, initial), d, wide = reduction, dimension_numbers, updates.aval.update(dtype=_FLOAT32)
    window = window_sizes(x.aval, updates.aval, d)
    indices = _signed(f, indices, _wide(indices.aval.dtype))
    if mode is GatherScatterMode.CLIP:
        indices, mode = _all_inside(f, indices, d.scatter_dims_to_operand_dims, x.aval.shape, window), _INSIDE
    first, shape = _first_equal(f, indices), tuple([updates.aval.shape[k] for k in d.update_window_dims])
    none = f.constant(initial(_FLOAT32), wide.update(shape=(first.aval.size, *shape)))
    rows, promised = i.ScatterDimensionNumbers(d.update_window_dims, (0,), (0,)), {"mode": _INSIDE, **_NO_PROMISES}
    (sums,) = _scatter(combine)(
        f, [none.aval], none, first, f.convert(updates, _FLOAT32), dimension_numbers=rows, **promised
    )
    (of_each,) = _read_again(f, wide, sums, first, rows, (1, *shape))
    (old,) = _read_again(f, updates.aval, x, indices, d, window)
    new = f.convert(combine(f, f.convert(old, _FLOAT32), of_each), x.aval.dtype)
    return _scatter(_last_update)(f, [x.aval], x, indices, new, dimension_numbers=d, mode=mode, **promises)


def _first_equal(f: Function, indices: Value) -> Value:
    """Number the first index vector that equals each, as index vectors of one element."""
    *batch, m = indices.aval.shape
    n = math.prod(batch)
    vectors = f.op("reshape", [indices], indices.aval.update(shape=(n, m)))
    same = f.compare(f.broadcast(vectors, (n, n, m), (0, 2)), f.broadcast(vectors, (n, n, m), (1, 2)), "EQ")
    equal = reduce(f, same, operation("and"), True, [2], same.aval.update(shape=(n, n)))
    number = ShapedArray((n, n), np.dtype(np.int32))
    numbers = f.op("iota", [], number, "iota_dimension = 1 : i64")
    found = f.op("select", [equal, numbers, f.constant(n - 1, number)], number)
    first = reduce(f, found, operation("minimum"), n - 1, [1], number.update(shape=(n,)))
    return f.op("reshape", [first], number.update(shape=(*batch, 1)))


def _read_again(
    f: Function, out: ShapedArray, x: Value, indices: Value, d: i.ScatterDimensionNumbers, window: tuple[int, ...]
) -> Any:
    """The windows that a scatter writes, as its updates stand."""
    how: Any = {"mode": _INSIDE, "fill_value": None, **_NO_PROMISES}
    return _gather(f, [out], x, indices, dimension_numbers=i.GatherDimensionNumbers(*d), slice_sizes=window, **how)


def _last_update(f: Function, old: Value, new: Value) -> Value:
    return new


def _product(f: Function, old: Value, new: Value) -> Value:
    """Emit the product. Around the scatter, conversions would copy the operand in every step of a loop."""
    return in_unsigned(lambda f, outs, a, b: [PROD[0](f, a, b)])(f, [old.aval], old, new)[0]


emit.rules[i.scatter_p] = _scatter(_last_update)
emit.rules[i.scatter_add_p] = _accumulated(SUM)
emit.rules[i.scatter_mul_p] = _accumulated((_product, PROD[1]))
emit.rules[i.scatter_min_p] = _scatter(extreme("minimum"))
emit.rules[i.scatter_max_p] = _scatter(extreme("maximum"))
for _p in (i.scatter_p, i.scatter_add_p, i.scatter_mul_p, i.scatter_min_p, i.scatter_max_p):
    in_place_loops.writes[_p] = True

# ---- keys, as words along a last axis ------------------------------------------------------------------------

_FIRST = Literal(np.zeros((), np.int32))  # the start of windows along the axis of words, which they span


def _slice_words(w: WordWriter, x: Atom, *starts: Atom, slice_sizes: tuple[int, ...]) -> Any:
    return w.write(i.dynamic_slice_p, x, *starts, _FIRST, slice_sizes=(*slice_sizes, x.aval.shape[-1]))


def _update_words(w: WordWriter, x: Atom, update: Atom, *starts: Atom) -> Any:
    return w.write(i.dynamic_update_slice_p, x, update, *starts, _FIRST)


def _gather_words(
    w: WordWriter, x: Atom, indices: Atom, *, dimension_numbers: Any, slice_sizes: Any, **params: Any
) -> Any:
    """Gather words: every window has one more axis, the last."""
    last = len(dimension_numbers.offset_dims) + indices.aval.ndim - 1
    d = dimension_numbers._replace(offset_dims=(*dimension_numbers.offset_dims, last))
    return w.write(i.gather_p, x, indices, dimension_numbers=d, slice_sizes=(*slice_sizes, x.aval.shape[-1]), **params)


def _scatter_words(
    w: WordWriter, x: Atom, indices: Atom, updates: Atom, *, dimension_numbers: Any, **params: Any
) -> Any:
    last = updates.aval.ndim - 1
    d = dimension_numbers._replace(update_window_dims=(*dimension_numbers.update_window_dims, last))
    return w.write(i.scatter_p, x, indices, updates, dimension_numbers=d, **params)


physical.rules[i.dynamic_slice_p] = _slice_words
physical.rules[i.dynamic_update_slice_p] = _update_words
physical.rules[i.gather_p] = _gather_words
physical.rules[i.scatter_p] = _scatter_words
