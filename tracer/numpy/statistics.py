"""Statistics over axes: means, variances, quantiles. Covariances are in covariance.py, histograms in sorting.py."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy import reductions
from tapeless.tracer.numpy.arithmetic import select, subtract, true_divide
from tapeless.tracer.numpy.creation import array
from tapeless.tracer.numpy.indexing import take_along_axis
from tapeless.tracer.numpy.logic import choose_between, isnan
from tapeless.tracer.numpy.norms import root_of_squares
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    cast,
    check_no_out,
    check_operands,
    inexact,
    promoted_inexact,
    stretched,
)
from tapeless.tracer.numpy.reductions import Axis, count_nonzero
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import canonical_axis
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, expand_dims, full, reshape, transpose
from tapeless.tracer.primitives.sorting import sort
from tapeless.tracer.types import by_protocol

# ---- means ---------------------------------------------------------------------------------------------------


def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Mean over axes, of integers as floating point. Half-precision numbers are summed in float32.

    Args:
      dtype: that elements have before they are summed, and of the result, which an integer one rounds towards zero.
      where: the elements that count, booleans that broadcast to a.
    Raises: TypeError if `dtype` is boolean; what all reductions raise.
    """
    check_no_out("mean", out)
    x = array_operand("mean", a)
    result = dtypes.inexact_of(x.dtype) if dtype is None else dtypes.canonical(dtype)
    if dtypes.is_bool(result):
        raise TypeError(f"mean: a mean is a number, which {result} is not; the array is {x.aval}.")
    x = cast(x, result)
    axes = reductions.checked_axes("mean", x, axis)
    if where is not None:
        return _mean_where(x, axes, bool(keepdims), reductions.checked_where("mean", x, where))
    return _mean(x, axes=axes, keepdims=bool(keepdims))


@core.compound
def _mean(x: Array, *, axes: tuple[int, ...], keepdims: bool) -> Array:
    y = quotient(reduce_sum(wide(x), axes), math.prod(x.shape[d] for d in axes))
    y = y if y.dtype == x.dtype and not y.weak_type else lax.convert_element_type(y, x.dtype)
    return expand_dims(y, axes) if keepdims and axes else y


def quotient(total: Array, count: float) -> Array:
    """A sum divided by a number of elements; nan for none, where that is a number of its dtype."""
    if not dtypes.is_inexact(total.dtype):
        return lax.div(total, int(count))
    return lax.div(total, float(count) if count > 0 else float("nan"))


def wide(x: Array) -> Array:
    """x in a dtype that sums do not soon overflow or stall in."""
    return lax.convert_element_type(x, np.float32) if dtypes.is_float(x.dtype) and x.dtype.itemsize < 4 else x


def _mean_where(x: Array, axes: tuple[int, ...], keepdims: bool, where: ArrayLike) -> Array:
    total = reductions.sum(wide(x), axes, keepdims=keepdims, where=where)
    counted = count_nonzero(stretched(as_array(where), x.shape), axes, keepdims)
    return cast(lax.div(total, cast(counted, total.dtype)), x.dtype)


def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """Average over axes with `weights`, of the shape of a or of its averaged axes, in their order.

    Returns: the average, and with `returned` the sum of weights too.
    Raises: ValueError if weights have another shape.
    """
    x = array_operand("average", a)
    if weights is None:
        found = mean(x, axis, keepdims=keepdims)
        count = x.size / max(found.size, 1)
        return (found, full(found.shape, count, found.dtype)) if returned else found
    w = array_operand("average", weights)
    if w.shape != x.shape:
        w = _weights_along(x, w, axis)
    x, w = promoted_inexact("average", x, w)
    total = reductions.sum(w, axis, keepdims=keepdims)
    found = lax.div(reductions.sum(lax.mul(x, w), axis, keepdims=keepdims), total)
    return (found, total) if returned else found


def _weights_along(x: Array, w: Array, axis: Axis) -> Array:
    named = () if axis is None else axis if isinstance(axis, Sequence) else (axis,)
    axes = [canonical_axis(d, x.ndim) for d in named]
    if not axes or w.shape != tuple(x.shape[d] for d in axes):
        raise ValueError(f"average: weights {w.aval} must have the shape of {x.aval}, or that of the axes {axis}.")
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return broadcast_in_dim(transpose(w, order), x.shape, sorted(axes))


