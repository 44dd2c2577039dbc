"""Shape changes: reshape, transpose, adding and removing axes, broadcasting, flipping and rolling."""

import math
import operator
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.advice.keyword_advice import advise_keywords
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.arithmetic import remainder, subtract
from tapeless.tracer.numpy.indexing import getitem
from tapeless.tracer.numpy.promotion import array_operand, broadcast_to_shape, common_shape, format_shape
from tapeless.tracer.primitives import shape as shapes
from tapeless.tracer.primitives.operands import canonical_axes, canonical_axis, listed_axes
from tapeless.tracer.primitives.shape import concatenate, rev, slice_in_dim, static_ints
from tapeless.tracer.types import aval_of, by_protocol

Axis = int | Sequence[int]

# ---- reshaping and transposing -------------------------------------------------------------------------------


def reshape(a: ArrayLike, shape: int | Sequence[int], order: str = "C", *, copy: bool | None = None) -> Array:
    """Reshape an array, its elements in row-major order, or in column-major order if `order` is "F".

    Args:
      shape: sizes of the result, of which one may be -1, or a single size.
      copy: has no effect.
    Raises: ValueError if the number of elements differs, or for another order.
    """
    x = array_operand("reshape", a)
    wanted = _completed(x, tuple(shapes.as_sizes(shape)))
    if order == "C":
        return shapes.reshape(x, wanted)
    if order != "F":
        raise ValueError(f"reshape: order must be 'C' or 'F', not {order!r}.{_flattening(order)}")
    return transpose(shapes.reshape(transpose(x), wanted[::-1]))


def _flattening(order: Any) -> str:
    """Advise what to write instead of PyTorch's `x.flatten(1)`, whose operand is an axis, not an order."""
    if not isinstance(order, int):
        return ""
    return f"\n  To flatten from axis {order} on, write x.reshape(*x.shape[:{order}], -1)."


