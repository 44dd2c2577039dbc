"""Index plans: NumPy's rules for `x[...]` (basic, advanced, boolean), analysed once for reads and updates.

An index is read from left to right into one entry per axis: `Cut` (a slice), `int`, or an array of positions; None
adds an axis. Integers and arrays of positions are "advanced" as soon as one of them has an axis or is traced: they
are broadcast together, and their axes replace them in place, or come first if a slice stands between them.
Source: NumPy's user guide, "Indexing on ndarrays".
"""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer
from tapeless.tracer.errors import NonConcreteBooleanIndexError, TracerIntegerConversionError
from tapeless.tracer.numpy.promotion import common_shape, concrete, format_shape
from tapeless.tracer.primitives.elementwise import add, convert_element_type, lt, select_n
from tapeless.tracer.primitives.elementwise import min as lax_min
from tapeless.tracer.source import describe_here
from tapeless.tracer.types import ShapedArray, aval_of, check_unmasked

_MASK_HELP = "Use tnp.where(mask, x, other) instead of x[mask], or tnp.nonzero(mask, size=...) for positions."


class Cut(NamedTuple):
    """A slice of an axis: the `size` elements start, start + step, ..."""

    start: int
    size: int
    step: int

    @property
    def low(self) -> int:
        """The least position of the slice."""
        return self.start if self.step > 0 or not self.size else self.start + (self.size - 1) * self.step

    @property
    def limit(self) -> int:
        """One more than the greatest position of the slice."""
        return self.low + (self.size - 1) * abs(self.step) + 1 if self.size else self.low


@dataclass(frozen=True)
class IndexPlan:
    """The static part of an index into an array of one shape; hashable. The arrays of positions are separate operands.

    Attributes:
      entries: for each axis a `Cut`, a known integer, or None if its positions are an operand.
      block: the shape to which the operands broadcast.
      first: the axis of `layout` at which the block begins.
      layout: shape of the result before new axes are added: an axis per `Cut`, and the block.
      shape: shape of the result.
      in_bounds: whether all positions are known and inside of the array.
    """

    entries: tuple[Cut | int | None, ...]
    block: tuple[int, ...]
    first: int
    layout: tuple[int, ...]
    shape: tuple[int, ...]
    in_bounds: bool

    @property
    def taken(self) -> tuple[int, ...]:
        """Axes whose positions are operands."""
        return tuple(axis for axis, entry in enumerate(self.entries) if entry is None)


# ---- reading an index ----------------------------------------------------------------------------------------


def plan_index(aval: ShapedArray, index: Any, *, check: bool = True, wrap: bool = True) -> tuple[IndexPlan, list[Any]]:
    """Plan `x[index]` for x of type `aval`: return the plan and its operands, integer arrays of positions.

    Args:
      check: whether known positions outside of the array are an error.
      wrap: whether negative positions count from the end, so that none is left; else they are outside of the array.
        Bounds of slices always wrap.
    Raises: IndexError for positions outside or too many of them, TypeError for what is no index.
    """
    items = _expand(aval, index)
    axes = _axes_of(items)
    where = {axis: item for axis, item in axes if axis is not None}
    if not (check and wrap):
        where = {axis: _unchecked(item, aval.shape[axis], wrap) for axis, item in where.items()}
    if any(_is_advanced(item) for item in where.values()):
        return _advanced(aval, axes, where, check, wrap)
    entries = tuple(_entry(aval, axis, item) for axis, item in where.items())
    layout = tuple(e.size for e in entries if isinstance(e, Cut))
    shape = tuple(_extents([axis for axis, _ in axes], entries))
    return IndexPlan(entries, (), 0, layout, shape, True), []


def _extents(axes: Sequence[int | None], entries: Sequence[Cut | int | None]) -> Iterator[int]:
    """Yield the sizes of the result's axes that slices and new axes make."""
    for axis in axes:
        entry = _NEW_AXIS if axis is None else entries[axis]
        if isinstance(entry, Cut):
            yield entry.size