def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Mean over axes of the elements that are not nan; nan if there are none."""
    check_no_out("nanmean", out)
    x, valid = _numbers_among("nanmean", a, where)
    return mean(x, axis, dtype, keepdims=keepdims, where=valid)


def _numbers_among(name: str, a: ArrayLike, where: ArrayLike | None) -> tuple[Array, Array]:
    """Return floating-point elements with 0 for nan, and the mask of elements that count: not nan, and in `where`."""
    x = array_operand(name, a)
    x = cast(x, dtypes.inexact_of(x.dtype))
    valid = lax.eq(x, x)
    if where is not None:
        valid = choose_between(reductions.checked_where(name, x, where), valid, False)
    return reductions.without_nan(name, x, 0), valid


# ---- variances -----------------------------------------------------------------------------------------------


def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """Variance over axes: the mean of |x - mean|², with n - ddof instead of n.

    Args:
      dtype: of the result, real unless a complex one is asked for; the variance is computed in its floating point.
      where: the elements that count, booleans that broadcast to a.
      mean: the mean, if it is known, with the axes kept.
      correction: another name of ddof.
    Raises: TypeError for complex numbers if `dtype` is real; ValueError for ddof and another correction.
    """
    check_no_out("var", out)
    x, result = _deviating("var", a, dtype)
    return cast(_variance_of("var", x, axis, _less("var", ddof, correction), keepdims, where, mean), result)


def _deviating(name: str, a: ArrayLike, dtype: Any) -> tuple[Array, np.dtype[Any]]:
    """Elements in the dtype that deviations are computed in, and the dtype of the result."""
    x = array_operand(name, a)
    if dtype is None:
        computed = dtypes.inexact_of(x.dtype)
        return cast(x, computed), dtypes.real_part_dtype(computed)
    result = dtypes.canonical(dtype)
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(result):
        raise TypeError(f"{name}: {x.aval} has imaginary parts that {result} has not. Leave out dtype, or take x.real.")
    return cast(x, dtypes.inexact_of(result)), result


def _less(name: str, ddof: Any, correction: Any) -> Any:
    if correction is None:
        return ddof
    if ddof:
        raise ValueError(f"{name}: ddof={ddof} and correction={correction} say the same: give one of them.")
    return correction


def _variance_of(name: str, x: Array, axis: Axis, ddof: float, keepdims: bool, where: Any, centre: Any) -> Array:
    axes = reductions.checked_axes(name, x, axis)
    if where is not None or centre is not None:
        where = None if where is None else reductions.checked_where(name, x, where)
        return _general_variance(x, axes, ddof, keepdims, where, centre)
    return _variance(x, axes=axes, ddof=ddof, keepdims=bool(keepdims))


@core.compound
def _variance(x: Array, *, axes: tuple[int, ...], ddof: float, keepdims: bool) -> Array:
    elements, count = wide(x), math.prod(x.shape[d] for d in axes) - ddof
    centre = _mean(elements, axes=axes, keepdims=True)
    squares = _squared_size(lax.sub(elements, stretched(centre, x.shape)))
    y = lax.convert_element_type(quotient(reduce_sum(squares, axes), count), dtypes.real_part_dtype(x.dtype))
    return expand_dims(y, axes) if keepdims and axes else y


def _squared_size(x: Any) -> Array:
    if dtypes.is_complex(x.dtype):
        return lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))
    return lax.square(x)


def _general_variance(x: Array, axes: tuple[int, ...], ddof: float, keepdims: bool, where: Any, centre: Any) -> Array:
    elements = wide(x)
    centre = mean(elements, axes, keepdims=True, where=where) if centre is None else centre
    squares = _squared_size(subtract(elements, centre))
    total = reductions.sum(squares, axes, keepdims=keepdims, where=where)
    counted = stretched(as_array(True if where is None else where), x.shape)
    count = lax.sub(cast(count_nonzero(counted, axes, keepdims), total.dtype), float(ddof))
    y = lax.div(total, select(lax.gt(count, 0), count, float("nan")))
    return cast(y, dtypes.real_part_dtype(x.dtype))


def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """Standard deviation over axes: the square root of `var`, with derivative 0 where that is 0."""
    check_no_out("std", out)
    x, result = _deviating("std", a, dtype)
    found = _variance_of("std", x, axis, _less("std", ddof, correction), keepdims, where, mean)
    return cast(root_of_squares(found), result)


def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Variance over axes of the elements that are not nan."""
    check_no_out("nanvar", out)
    x, valid = _numbers_among("nanvar", a, where)
    x, result = _deviating("nanvar", x, dtype)
    return cast(_variance_of("nanvar", x, axis, ddof, keepdims, valid, None), result)


def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Standard deviation over axes of the elements that are not nan."""
    check_no_out("nanstd", out)
    x, valid = _numbers_among("nanstd", a, where)
    x, result = _deviating("nanstd", x, dtype)
    return cast(root_of_squares(_variance_of("nanstd", x, axis, ddof, keepdims, valid, None)), result)


# ---- quantiles -----------------------------------------------------------------------------------------------

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Quantiles over axes: elements below which the shares q [k..], from 0 to 1, of all elements lie.

    Args:
      method: what to do between two elements: linear, lower, higher, midpoint or nearest.
    Returns: [k.., axes that are left]; nan where an element is nan, or there are none.
    Raises: ValueError for another method, or an axis out of range; TypeError for complex numbers.
    """
    check_no_out("quantile", out)
    return _quantiles("quantile", a, q, axis, method, keepdims, skip_nan=False)


def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """`quantile` of the elements that are not nan."""
    check_no_out("nanquantile", out)
    return _quantiles("nanquantile", a, q, axis, method, keepdims, skip_nan=True)


