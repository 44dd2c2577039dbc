"""Numerical calculus and signals: differences, gradients, integrals, interpolation, convolution."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy import arithmetic
from tapeless.tracer.numpy.indexing import getitem, take
from tapeless.tracer.numpy.joining import append, concatenate
from tapeless.tracer.numpy.logic import choose_between, equal, greater, less, logical_and
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    broadcast_to_shape,
    broadcasts_to,
    cast,
    common_shape,
    inexact,
    mixing_inside,
    promoted_dtypes,
    promoted_inexact_dtypes,
)
from tapeless.tracer.numpy.reductions import cumsum, total, wide
from tapeless.tracer.numpy.sorting import argsort, searchsorted
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.contraction import conv_general_dilated
from tapeless.tracer.primitives.operands import canonical_axis, exact_integer
from tapeless.tracer.primitives.shape import broadcast_in_dim, full, reshape, rev, slice_in_dim
from tapeless.tracer.types import aval_of, by_protocol

# ---- differences ---------------------------------------------------------------------------------------------


@one_program
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """Compute differences of neighbours along `axis`, n times, after adding `prepend` and `append` at the ends.

    If n is 0 nothing is added either: that is the array.
    Raises: ValueError if n is negative or the array has no axes; TypeError if n is no integer.
    """
    x, n = array_operand("diff", a), exact_integer(n, "n")
    if n == 0:
        return x
    if n < 0 or not x.ndim:
        raise ValueError(f"diff: n must not be negative and the array must have axes: n is {n}, the array {x.aval}.")
    axis = canonical_axis(axis, x.ndim)
    parts = promoted_dtypes("diff", *[v for v in (prepend, x, append) if v is not None])
    x = concatenate([_end(v, x, axis) for v in parts], axis) if len(parts) > 1 else x
    return _diff(x, n=n, axis=axis)


def _end(v: ArrayLike, x: Array, axis: int) -> Array:
    v = array_operand("diff", v)
    return v if v.ndim else broadcast_in_dim(v, (*x.shape[:axis], 1, *x.shape[axis + 1 :]), ())


@core.compound
def _diff(x: Array, *, n: int, axis: int) -> Array:
    subtract = lax.ne if dtypes.is_bool(x.dtype) else lax.sub
    for _ in range(n):
        x = subtract(slice_in_dim(x, 1, None, axis=axis), slice_in_dim(x, 0, max(x.shape[axis] - 1, 0), axis=axis))
    return x


@one_program
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """Compute differences of neighbours in the flat array, with numbers added at the ends."""
    x = array_operand("ediff1d", ary)
    found = diff(reshape(x, (x.size,)))
    found = found if to_begin is None else append(to_begin, found)
    return found if to_end is None else append(found, to_end)


@one_program
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Any = None, edge_order: int | None = None) -> Any:
    """Estimate derivatives of a sampled function along axes: central differences, one-sided at the ends.

    Args:
      varargs: for all axes or for each, the distance of samples, a number, or their coordinates, a vector.
      edge_order: 1, or 2 for the derivative at the ends of the parabola through three samples.
    Returns: an array for each axis, alone if there is one.
    Raises: ValueError if an axis is out of range or has less than edge_order + 1 samples, if there are neither one nor
      as many distances as axes, for coordinates that are not one for each sample, and for another edge_order.
    """
    x = inexact("gradient", array_operand("gradient", f))
    axes = [canonical_axis(i, x.ndim) for i in (range(x.ndim) if axis is None else np.atleast_1d(axis).tolist())]
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    order = 1 if edge_order is None else edge_order
    if len(steps) != len(axes) or order not in (1, 2):
        raise ValueError(
            f"gradient: {len(varargs)} distances for {len(axes)} axes, edge_order {order}: give one distance for all "
            "axes, or one for each, and an edge_order of 1 or 2."
        )
    found = [
        _gradient(x, _distances(x, s, i, order), axis=i, edge_order=order) for s, i in zip(steps, axes, strict=True)
    ]
    return found[0] if len(found) == 1 else found


def _distances(x: Array, given: ArrayLike, axis: int, edge_order: int) -> Any:
    """Return the distance of samples along an axis, a number, or the distances of coordinates, an array."""
    n, number, given = x.shape[axis], given, array_operand("gradient", given)
    if n <= edge_order:
        raise ValueError(f"gradient: at least {edge_order + 1} samples are needed along axis {axis} of {x.aval}.")
    if not given.ndim:
        step = promoted_inexact_dtypes("gradient", x, number)[1]
        return cast(step, x.dtype, aval_of(step).weak_type)  # as exact as x
    if given.shape != (n,):
        raise ValueError(f"gradient: {n} coordinates are needed along axis {axis} of {x.aval}, not {given.aval}.")
    shape = (*x.shape[:axis], n - 1, *x.shape[axis + 1 :])
    return broadcast_in_dim(cast(_diff(_subtractable(given), n=1, axis=0), x.dtype), shape, (axis,))


def _subtractable(x: Array) -> Array:
    """Convert integers to a dtype that holds their differences."""
    if not dtypes.is_integer(x.dtype) or x.dtype == np.int64:
        return x
    return lax.convert_element_type(x, np.float64 if x.dtype == np.uint64 else np.int64)


@core.compound
def _gradient(x: Array, step: Any, *, axis: int, edge_order: int) -> Array:
    part = partial(slice_in_dim, axis=axis)
    slopes = lax.div(_diff(x, n=1, axis=axis), step)
    bends = _diff(slopes, n=1, axis=axis)
    if step.shape:  # the mean of two slopes, weighted by the distance on the other side
        before, after = part(step, 0, -1), part(step, 1, None)
        share = lax.div(before, lax.add(before, after))
        middle = lax.add(part(slopes, 0, -1), lax.mul(share, bends))
    else:
        share = full(bends.shape, 0.5, x.dtype)
        middle = lax.div(lax.div(lax.sub(part(x, 2, None), part(x, 0, -2)), 2.0), step)
    first, last = part(slopes, 0, 1), part(slopes, -1, None)
    if edge_order == 2:
        first = lax.sub(first, lax.mul(part(share, 0, 1), part(bends, 0, 1)))
        last = lax.add(last, lax.mul(lax.sub(1.0, part(share, -1, None)), part(bends, -1, None)))
    return concatenate([first, middle, last], axis)


@one_program
@mixing_inside
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """Integrate along `axis` by the trapezoidal rule, over samples at x or `dx` apart.

    Args:
      y: array with at least one axis; integers become floats.
      x: vector of as many samples as `axis` has, or an array whose differences along `axis` broadcast to those of y.
      dx: number, or an array that broadcasts to y with one sample less along `axis`; ignored if x is given.
    Raises: ValueError if y and x do not have as many samples along `axis`, or if dx does not broadcast; both are named.
    """
    y = inexact("trapezoid", y)
    values, given = (as_array(v) for v in promoted_inexact_dtypes("trapezoid", y, dx if x is None else x))
    along = canonical_axis(axis, values.ndim)
    if x is None:
        return _trapezoid(values, given, axis=along)
    if given.ndim == 1:
        steps = _diff(given, n=1, axis=0)
        steps = reshape(steps, steps.shape + (1,) * (values.ndim - along - 1))
    else:
        steps = _diff(given, n=1, axis=canonical_axis(axis, given.ndim))
    if not broadcasts_to(steps.shape, _gaps(values.shape, along)):
        operands = f"y, {aval_of(y)}, and x, {aval_of(x)}"
        raise ValueError(f"trapezoid: {operands}, do not have as many samples along the axis {axis}.")
    return _trapezoid(values, steps, axis=along)


def _gaps(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Return the shape of the differences of neighbours along `axis`."""
    return (*shape[:axis], max(shape[axis] - 1, 0), *shape[axis + 1 :])


