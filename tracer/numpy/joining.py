"""Joining, splitting and repeating: concatenate, stack, block, split, tile, repeat, resize, append, insert."""

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.advice.keyword_advice import advise_keywords
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.index_plan import from_the_front, index_dtype
from tapeless.tracer.numpy.indexing import getitem
from tapeless.tracer.numpy.logic import greater_equal
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    broadcast_to_shape,
    broadcasts_to,
    cast,
    check_no_out,
    concrete,
    promoted_dtypes,
)
from tapeless.tracer.numpy.reductions import cumsum, sum
from tapeless.tracer.numpy.shaping import atleast_1d, atleast_2d, atleast_3d, moveaxis, ravel
from tapeless.tracer.numpy.shaping import expand_dims as expand
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives import shape as shapes
from tapeless.tracer.primitives.operands import canonical_axes, canonical_axis, exact_integer, known_elements
from tapeless.tracer.primitives.shape import broadcast_in_dim, expand_dims, full, reshape, slice_in_dim
from tapeless.tracer.primitives.sorting import sort_key_val
from tapeless.tracer.types import aval_of, by_protocol, check_unmasked

# ---- joining -------------------------------------------------------------------------------------------------


@advise_keywords
def concatenate(arrays: Sequence[ArrayLike] | Array, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Join arrays along `axis`, or join their flattened elements if it is None.

    Args:
      arrays: a list or tuple, or an array that is split along its first axis.
      dtype: of the result; the common dtype if None.
    Raises: ValueError if there are none, or shapes differ in other axes; all are named; or `axis` is out of range.
      TypeError if `arrays` is no such sequence.
    """
    if isinstance(axis, (Array, np.ndarray)) and axis.ndim:
        raise TypeError("concatenate: the arrays must be one list, concatenate([x, y]), but one is given as axis.")
    xs = _promoted("concatenate", arrays, dtype)
    if axis is None:
        xs, axis = [reshape(x, (x.size,)) for x in xs], 0
    if not xs[0].shape:
        raise ValueError(f"{find_called('concatenate')}: arrays without axes cannot be joined. Use tnp.stack.")
    axis = canonical_axis(axis, xs[0].ndim, "concatenate: axis")
    rest = {x.shape[:axis] + x.shape[axis + 1 :] for x in xs}
    if len(rest) > 1 or len({x.ndim for x in xs}) > 1:
        raise ValueError(f"{find_called('concatenate')}: shapes must agree in all axes except {axis}: {_listed(xs)}.")
    return shapes.concatenate(xs, axis)


concat = concatenate


def _promoted(name: str, arrays: Sequence[ArrayLike] | Array, dtype: Any = None) -> list[Array]:
    if isinstance(arrays, (Array, np.ndarray)):
        arrays = list(unstack(arrays))
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"{find_called(name)}: a list or tuple of arrays is needed, not {type(arrays).__name__}.")
    if not arrays:
        raise ValueError(f"{find_called(name)}: at least one array is needed.")
    xs = promoted_dtypes(name, *arrays)
    return [as_array(x if dtype is None else cast(x, dtypes.canonical(dtype))) for x in xs]


def _listed(xs: Sequence[Array]) -> str:
    return ", ".join(str(aval_of(x)) for x in xs)


@advise_keywords
def stack(
    arrays: Sequence[ArrayLike] | Array, axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """Join arrays of one shape along a new axis, at position `axis` of the result.

    Args:
      arrays: n of shape [m..]; a list or tuple, or an array that is split along its first axis.
      dtype: of the result; the common dtype if None.
    Returns: [n, m..] for axis 0.
    Raises: ValueError if there are none, shapes differ, all are named, or `axis` is out of range;
      NotImplementedError for an `out`.
    """
    check_no_out("stack", out)
    xs = _promoted("stack", arrays, dtype)
    if len({x.shape for x in xs}) > 1:
        raise ValueError(f"stack: arrays must have the same shape: {_listed(xs)}.")
    axis = canonical_axis(axis, xs[0].ndim + 1, "stack: axis")
    return _stack(*xs, axis=axis)


@core.compound
def _stack(*xs: Array, axis: int) -> Array:
    return shapes.concatenate([expand_dims(x, (axis,)) for x in xs], axis)


def vstack(tup: Sequence[ArrayLike] | Array, dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the first axis, vectors as rows. Args, Raises: as for `concatenate`."""
    return concatenate([atleast_2d(x) for x in _parts("vstack", tup)], 0, dtype)


def hstack(tup: Sequence[ArrayLike] | Array, dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the second axis, vectors along the first. Args, Raises: as for `concatenate`."""
    xs = [atleast_1d(x) for x in _parts("hstack", tup)]
    return concatenate(xs, 0 if not xs or xs[0].ndim == 1 else 1, dtype)


def dstack(tup: Sequence[ArrayLike] | Array, dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the third axis, after reshaping [n] to [1, n, 1] and [m, n] to [m, n, 1].

    Args, Raises: as for `concatenate`.
    """
    return concatenate([atleast_3d(x) for x in _parts("dstack", tup)], 2, dtype)


def column_stack(tup: Sequence[ArrayLike] | Array) -> Array:
    """Stack vectors as the columns of a matrix, and join matrices side by side. Raises: as `concatenate`."""
    xs = [array_operand("column_stack", x) for x in _parts("column_stack", tup)]
    return concatenate([x if x.ndim > 1 else reshape(x, (x.size, 1)) for x in xs], 1)


def _parts(name: str, arrays: Any) -> Sequence[Any]:
    """Promote the arrays to join, so that a Python number takes their dtype without rounding to the default width."""
    if isinstance(arrays, (Array, np.ndarray)):
        return unstack(arrays)
    return promoted_dtypes(name, *arrays) if arrays else arrays


def block(arrays: Any) -> Array:
    """Join nested lists of blocks: the innermost lists along the last axis, the next along the axis before, and so on.

    Blocks with fewer axes get axes of size 1 before their own; dtypes are promoted.
    Raises: ValueError if a list is empty, or shapes do not fit.
    """
    depth = _depth(arrays)
    parts = iter(promoted_dtypes("block", *_flat(arrays)))
    blocks = _map_blocks(arrays, lambda _: as_array(next(parts)))
    ndim = max(depth, max(x.ndim for x in _flat(blocks)))
    return _joined(blocks, depth, ndim)


def _depth(arrays: Any) -> int:
    if isinstance(arrays, list) and not arrays:
        raise ValueError("block: a list of blocks is empty.")
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


def _map_blocks(arrays: Any, f: Any) -> Any:
    return [_map_blocks(x, f) for x in arrays] if isinstance(arrays, list) else f(arrays)


def _flat(arrays: Any) -> list[Any]:
    return [x for part in arrays for x in _flat(part)] if isinstance(arrays, list) else [arrays]


def _joined(blocks: Any, depth: int, ndim: int) -> Array:
    if not depth:
        return expand_dims(blocks, tuple(range(ndim - blocks.ndim)))
    return concatenate([_joined(b, depth - 1, ndim) for b in blocks], -depth)


# ---- splitting -----------------------------------------------------------------------------------------------


@one_program
def split(ary: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Split along `axis` into a number of equal parts, or before given positions.

    Args:
      indices_or_sections: the number of parts, or a sequence of positions: [2, 5] gives x[:2], x[2:5] and x[5:].
    Raises: ValueError if the axis does not divide into equal parts, or is out of range, or the number is less than 1.
    """
    x = array_operand("split", ary)
    axis = canonical_axis(axis, x.ndim)
    if np.ndim(indices_or_sections) == 0 and x.shape[axis] % _sections("split", indices_or_sections):
        raise ValueError(
            f"{find_called('split')}: axis {axis} of {x.aval} does not divide into {indices_or_sections} equal parts. "
            "Use array_split."
        )
    return array_split(x, indices_or_sections, axis)


@one_program
def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Split along `axis` into a number of parts, the first ones longer by 1 if needed, or before given positions.

    Raises: ValueError if the number is less than 1, or `axis` out of range.
    """
    x = array_operand("array_split", ary)
    axis = canonical_axis(axis, x.ndim)
    n = x.shape[axis]
    if np.ndim(indices_or_sections) == 0:
        count = _sections("array_split", indices_or_sections)
        short, longer = divmod(n, count)
        return list(shapes.split(x, [short + (k < longer) for k in range(count)], axis))
    check_unmasked(indices_or_sections, "array_split: indices_or_sections")
    places = np.asarray(indices_or_sections).tolist()
    bounds = [0, *[slice(p).indices(n)[1] for p in places], n]
    return [slice_in_dim(x, a, max(a, b), axis=axis) for a, b in itertools.pairwise(bounds)]


def _sections(name: str, given: Any) -> int:
    count = exact_integer(given, f"{name}: indices_or_sections")
    if count < 1:
        raise ValueError(f"{find_called(name)}: an array is cut into 1 part or more, not {count}.")
    return count


@one_program
def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Split along the second axis, vectors along the first. Args, Raises: as for `split`."""
    x = array_operand("hsplit", ary)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


@one_program
def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Split along the first axis. Args, Raises: as for `split`; ValueError if there are fewer than two axes."""
    ary = by_protocol(ary)
    if np.ndim(ary) < 2:
        raise ValueError("vsplit: an array is split into rows if it has at least two axes. Use split.")
    return split(ary, indices_or_sections, 0)


@one_program
def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Split along the third axis. Args, Raises: as for `split`."""
    return split(ary, indices_or_sections, 2)


@one_program
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split x into its slices along `axis`, without that axis.

    Raises: ValueError if x has no axes, or `axis` is out of range.
    """
    x = array_operand("unstack", x)
    if not x.ndim:
        raise ValueError(f"{find_called('unstack')}: an array without axes has no parts.")
    axis = canonical_axis(axis, x.ndim)
    parts = shapes.split(x, (1,) * x.shape[axis], axis) if x.shape[axis] else ()
    return tuple(shapes.squeeze(p, (axis,)) for p in parts)


# ---- repeating -----------------------------------------------------------------------------------------------


@one_program
def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """Repeat A as a whole, the given number of times along each axis.

    Args:
      reps: a number or several, for the last axes; axes of size 1 are added to A if it has fewer.
    Raises: ValueError if a number is negative.
    """
    x = array_operand("tile", A)
    counts = tuple(map(operator.index, shapes.as_sizes(reps)))
    if min(counts, default=0) < 0:
        raise ValueError(f"tile: reps must not be negative, but are {reps}.")
    counts = (1,) * (x.ndim - len(counts)) + counts
    x = expand_dims(x, tuple(range(len(counts) - x.ndim)))
    return _tile(x, counts=counts)


@core.compound
def _tile(x: Array, *, counts: tuple[int, ...]) -> Array:
    """Broadcast every axis [n] to [count, n], and merge both by a reshape."""
    between = tuple(n for pair in zip(counts, x.shape, strict=True) for n in pair)
    whole = broadcast_in_dim(x, between, tuple(range(1, 2 * x.ndim, 2)))
    return reshape(whole, tuple(k * n for k, n in zip(counts, x.shape, strict=True)))


@advise_keywords
def repeat(
    a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None
) -> Array:
    """Repeat every element along `axis`, or of the flat array, the given number of times.

    Args:
      repeats: a number or one for each element; known, unless total_repeat_length is given.
      total_repeat_length: length of the result, which is cut or continued with the last element.
    Raises: TypeError unless `repeats` are whole; ValueError if axis is out of range, or there is not one for each;
      ConcretizationTypeError if they are traced and there is no total_repeat_length.
    """
    x = array_operand("repeat", a)
    if axis is None or not x.ndim:
        x, axis = reshape(x, (x.size,)), axis or 0
    axis = canonical_axis(axis, x.ndim)
    n = x.shape[axis]
    if total_repeat_length is not None:
        return _repeat_to(x, repeats, axis, total_repeat_length)
    counts = concrete("repeat", repeats, "Give total_repeat_length, the length of the result.")
    if np.any(counts % 1):
        raise TypeError(f"repeat: repeats must be whole numbers, not {repeats!r:.80}.")
    if counts.size == 1:
        return _repeat(x, count=int(counts.reshape(())), axis=axis)
    if counts.shape != (n,):
        raise ValueError(f"repeat: {counts.size} numbers for the {n} elements along axis {axis} of {x.aval}.")
    return getitem(x, (slice(None),) * axis + (np.repeat(np.arange(n), counts),))


@core.compound
def _repeat(x: Array, *, count: int, axis: int) -> Array:
    shape = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
    whole = broadcast_in_dim(x, shape, tuple(d for d in range(len(shape)) if d != axis + 1))
    return reshape(whole, (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :]))


def _repeat_to(x: Array, repeats: ArrayLike, axis: int, length: int) -> Array:
    """Repeat elements to a known length: the position of result element k is the number of runs that end by k."""
    n = x.shape[axis]
    counts = broadcast_in_dim(array_operand("repeat", repeats), (n,), (0,) if np.ndim(repeats) else ())
    ends = expand(cumsum(counts), 0)
    places = sum(greater_equal(np.arange(length, dtype=np.int32)[:, None], ends), 1)
    return getitem(x, (slice(None),) * axis + (places,))


def resize(a: ArrayLike, new_shape: int | Sequence[int]) -> Array:
    """Make an array of `new_shape` from the flattened elements of a, repeated if there are too few.

    An array without elements gives zeros. Raises: ValueError if a size is negative.
    """
    x = ravel(a)
    shape = tuple(shapes.as_sizes(new_shape))
    size = int(np.prod(shape))
    if not x.size or not size:
        return full(shape, 0, x.dtype)
    return reshape(slice_in_dim(tile(x, -(-size // x.size)), 0, size), shape)


# ---- adding and removing elements ----------------------------------------------------------------------------


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Append `values` to arr along `axis`; both are flattened if None. Raises: as `concatenate`."""
    return concatenate([as_array(v) for v in promoted_dtypes("append", arr, values)], axis)


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """Insert `values` before positions along `axis`.

    Args:
      obj: an integer: `values` broadcast to the part arr[.., obj, ..], and are inserted before it; or integers, a slice
        or a mask, positions in arr: `values` broadcast to as many parts; one position may take several. Integers may be
        traced; those outside are then moved to the ends.
      axis: both are flattened if None.
    Raises: IndexError for a position outside; ValueError if `axis` is out of range or values do not broadcast;
      TypeError for other positions; ConcretizationTypeError for a traced mask.
    """
    x, v = (as_array(u) for u in promoted_dtypes("insert", arr, values))
    if axis is None:
        x, v, axis = reshape(x, (x.size,)), reshape(v, (v.size,)), 0
    axis = canonical_axis(axis, x.ndim)
    traced = isinstance(obj, Array) and known_elements(obj) is None and obj.ndim < 2 and dtypes.is_integer(obj.dtype)
    places: Any = obj if traced else _insertions(obj, x, axis)
    v = reshape(v, (1,) * (x.ndim - v.ndim) + v.shape)
    v = moveaxis(v, 0, axis) if not places.ndim and v.ndim == x.ndim else v
    count = v.shape[axis] if places.size == 1 and v.ndim == x.ndim else places.size
    wanted = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if not broadcasts_to(v.shape, wanted):
        raise ValueError(f"insert: values {aval_of(v)} do not broadcast to {wanted}, the parts to be inserted.")
    v = broadcast_to_shape(v, wanted)
    if isinstance(places, np.ndarray) and places.size == 1:
        at = int(places.reshape(()))
        return shapes.concatenate([slice_in_dim(x, 0, at, axis=axis), v, slice_in_dim(x, at, None, axis=axis)], axis)
    old, known = x.shape[axis], isinstance(places, np.ndarray)
    order = _inserted_order(old, places) if known else _order_by_traced(places, old=old, new=count)
    return getitem(shapes.concatenate([x, v], axis), (slice(None),) * axis + (order,))


def _insertions(obj: Any, x: Array, axis: int) -> np.ndarray[Any, Any]:
    """Return positions from 0 to the length of the axis: rank 0 for an integer, else [k]."""
    n = x.shape[axis]
    if isinstance(obj, slice):
        return np.arange(n)[obj]
    known = concrete("insert", obj, "Use tnp.where or lax.dynamic_update_slice.")
    if known.dtype.kind == "b" and known.ndim == 1:
        known = np.flatnonzero(known)
    if known.size and known.dtype.kind not in "iu":
        raise TypeError(f"insert: positions must be integers, a slice or a mask, not {obj!r:.80}.")
    if known.ndim > 1:
        raise ValueError(f"insert: positions must be a vector, not {aval_of(known)}.")
    outside = known[(known < -n) | (known > n)]
    if outside.size:
        raise IndexError(f"insert: position {outside.flat[0]} is out of bounds for axis {axis} of {x.aval}.")
    return np.where(known < 0, known + n, known).astype(np.int64)


def _inserted_order(n: int, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Compute the order of n old and the new parts of an insertion; parts inserted at one position stay in order."""
    rank = np.argsort(places, kind="stable")
    new = places.copy()
    new[rank] += np.arange(places.size)
    order = np.full(n + places.size, -1)
    order[new] = n + np.arange(places.size)
    order[order < 0] = np.arange(n)
    return order


@core.compound
def _order_by_traced(places: Any, *, old: int, new: int) -> Array:
    """Compute `_inserted_order` of traced positions: old part i sorts by 2i + 1, a new part before p by 2p."""
    dtype = index_dtype(2 * (old + new))
    at = lax.clamp(0, lax.convert_element_type(from_the_front(places, old), dtype), old)
    at = reshape(at, ()) if at.size == 1 else at
    keys = broadcast_in_dim(lax.mul(at, 2), (new,), tuple(range(at.ndim)))
    keys = shapes.concatenate([as_array(2 * np.arange(old, dtype=dtype) + 1), keys], 0)
    return sort_key_val(keys, as_array(np.arange(old + new, dtype=dtype)))[1]


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """Cut zero margins of the known array `filt`.

    Args:
      trim: "f" for the front, "b" for the back, "fb" for both.
      axis: one or several; all if None.
    Raises: ValueError for another `trim` or an axis out of range; ConcretizationTypeError if `filt` is traced.
    """
    if trim.lower() not in ("fb", "bf", "f", "b"):
        raise ValueError(f"trim_zeros: trim must be 'f', 'b' or 'fb', not {trim!r}.")
    x = array_operand("trim_zeros", filt)
    known = concrete("trim_zeros", filt, "Its length depends on the elements.")
    places = np.nonzero(known) if known.ndim else ()
    for d in canonical_axes(axis, x.ndim):
        first, last = (int(places[d].min()), int(places[d].max()) + 1) if places[d].size else (0, 0)
        front, back = (places[d].size == 0 or side in trim.lower() for side in "fb")
        x = slice_in_dim(x, first if front else 0, last if back else None, axis=d)
    return x