def _completed(x: Array, shape: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape with -1 replaced. Raises: ValueError if the number of elements differs."""
    aval = x.aval
    found = static_ints(shape, "reshape", "shape")
    if found.count(-1) > 1:
        raise ValueError(f"reshape: only one length of the shape {found} may be -1.")
    if -1 in found:
        rest = math.prod(n for n in found if n != -1)
        if rest <= 0 or aval.size % rest:
            raise ValueError(f"reshape: {aval} has {aval.size} elements, which do not make an array of shape {found}.")
        return tuple(aval.size // rest if n == -1 else n for n in found)
    if math.prod(found) != aval.size or min(found, default=0) < 0:
        raise ValueError(f"reshape: {aval} has {aval.size} elements, an array of shape {found} has {math.prod(found)}.")
    return found


def ravel(a: ArrayLike, order: str = "C") -> Array:
    """Flatten an array in row-major order, or column-major if `order` is "F". Raises: ValueError for another order."""
    x = array_operand("ravel", a)
    return reshape(x, (-1,) if x.size else (0,), order)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Permute axes: axis i of the result is axes[i] of a; reverse them if None.

    Raises: ValueError if `axes` is no permutation of the axes of a.
    """
    x = array_operand("transpose", a)
    if axes is None:
        return shapes.transpose(x, range(x.ndim)[::-1])
    order = [canonical_axis(i, x.ndim) for i in axes] if len(axes) <= x.ndim else [*axes]
    if sorted(order) != list(range(x.ndim)):
        two = (
            f"\n  To exchange two axes, write swapaxes(x, {order[0]}, {order[1]})." if len(order) == 2 < x.ndim else ""
        )
        name = find_called("transpose")
        raise ValueError(f"{name}: {tuple(axes)} is not a permutation of the {x.ndim} axes of {x.aval}.{two}")
    return shapes.transpose(x, order)


permute_dims = transpose


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Exchange the last two axes. Raises: ValueError if there are fewer than two."""
    x = array_operand("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: a matrix has at least two axes, {x.aval} has {x.ndim}.")
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Exchange two axes. Raises: ValueError if one is out of range."""
    x = array_operand("swapaxes", a)
    i, j = canonical_axis(axis1, x.ndim, "axis1"), canonical_axis(axis2, x.ndim, "axis2")
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return shapes.transpose(x, order)


def moveaxis(a: ArrayLike, source: Axis, destination: Axis) -> Array:
    """Move the axes `source` to the positions `destination` of the result; the others keep their order.

    Raises: ValueError if an axis is out of range or named twice, or there are not as many positions as axes.
    """
    x = array_operand("moveaxis", a)
    sources = [canonical_axis(i, x.ndim, "source") for i in listed_axes(source)]
    places = [canonical_axis(i, x.ndim, "destination") for i in listed_axes(destination)]
    if len(sources) != len(places) or len(set(sources)) < len(sources) or len(set(places)) < len(places):
        raise ValueError(f"moveaxis: {source} and {destination} must name as many axes, none of them twice.")
    order = [i for i in range(x.ndim) if i not in sources]
    for place, i in sorted(zip(places, sources, strict=True)):
        order.insert(place, i)
    return shapes.transpose(x, order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move `axis` before the axis `start`: see also `moveaxis`.

    Raises: ValueError if `axis` or `start` is out of range.
    """
    x = array_operand("rollaxis", a)
    i = canonical_axis(axis, x.ndim)
    place = start + x.ndim if start < 0 else start
    if not 0 <= place <= x.ndim:
        raise ValueError(f"rollaxis: start {start} is out of range for an array of {x.ndim} axes.")
    return moveaxis(x, i, place - (i < place))


@advise_keywords
def expand_dims(a: ArrayLike, axis: Axis) -> Array:
    """Add axes of length 1, at these positions of the result.

    Raises: ValueError if a position is out of range or named twice.
    """
    x = array_operand("expand_dims", a)
    places = tuple(listed_axes(axis))
    return shapes.expand_dims(x, canonical_axes(places, x.ndim + len(places)))


@advise_keywords
def squeeze(a: ArrayLike, axis: Axis | None = None) -> Array:
    """Remove given axes of length 1, or all such axes if None. Raises: ValueError if one is longer or out of range."""
    x = array_operand("squeeze", a)
    axes = [i for i, n in enumerate(x.shape) if n == 1] if axis is None else canonical_axes(axis, x.ndim)
    long = [i for i in axes if x.shape[i] != 1]
    if long:
        raise ValueError(f"squeeze: axis {long[0]} of {x.aval} has length {x.shape[long[0]]}, not 1.")
    return shapes.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in axes))


@overload
def atleast_1d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(first: ArrayLike, second: ArrayLike, /, *others: ArrayLike) -> list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Any:
    """Add axes so that arrays have at least one; return a list of arrays if several are given."""
    return _each("atleast_1d", arys, lambda x: x if x.ndim else shapes.reshape(x, (1,)))


@overload
def atleast_2d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(first: ArrayLike, second: ArrayLike, /, *others: ArrayLike) -> list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Any:
    """Add leading axes so that arrays have at least two; return a list of arrays if several are given."""
    return _each("atleast_2d", arys, lambda x: x if x.ndim > 1 else shapes.reshape(x, (1, x.size)))


@overload
def atleast_3d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(first: ArrayLike, second: ArrayLike, /, *others: ArrayLike) -> list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Any:
    """Add axes so that arrays have at least three, on both sides of a vector; return a list if several are given."""

    def widened(x: Array) -> Array:
        return x if x.ndim > 2 else shapes.reshape(x, (*x.shape, 1) if x.ndim == 2 else (1, x.size, 1))

    return _each("atleast_3d", arys, widened)


def _each(name: str, arrays: Sequence[ArrayLike], change: Any) -> Any:
    found = [change(array_operand(name, x)) for x in arrays]
    return found[0] if len(found) == 1 else found


# ---- broadcasting --------------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Compute the shape to which arrays of these shapes broadcast.

    Raises: ValueError naming all shapes, or one with a negative length; TypeError if lengths are no integers.
    """
    given = [(s,) if isinstance(s, int) else static_ints(s, "broadcast_shapes", "a shape") for s in shapes]
    for shape in given:
        if min(shape, default=0) < 0:
            raise ValueError(f"broadcast_shapes: lengths must be at least 0, not {format_shape(shape)}.")
    return common_shape("broadcast_shapes", *given)


def broadcast_to(array: ArrayLike, shape: int | Sequence[int]) -> Array:
    """Broadcast an array to `shape`. Raises: ValueError if it does not broadcast."""
    x = array_operand("broadcast_to", array)
    wanted = static_ints(shapes.as_sizes(shape), "broadcast_to", "shape")
    extra = len(wanted) - x.ndim
    if extra < 0 or any(n not in (1, k) for n, k in zip(x.shape, wanted[extra:], strict=True)):
        from_to = f"{format_shape(x.shape)} does not broadcast to {format_shape(wanted)}"
        raise ValueError(f"{find_called('broadcast_to')}: shape {from_to}.")
    return broadcast_to_shape(x, wanted)


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Broadcast arrays to their common shape; dtypes do not change. Raises: ValueError if they do not broadcast."""
    xs = [array_operand("broadcast_arrays", x) for x in args]
    shape = common_shape("broadcast_arrays", *[x.shape for x in xs])
    return [broadcast_to_shape(x, shape) for x in xs]


# ---- flipping and rolling ------------------------------------------------------------------------------------


@advise_keywords
def flip(m: ArrayLike, axis: Axis | None = None) -> Array:
    """Reverse the order of elements along axes, along all if None. Raises: ValueError for an axis out of range."""
    x = array_operand("flip", m)
    return rev(x, canonical_axes(axis, x.ndim))


def fliplr(m: ArrayLike) -> Array:
    """Reverse the order of elements along the second axis. Raises: ValueError if there is none."""
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Reverse the order of elements along the first axis. Raises: ValueError if there is none."""
    return flip(m, 0)


@one_program
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate m by 90 degrees k times, from the first of `axes` towards the second.

    Raises: ValueError if an axis is out of range, or both are the same.
    """
    x = array_operand("rot90", m)
    i, j = (canonical_axis(a, x.ndim) for a in axes)
    if i == j:
        raise ValueError(f"rot90: the axes must differ, both are {i}.")
    k %= 4
    if k == 2:
        return flip(x, (i, j))
    if not k:
        return x
    return swapaxes(flip(x, j), i, j) if k == 1 else flip(swapaxes(x, i, j), j)


def _integer(what: str, x: Any) -> int:
    try:
        return operator.index(x)
    except TypeError:
        raise TypeError(f"{what} must be an integer, not {x!r}.") from None


@one_program
def roll(a: ArrayLike, shift: Any, axis: Any = None) -> Array:
    """Shift the elements of a along axes; elements that leave at one end enter at the other.

    Args:
      shift: an integer for all axes, or one for each; several for one axis add up. It may be traced, an array or a
        vector; then the elements are gathered.
      axis: one or several; the flattened array is shifted if None.
    Raises: ValueError if an axis is out of range, or there are not as many shifts as axes; TypeError for shifts that
      are no integers.
    """
    x = array_operand("roll", a)
    if axis is None:
        return shapes.reshape(roll(shapes.reshape(x, (x.size,)), shift, 0), x.shape)
    axes, shifts = [canonical_axis(i, x.ndim) for i in _items(axis)], _items(shift)
    axes, shifts = (v * (len(w) if len(v) == 1 else 1) for v, w in ((axes, shifts), (shifts, axes)))
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes.")
    for s, i in zip(shifts, axes, strict=True):
        x = _rolled(x, s, i)
    return x


def _items(x: Any) -> list[Any]:
    """List the items of a number, a sequence or a vector."""
    x = by_protocol(x)
    if isinstance(x, (Array, np.ndarray)):
        if x.ndim > 1:
            raise ValueError(f"roll: a number or a vector of them, not {aval_of(x)}.")
        return [x[i] for i in range(x.shape[0])] if x.ndim else [x]
    return list(x) if isinstance(x, Sequence) else [x]


def _rolled(x: Array, shift: Any, axis: int) -> Array:
    n = x.shape[axis]
    if not n:
        return x
    if isinstance(shift, Array):
        if not dtypes.is_integer(shift.dtype):
            raise TypeError(f"roll: a shift must be an integer, not {shift.aval}.")
        places = remainder(subtract(np.arange(n, dtype=np.int32), shift), n)
        return getitem(x, (slice(None),) * axis + (places,))
    cut = -_integer("roll: a shift", shift) % n
    if not cut:
        return x
    return concatenate([slice_in_dim(x, cut, None, axis=axis), slice_in_dim(x, 0, cut, axis=axis)], axis)