def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """`quantile` with q from 0 to 100."""
    check_no_out("percentile", out)
    return _quantiles("percentile", a, q, axis, method, keepdims, skip_nan=False, whole=100)


def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """`nanquantile` with q from 0 to 100."""
    check_no_out("nanpercentile", out)
    return _quantiles("nanpercentile", a, q, axis, method, keepdims, skip_nan=True, whole=100)


def median(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Median over axes: the middle element, or the mean of the two in the middle; nan where there are none."""
    check_no_out("median", out)
    return _quantiles("median", a, 0.5, axis, "midpoint", keepdims, skip_nan=False)


def nanmedian(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """`median` of the elements that are not nan."""
    check_no_out("nanmedian", out)
    return _quantiles("nanmedian", a, 0.5, axis, "midpoint", keepdims, skip_nan=True)


def _quantiles(
    name: str, a: ArrayLike, q: ArrayLike, axis: Axis, method: str, keepdims: bool, *, skip_nan: bool, whole: int = 1
) -> Array:
    if method not in _METHODS:
        raise ValueError(f"{name}: method must be one of {', '.join(_METHODS)}, not {method!r}.")
    x = inexact(name, array_operand(name, a))
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"{name}: complex numbers have no order: {x.aval}.")
    q = array(q) if isinstance(q, (list, tuple)) else by_protocol(q)
    check_operands(name, x, q)
    shares = cast(q, x.dtype) if whole == 1 else true_divide(cast(q, x.dtype), whole)
    axes = reductions.checked_axes(name, x, axis)
    found = _quantile(x, shares, axes=axes, method=method, skip_nan=skip_nan)
    at = tuple(len(shares.shape) + d for d in axes)
    return expand_dims(found, at) if keepdims and at else found


@core.compound
def _quantile(x: Array, q: Any, *, axes: tuple[int, ...], method: str, skip_nan: bool) -> Array:
    """Sorts once, then picks two neighbours for each q by a gather along the last axis."""
    rest = tuple(d for d in range(x.ndim) if d not in axes)
    kept = tuple(x.shape[d] for d in rest)
    if not x.size:
        return full((*q.shape, *kept), np.nan, x.dtype)
    flat = reshape(transpose(x, (*rest, *axes)), (*kept, math.prod(x.shape[d] for d in axes)))
    ordered, missing = sort(flat), isnan(flat)
    shape = (*q.shape, *kept)
    shares = broadcast_in_dim(q, shape, tuple(range(len(q.shape))))
    last = _last_position(flat, missing, shape, skip_nan)
    low, high, weight = _neighbours(lax.mul(shares, last), last, method)
    below, above = _picked(ordered, low, len(q.shape)), _picked(ordered, high, len(q.shape))
    found = lax.add(lax.mul(below, lax.sub(1.0, weight)), lax.mul(above, weight))
    if skip_nan:
        return select(lax.lt(last, 0), np.nan, found)
    some = lax.ne(reduce_sum(lax.convert_element_type(missing, np.int32), (flat.ndim - 1,)), 0)
    return select(broadcast_in_dim(some, shape, tuple(range(len(q.shape), len(shape)))), np.nan, found)


def _last_position(flat: Array, missing: Array, shape: tuple[int, ...], skip_nan: bool) -> Array:
    """Position of the last element that counts, as floating point; -1 if there is none."""
    n = flat.shape[-1]
    if not skip_nan:
        return full(shape, n - 1, flat.dtype)
    absent = reduce_sum(lax.convert_element_type(missing, np.int32), (flat.ndim - 1,))
    last = lax.convert_element_type(lax.sub(n - 1, absent), flat.dtype)
    return broadcast_in_dim(last, shape, tuple(range(len(shape) - last.ndim, len(shape))))


def _neighbours(place: Array, last: Array, method: str) -> tuple[Array, Array, Any]:
    """Positions of the elements before and after `place`, and the weight of the latter."""
    low, high = lax.floor(place), lax.ceil(place)
    if method == "nearest":
        low = high = lax.round(place, lax.RoundingMethod.TO_NEAREST_EVEN)
    elif method in ("lower", "higher"):
        low = high = low if method == "lower" else high
    weight = lax.sub(place, low) if method == "linear" else full(place.shape, 0.5, place.dtype)
    low, high = (lax.max(lax.min(v, last), 0.0) for v in (low, high))
    return low, high, weight


def _picked(ordered: Array, places: Array, k: int) -> Array:
    """Elements of ordered [kept.., n] at places [k axes, kept..], in that shape."""
    kept = tuple(range(k, places.ndim))
    last = transpose(lax.convert_element_type(places, np.int32), (*kept, *range(k)))
    rows = reshape(last, (*places.shape[k:], math.prod(places.shape[:k])))
    found = reshape(take_along_axis(ordered, rows, -1, mode="clip"), last.shape)
    return transpose(found, (*range(len(kept), places.ndim), *range(len(kept))))