@core.compound
def _trapezoid(samples: Array, step: Any, *, axis: int) -> Array:
    """Sum the areas; half precision is summed in float32."""
    y, step = wide(samples), wide(step)
    before = slice_in_dim(y, 0, max(y.shape[axis] - 1, 0), axis=axis)
    pairs = lax.add(slice_in_dim(y, 1, None, axis=axis), before)
    if not broadcasts_to(step.shape, pairs.shape):
        raise ValueError(f"trapezoid: dx, {step.aval}, does not broadcast to {pairs.shape}, the gaps of y, {y.aval}.")
    areas = lax.mul(pairs, broadcast_to_shape(step, pairs.shape) if step.shape else step)
    return lax.convert_element_type(lax.div(total(areas, (axis,)), 2.0), samples.dtype)


@one_program
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi) -> Array:
    """Add multiples of `period` to angles so that neighbours along `axis` differ by at most half of it.

    Signed integers stay integers if the period is one; other numbers become floats.
    """
    x = array_operand("unwrap", p)
    whole = dtypes.kind(x.dtype) == "i" and dtypes.is_integer(aval_of(period).dtype)
    x = x if whole else inexact("unwrap", x)
    axis = canonical_axis(axis, x.ndim)
    half = arithmetic.floor_divide(period, 2) if whole else arithmetic.divide(period, 2)
    steps = diff(x, axis=axis)
    small = arithmetic.subtract(arithmetic.mod(arithmetic.add(steps, half), period), half)
    up = logical_and(equal(small, arithmetic.negative(half)), greater(steps, 0))
    if whole:  # half of an odd period is rounded down, and no step is as far from both
        up = logical_and(up, equal(arithmetic.multiply(half, 2), period))
    small = choose_between(up, half, small)
    close = less(arithmetic.absolute(steps), half if discont is None else discont)
    correction = choose_between(close, 0 if whole else 0.0, arithmetic.subtract(small, steps))
    first = slice_in_dim(x, 0, 1, axis=axis)
    rest = slice_in_dim(x, 1, None, axis=axis)
    corrections = cumsum(correction, axis, dtype=correction.dtype if whole else None)
    return concatenate([first, arithmetic.add(rest, corrections)], axis)


