"""`pad`: extend arrays by margins, filled in one of NumPy's modes."""

import operator
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy import quantiles, reductions, statistics
from tapeless.tracer.numpy.arithmetic import floor_divide, remainder, round, select
from tapeless.tracer.numpy.indexing import getitem
from tapeless.tracer.numpy.promotion import array_operand, as_weak_as, cast, convert_fitting
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives import shape as shapes
from tapeless.tracer.primitives.shape import broadcast_in_dim, broadcasted_iota, concatenate, rev

Widths = tuple[tuple[int, int], ...]
_READ = ("edge", "reflect", "symmetric", "wrap")
_COMPUTED = ("maximum", "mean", "median", "minimum", "linear_ramp")


def pad(array: ArrayLike, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Array:
    """Extend an array by margins.

    Args:
      pad_width: lengths (before, after) for each axis, one pair for all, or one number for all; or {axis: pair}.
      mode: constant (with constant_values, 0 if not given), edge, reflect or symmetric (with reflect_type "even", or
        "odd", twice the edge less the reflection), wrap, linear_ramp (with end_values), empty; maximum, minimum, mean
        or median (of the stat_length elements at that end, all if None).
    Returns: an array of the dtype of `array`, longer by both margins along each axis.
    Raises: ValueError for another mode, keyword or reflect_type, negative widths, or a width in the wrong form;
      TypeError for widths that are no integers.
    """
    x = array_operand("pad", array)
    if mode not in _KEYWORDS:
        raise ValueError(f"pad: mode must be one of {', '.join(_KEYWORDS)}, not {mode!r}.")
    if not kwargs.keys() <= _KEYWORDS[mode]:
        raise ValueError(f"pad: mode {mode!r} takes no {', '.join(sorted(kwargs.keys() - _KEYWORDS[mode]))}.")
    widths = widths_of(x, pad_width)
    if mode in ("constant", "empty"):
        return as_weak_as(_pad_constant(x, widths, kwargs.get("constant_values", 0)), x)
    if mode in _READ:
        return _pad_read(x, widths, mode, **kwargs)
    return as_weak_as(_pad_computed(x, widths, mode, **kwargs), x)


_KEYWORDS: dict[str, set[str]] = {
    "constant": {"constant_values"},
    "empty": set(),
    "edge": set(),
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "wrap": set(),
    "linear_ramp": {"end_values"},
    **{name: {"stat_length"} for name in ("maximum", "mean", "median", "minimum")},
}


def widths_of(x: Array, pad_width: Any) -> Widths:
    """Return the lengths (before, after) for each axis of x. Raises: ValueError, TypeError as `pad`."""
    if isinstance(pad_width, dict):
        pairs = {operator.index(a) % x.ndim: w for a, w in pad_width.items()}
        return tuple(_pairs("widths", pairs.get(a, 0), 1, x)[0] for a in range(x.ndim))
    return _pairs("widths", pad_width, x.ndim, x)


def _pairs(what: str, given: Any, ndim: int, x: Array) -> Widths:
    """Broadcast `given` to integers (before, after) for each of `ndim` axes. Raises: TypeError, ValueError as `pad`."""
    found = np.asarray(given)
    if found.dtype.kind not in "iu" and found.size:
        raise TypeError(f"pad: {what} must be integers, not {given!r}.")
    try:
        pairs = np.broadcast_to(found.astype(np.int64), (ndim, 2)).tolist()
    except ValueError:
        raise ValueError(f"pad: {what} {given!r} are not a pair for each of the {x.ndim} axes of {x.aval}.") from None
    if any(w < 0 for pair in pairs for w in pair):
        raise ValueError(f"pad: {what} must not be negative: {given!r}.")
    return tuple((a, b) for a, b in pairs)


def _pad_constant(x: Array, widths: Widths, values: Any) -> Array:
    if np.ndim(values) == 0:
        return shapes.pad(x, convert_fitting(values, x.dtype), [(*w, 0) for w in widths])
    for axis, (width, (before, after)) in enumerate(zip(widths, _numbers("constant_values", values, x), strict=True)):
        for w, v in (((width[0], 0), before), ((0, width[1]), after)):
            config = [(0, 0, 0)] * x.ndim
            config[axis] = (*w, 0)
            x = shapes.pad(x, convert_fitting(v, x.dtype), config)
    return x


def _numbers(what: str, given: Any, x: Array) -> list[tuple[Any, Any]]:
    """Broadcast `given` to numbers (before, after) for each axis; a single number may be traced."""
    if np.ndim(given) == 0:
        return [(given, given)] * x.ndim
    try:
        pairs = np.broadcast_to(np.asarray(given, object), (x.ndim, 2)).tolist()
    except ValueError:
        raise ValueError(f"pad: {what} {given!r} are not a pair for each of the {x.ndim} axes of {x.aval}.") from None
    return [(a, b) for a, b in pairs]


def _pad_read(x: Array, widths: Widths, mode: str, reflect_type: str = "even") -> Array:
    """Fill the margins with elements of the array, by an indexed read along one axis after the other."""
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', not {reflect_type!r}.")
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        if not before + after:
            continue
        if not n:
            raise ValueError(f"pad: axis {axis} of {x.aval} is empty, so mode {mode!r} has nothing to read.")
        if reflect_type == "odd" and n > 1:
            x = _pad_odd(x, axis, (before, after), first=int(mode == "reflect"))
            continue
        places = np.pad(np.arange(n), (before, after), mode=mode)  # type: ignore[call-overload]  # one of NumPy's, by its name
        x = getitem(x, (slice(None),) * axis + (places,))
    return x


def _pad_odd(x: Array, axis: int, width: tuple[int, int], first: int) -> Array:
    """Fill margins with twice the edge less the elements from number `first` on, in steps of as many as x has."""
    period = x.shape[axis] - first
    for side, left in enumerate(width):
        x = rev(x, (axis,)) if side else x
        for done in range(0, left, period):
            near = shapes.slice_in_dim(x, first, first + min(period, left - done), axis=axis)
            edge = broadcast_in_dim(shapes.slice_in_dim(x, 0, 1, axis=axis), near.shape, tuple(range(x.ndim)))
            x = concatenate([rev(lax.sub(lax.add(edge, edge), near), (axis,)), x], axis)
        x = rev(x, (axis,)) if side else x
    return x


def _pad_computed(x: Array, widths: Widths, mode: str, stat_length: Any = None, end_values: Any = 0) -> Array:
    ends = _numbers("end_values", end_values, x)
    lengths = None if stat_length is None else _pairs("stat_length", stat_length, x.ndim, x)
    for axis, width in enumerate(widths):
        if not any(width):
            continue
        if mode == "linear_ramp":
            before, after = (_ramp(x, ends[axis][side], axis, w, side) for side, w in enumerate(width))
        else:
            near = lengths[axis] if lengths else (x.shape[axis],) * 2
            before, after = (_statistic(x, axis, w, mode, side, near[side]) for side, w in enumerate(width))
        x = concatenate([before, x, after], axis)
    return x


_STATISTICS = {
    "maximum": reductions.max,
    "minimum": reductions.min,
    "mean": statistics.mean,
    "median": quantiles.median,
}


def _statistic(x: Array, axis: int, width: int, mode: str, side: int, length: int) -> Array:
    """Make a margin of a statistic of the `length` elements at that end, rounded for integers."""
    n = x.shape[axis]
    near = shapes.slice_in_dim(x, max(n - length, 0) if side else 0, n if side else min(length, n), axis=axis)
    found = _STATISTICS[mode](near, axis, keepdims=True)
    margin = cast(round(found) if dtypes.is_integer(x.dtype) else found, x.dtype)
    return broadcast_in_dim(margin, _with_width(x, axis, width), tuple(range(x.ndim)))


def _ramp(x: Array, end: Any, axis: int, width: int, side: int) -> Array:
    """Interpolate from the edge of the array, excluded, to `end`."""
    edge = shapes.slice_in_dim(x, -1 if side else 0, None if side else 1, axis=axis)
    edge = broadcast_in_dim(edge, _with_width(x, axis, width), tuple(range(x.ndim)))
    if dtypes.is_bool(x.dtype):
        raise TypeError(f"pad: booleans cannot be interpolated: {x.aval} has no linear_ramp.")
    found = (_ramp_of_floats if dtypes.is_inexact(x.dtype) else _ramp_of_integers)(
        edge, convert_fitting(end, x.dtype), axis=axis
    )
    return rev(found, (axis,)) if side else found


@core.compound
def _ramp_of_floats(edge: Array, end: Any, *, axis: int) -> Array:
    edge, end, dtype = reductions.wide(edge), reductions.wide(end), edge.dtype
    real = dtypes.real_part_dtype(edge.dtype)
    share = lax.div(broadcasted_iota(real, edge.shape, axis), float(max(edge.shape[axis], 1)))
    found = lax.add(lax.mul(lax.sub(edge, end), lax.convert_element_type(share, edge.dtype)), end)
    return lax.convert_element_type(found, dtype)


@core.compound
def _ramp_of_integers(edge: Array, end: Any, *, axis: int) -> Array:
    """Interpolate from `end` to `edge` rounded down, as NumPy does, by unsigned integers, which are exact."""
    unsigned, width = np.dtype("uint64"), max(edge.shape[axis], 1)
    wide_edge, wide_end = (lax.convert_element_type(v, np.int64) for v in (edge, end))
    rises = lax.lt(end, edge)
    near, far = (lax.convert_element_type(v, unsigned) for v in (wide_end, wide_edge))
    distance = select(rises, lax.sub(far, near), lax.sub(near, far))
    place = lax.convert_element_type(broadcasted_iota(np.int32, edge.shape, axis), unsigned)
    whole = lax.mul(floor_divide(distance, width), place)
    part = lax.mul(remainder(distance, width), place)
    part = select(rises, part, lax.add(part, width - 1))
    step = lax.add(whole, floor_divide(part, width))
    return lax.convert_element_type(select(rises, lax.add(near, step), lax.sub(near, step)), edge.dtype)


def _with_width(x: Array, axis: int, width: int) -> tuple[int, ...]:
    return (*x.shape[:axis], width, *x.shape[axis + 1 :])