_NEW_AXIS = Cut(0, 1, 1)


def _expand(aval: ShapedArray, index: Any) -> list[Any]:
    """Expand an index to a list of items for all axes: a mask as an item per axis, the ellipsis as full slices."""
    given = index if isinstance(index, tuple) else (index,)
    items = [part for item in given for part in _read(item)]
    masks = [item.mask for item in items if isinstance(item, _MaskPosition) and item.number == 0]
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > aval.ndim:
        shape = format_shape(aval.shape)
        raise IndexError(f"too many indices: {used} for the {aval.ndim} axes of an array of shape {shape}.")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError(f"an index has at most one ellipsis (...), not {len(dots)}.")
    at = dots[0] if dots else len(items)
    items[at : at + 1] = [slice(None)] * (aval.ndim - used)
    if masks:
        _check_masks(aval, items)
    return items


def _axes_of(items: list[Any]) -> list[tuple[int | None, Any]]:
    """Pair each item with its axis of the array, None for a new axis."""
    axis, found = 0, []
    for item in items:
        found.append((None if item is None else axis, item))
        axis += item is not None
    return found


class SingleBooleanError(TypeError):
    """An index has a mask without axes, which only reads support: `without_booleans` rewrites it."""


def without_booleans(ndim: int, index: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Replace the masks without axes in an index: each becomes a new axis, and 1 or 0 positions along it.

    Args:
      ndim: number of axes of the array.
    Returns: the positions at which the array gets new axes, and the index of the array with these axes.
    """
    given = index if isinstance(index, tuple) else (index,)
    masks = [_is_boolean(item) and not np.ndim(item) for item in given]
    lengths = [0 if m else axes_used(item) for m, item in zip(masks, given, strict=True)]
    used, at, new = sum(lengths), 0, list[int]()
    items = list[Any]()
    for item, n, mask in zip(given, lengths, masks, strict=True):
        if mask:
            new.append(at + len(new))
            item = np.arange(int(bool(concrete("index", item, _MASK_HELP))), dtype=np.int32)
        items.append(item)
        at += ndim - used if item is Ellipsis else n
    return tuple(new), tuple(items)


def _is_boolean(item: Any) -> bool:
    return isinstance(item, bool) or getattr(item, "dtype", None) == np.bool_


def axes_used(item: Any) -> int:
    """Return how many axes of the array an item of an index consumes."""
    if item is None or item is Ellipsis:
        return 0
    item = np.asarray(item) if isinstance(item, (list, tuple)) else item
    return np.ndim(item) if _is_boolean(item) else 1


class WindowError(TypeError):
    """An index has a window of traced start: dynamic_windows.py supports it."""


BODY = "build"  # the name of the trace of a body of `index.build`
BODIES = frozenset((BODY, "index.fold", "index.scan"))  # in these traces reads are total: 0 outside of an array


class BodyIndexError(TypeError):
    """An index has an index variable of a body of the index language: tracer/indices/reads.py reads by it."""


class _MaskPosition(NamedTuple):
    """The positions of a mask's true elements along the axis `number` of the mask."""

    mask: np.ndarray[Any, Any]
    number: int


def _read(item: Any) -> list[Any]:
    """Normalise an index item: integers to int, lists and NumPy scalars to arrays, a mask to an item per axis."""
    kind = type(item)
    if kind is int or kind is slice or item is None or item is Ellipsis:
        return [item]
    check_unmasked(item, "an index")
    if isinstance(item, (list, tuple)):
        item = _listed(item)
    elif kind is bool:
        item = np.asarray(item)
    elif isinstance(item, np.generic) or not isinstance(item, (Array, np.ndarray)):
        if hasattr(item, "window_of"):
            raise WindowError("a window with a traced start cannot stand here: use lax.dynamic_slice.")
        if hasattr(item, "is_affine"):
            raise BodyIndexError("an index of a body cannot stand here: use index.scatter to write by it.")
        item = _number(item)
    if isinstance(item, int):
        return [item]
    if item.dtype.kind == "b":
        return _mask_positions(item)
    if not dtypes.is_integer(item.dtype):
        raise TypeError(f"an index must be integer or boolean, not {aval_of(item)}. Convert with astype(int).")
    return [int(item)] if isinstance(item, np.ndarray) and not item.ndim else [item]


def _listed(items: Sequence[Any]) -> np.ndarray[Any, Any]:
    help = "Write tnp.array(...) around the list."
    for x in items:
        check_unmasked(x, "an index")
    found = np.asarray([concrete("index", x, help) if isinstance(x, Array) else x for x in items])
    return found.astype(np.int32) if not found.size else found


def _number(item: Any) -> Any:
    if isinstance(item, np.bool_):
        return np.asarray(item)
    try:
        return operator.index(item)
    except TypeError:
        what = f"{item!r:.60} of type {type(item).__name__}"
        raise TypeError(f"an index must be an integer, a slice, None, ... or an array of them, not {what}.") from None


def _mask_positions(mask: Any) -> list[Any]:
    if isinstance(mask, Tracer) and mask.concrete_value() is None:
        place = describe_here()
        raise NonConcreteBooleanIndexError(
            f"x[mask]: the shape depends on values, the elements of a traced mask, {mask.aval}.{mask.origin()}\n"
            f"  {_MASK_HELP}" + (f"\n  At {place}" if place else "")
        )
    known = concrete("index", mask, _MASK_HELP)
    if not known.ndim:
        raise SingleBooleanError("a single boolean is not an index for writing. Use tnp.where.")
    return [_MaskPosition(known, k) for k in range(known.ndim)]


def _check_masks(aval: ShapedArray, items: list[Any]) -> None:
    """Check that masks have the lengths of their axes, or 0, which chooses nothing. Raises: IndexError if not."""
    for axis, item in _axes_of(items):
        if not isinstance(item, _MaskPosition) or axis is None:
            continue
        if item.mask.shape[item.number] not in (0, aval.shape[axis]):
            raise IndexError(
                f"a mask of shape {format_shape(item.mask.shape)} does not fit an array of shape "
                f"{format_shape(aval.shape)}: axis {axis} has size {aval.shape[axis]}."
            )


# ---- integers and slices -------------------------------------------------------------------------------------


def _is_advanced(item: Any) -> bool:
    return isinstance(item, (Array, np.ndarray, _MaskPosition))


def _entry(aval: ShapedArray, axis: int, item: Any) -> Cut | int:
    n = aval.shape[axis]
    if type(item) is int:
        return inside(aval, axis, item)
    if item == _WHOLE:
        return Cut(0, n, 1)
    if any(hasattr(end, "is_affine") for end in (item.start, item.stop, item.step)):
        raise BodyIndexError("the bounds of a slice cannot be indices of a body.")
    try:
        start, stop, step = item.indices(n)
    except TracerIntegerConversionError:
        bounds = (item.start, item.stop, item.step)
        origin = next((x.origin() for x in bounds if isinstance(x, Tracer)), "")
        raise TypeError(
            f"the bounds of a slice must be known, those of axis {axis} of {aval} are traced.{origin}\n"
            "  Use lax.dynamic_slice for a window of a known size at a computed place."
        ) from None
    return Cut(start, len(range(start, stop, step)), step)


_WHOLE = slice(None)


def _unchecked(item: Any, n: int, wrap: bool) -> Any:
    """Convert a known integer that is out of bounds to an array, so that the mode decides its meaning."""
    return np.asarray(item) if type(item) is int and not _first(n, wrap) <= item < n else item


def _first(n: int, wrap: bool) -> int:
    """Return the least position that is inside of an axis."""
    return -n if wrap else 0


def inside(aval: ShapedArray, axis: int, i: int) -> int:
    """Return position i counted from the front. Raises: IndexError if it is outside."""
    n = aval.shape[axis]
    if not -n <= i < n:
        raise _outside(aval, axis, i)
    return i + n if i < 0 else i


def _outside(aval: ShapedArray, axis: int, i: int) -> IndexError:
    n, shape = aval.shape[axis], format_shape(aval.shape)
    return IndexError(f"index {i} is out of bounds for axis {axis} with size {n}, of an array of shape {shape}.")


# ---- arrays of positions -------------------------------------------------------------------------------------


def _advanced(
    aval: ShapedArray, axes: list[tuple[int | None, Any]], where: dict[int, Any], check: bool, wrap: bool
) -> tuple[IndexPlan, list[Any]]:
    taken = [axis for axis, item in where.items() if not isinstance(item, slice)]
    positions = [_positions(aval, axis, where[axis], check, wrap) for axis in taken]
    block = common_shape("index", *[np.shape(p) for p, _ in positions])
    entries = tuple(None if axis in taken else _entry(aval, axis, item) for axis, item in where.items())
    order = [axis for axis, _ in axes]
    together = _adjacent([i for i, axis in enumerate(order) if axis in taken])
    before = order[: order.index(taken[0])] if together else []
    layout = [e.size for e in entries if isinstance(e, Cut)]
    first = sum(axis is not None for axis in before)
    layout[first:first] = block
    after = [axis for axis in order[len(before) :] if axis not in taken]
    shape = [*_extents(before, entries), *block, *_extents(after, entries)]
    plan = IndexPlan(entries, block, first, tuple(layout), tuple(shape), all(known for _, known in positions))
    return plan, [p for p, _ in positions]


def _adjacent(places: list[int]) -> bool:
    return places[-1] - places[0] == len(places) - 1


def _positions(aval: ShapedArray, axis: int, item: Any, check: bool, wrap: bool) -> tuple[Any, bool]:
    """Return positions along an axis, counted from the front if they wrap, and whether they are known to be inside.

    Raises: IndexError if `check`, and a known position is outside.
    """
    n = aval.shape[axis]
    if isinstance(item, _MaskPosition):
        return np.nonzero(item.mask)[item.number].astype(np.int32), True
    if isinstance(item, Array):
        return from_the_front(item, n, wrap), False
    known = widen_indices(item)
    outside = known[(known < _first(n, wrap)) | (known >= n)]
    if outside.size and check:
        raise _outside(aval, axis, int(outside[0]))
    known = np.where(known < 0, known + n, known) if wrap else known
    places = known.astype(index_dtype(n))
    if outside.size:  # clip positions that overflow the index dtype, which could come to lie inside
        limits = np.iinfo(places.dtype)
        places[known > limits.max], places[known < limits.min] = limits.max, limits.min
    return places, not outside.size


def widen_indices(indices: Any) -> np.ndarray[Any, Any]:
    """Return known indices as int32 or wider, so that they can be compared with sizes."""
    known = np.asarray(indices)
    return known.astype(np.int32) if known.dtype.itemsize < 4 else known


def from_the_front(i: Array, n: int, wrap: bool = True) -> Array:
    """Convert positions along an axis of n elements to int32 or wider; if `wrap`, negative ones count from the end."""
    if dtypes.kind(i.dtype) == "u":
        return i if dtypes.bits_of(i.dtype) < 32 else lax_min(i, n)  # all positions from n on are outside
    if dtypes.bits_of(i.dtype) < 32 or i.aval.weak_type:
        i = convert_element_type(i, np.int64 if dtypes.bits_of(i.dtype) > 32 else np.int32)
    return select_n(lt(i, 0), i, add(i, n)) if wrap else i


def index_dtype(n: int) -> np.dtype[Any]:
    """Return int32, or int64 if n exceeds it."""
    return np.dtype("int32" if n <= 2**31 - 1 else "int64")


def window_axes(plan: IndexPlan) -> Iterator[tuple[int, int]]:
    """Yield (axis of the array, axis of the layout) for each slice of a plan."""
    at = 0
    for axis, entry in enumerate(plan.entries):
        if isinstance(entry, Cut):
            yield axis, at if at < plan.first else at + len(plan.block)
            at += 1