# ---- interpolation -------------------------------------------------------------------------------------------


@one_program
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Interpolate linearly through (xp, fp) at x; beyond the ends `left` and `right`, by default the end values.

    Args:
      x: [k..].
      xp, fp: vectors of one length; xp rises, unless there is a period. fp may be complex.
      left, right: numbers, or "extrapolate" for the line through the two points at that end.
      period: of the function, so that nothing is beyond the ends.
    Raises: ValueError if xp and fp are not vectors of one length, or for another word; TypeError if x or xp is complex.
    """
    at, places = (as_array(v) for v in promoted_inexact_dtypes("interp", x, xp))
    values = as_array(inexact("interp", fp))
    if places.ndim != 1 or places.shape != values.shape or not places.size:
        raise ValueError(f"interp: xp and fp must be vectors of one length, not {places.aval} and {values.aval}.")
    if dtypes.is_complex(at.dtype):
        raise TypeError(f"interp: complex numbers have no order, so x and xp must be real: {at.aval}, {places.aval}.")
    if period is not None:
        return _interp(*_periodic(at, places, values, cast(period, at.dtype)))
    first, last = slice_in_dim(values, 0, 1), slice_in_dim(values, -1, None)
    found = _interp(at, places, values)
    found = _beyond("left", left, first, lax.lt(at, getitem(places, 0)), found)
    return _beyond("right", right, last, lax.gt(at, getitem(places, -1)), found)


@core.compound
def _interp(x: Array, xp: Array, fp: Array) -> Array:
    """Evaluate the line through two neighbours at each x; beyond the ends that through the first or last two."""
    n = xp.shape[0]
    after = lax.max(lax.min(searchsorted(xp, x, "right"), n - 1), min(1, n - 1))
    before = lax.max(lax.sub(after, 1), 0)
    x0, x1, y0, y1 = (take(v, i, mode="clip") for v in (xp, fp) for i in (before, after))
    width = lax.sub(x1, x0)
    flat = lax.eq(width, 0)
    share = lax.div(lax.sub(x, x0), arithmetic.select(flat, 1.0, width))
    rise = arithmetic.multiply(share, lax.sub(y1, y0))
    return arithmetic.add(y0, arithmetic.select(flat, 0.0, rise))


@core.compound
def _periodic(x: Array, xp: Array, fp: Array, period: Any) -> tuple[Array, Array, Array]:
    """Reduce x and the points to one period, and add a point at each end."""
    period = lax.abs(period)
    x, xp = arithmetic.remainder(x, period), arithmetic.remainder(xp, period)
    order = argsort(xp)
    xp, fp = take(xp, order), take(fp, order)
    n = xp.shape[0]
    ends = lax.sub(slice_in_dim(xp, n - 1, n), period), lax.add(slice_in_dim(xp, 0, 1), period)
    xp = concatenate([ends[0], xp, ends[1]])
    return x, xp, concatenate([slice_in_dim(fp, n - 1, n), fp, slice_in_dim(fp, 0, 1)])


def _beyond(side: str, given: Any, end: Array, there: Array, found: Array) -> Array:
    """Replace interpolated values beyond one end by the value given for it."""
    if isinstance(given, str):
        if given != "extrapolate":
            raise ValueError(f"interp: {side} must be a number or 'extrapolate', not {given!r}.")
        return found
    value = reshape(end, ()) if given is None else given
    return choose_between(there, value, found)


# ---- convolution ---------------------------------------------------------------------------------------------


@one_program
def convolve(
    a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Convolve two vectors: "full", as long as the longer one ("same"), or without margins ("valid").

    `precision` and `preferred_element_type` are as for `lax.conv_general_dilated`.
    Raises: ValueError for other modes, or operands that are not vectors with elements; both are named.
    """
    x, y = _vectors("convolve", a, v)
    x, y = (x, y) if x.shape[0] >= y.shape[0] else (y, x)
    options = precision, preferred_element_type
    return _correlate(x, rev(y, (0,)), padding=_margins("convolve", y.shape[0], mode), options=options)


@one_program
def correlate(
    a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Correlate two vectors: `convolve` with v reversed and conjugated."""
    x, y = _vectors("correlate", a, v)
    y, options = arithmetic.conjugate(y), (precision, preferred_element_type)
    if x.shape[0] >= y.shape[0]:
        return _correlate(x, y, padding=_margins("correlate", y.shape[0], mode), options=options)
    return rev(_correlate(y, x, padding=_margins("correlate", x.shape[0], mode), options=options), (0,))


def _vectors(name: str, a: ArrayLike, v: ArrayLike) -> list[Array]:
    xs = [as_array(u) for u in promoted_dtypes(name, a, v)]
    if any(x.ndim != 1 or not x.size for x in xs):
        raise ValueError(
            f"{find_called(name)}: operands must be vectors with elements, not {xs[0].aval} and {xs[1].aval}."
        )
    return xs


def _margins(name: str, short: int, mode: str) -> tuple[int, int]:
    """Compute how far the shorter vector overhangs both ends of the longer one, by `mode`."""
    margins = {"full": (short - 1, short - 1), "same": (short // 2, short - short // 2 - 1), "valid": (0, 0)}
    if mode not in margins:
        raise ValueError(f"{name}: mode must be 'full', 'same' or 'valid', not {mode!r}.")
    return margins[mode]


@core.compound
def _correlate(x: Array, y: Array, *, padding: tuple[int, int], options: tuple[Any, Any]) -> Array:
    precision, dtype = options
    lhs, rhs = reshape(x, (1, 1, x.shape[0])), reshape(y, (1, 1, y.shape[0]))
    found = conv_general_dilated(lhs, rhs, (1,), [padding], precision=precision, preferred_element_type=dtype)
    return reshape(found, found.shape[2:])


# ---- choice by function --------------------------------------------------------------------------------------


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """Apply to each element the function (or number) of the last condition that is true; one more is the default.

    Args:
      condlist: conditions in a list, or along the first axis of an array; or one alone.
    Raises: ValueError if there are neither as many functions as conditions nor one more.
    """
    v = array_operand("piecewise", x)
    listed = isinstance(condlist, (list, tuple))
    condlist = [by_protocol(c) for c in condlist] if listed else by_protocol(condlist)
    one = not listed and (np.ndim(condlist) == 0 or (np.shape(condlist) == v.shape and len(funclist) <= 2))
    conditions: list[Any] = [condlist] if one else list(condlist)
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"piecewise: {len(conditions)} conditions and {len(funclist)} functions; one more is the default."
        )
    values = [cast(f(v, *args, **kw) if callable(f) else f, v.dtype) for f in funclist]
    found = full(v.shape, 0, v.dtype) if len(values) == len(conditions) else choose_between(True, values.pop(), v)
    common_shape("piecewise", v.shape, *[np.shape(condition) for condition in conditions])
    for condition, value in zip(conditions, values, strict=True):
        found = choose_between(condition, value, found)
    return found
