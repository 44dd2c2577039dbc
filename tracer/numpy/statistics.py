"""Means, variances and standard deviations over axes. See also quantiles.py and covariance.py."""

import math
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy import reductions
from tapeless.tracer.numpy.arithmetic import select, subtract
from tapeless.tracer.numpy.logic import choose_between
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    broadcast_to_shape,
    cast,
    check_no_out,
    mixing_inside,
    promoted_inexact,
)
from tapeless.tracer.numpy.reductions import Axis, count_nonzero
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import canonical_axis, listed_axes
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, expand_dims, full, transpose

# ---- means ---------------------------------------------------------------------------------------------------


@one_program
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the mean over axes; of integers as floating point. Half-precision numbers are summed in float32.

    Args:
      axis: one or several; all if None.
      dtype: of the elements before they are summed, and of the result; an integer dtype rounds towards zero.
      keepdims: keep the axes, with size 1.
      where: which elements count, booleans broadcast to a; all if None.
    Returns: nan if there are no elements.
    Raises: TypeError if `dtype` is boolean; ValueError for an axis out of range or named twice; NotImplementedError for
      an `out`.
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
    y = quotient(reduce_sum(reductions.wide(x), axes), math.prod(x.shape[d] for d in axes))
    y = y if y.dtype == x.dtype and not y.weak_type else lax.convert_element_type(y, x.dtype)
    return expand_dims(y, axes) if keepdims and axes else y


def quotient(total: Array, count: float) -> Array:
    """Divide a sum by a count of elements; nan for a count of 0 or less, if the dtype has nan."""
    if not dtypes.is_inexact(total.dtype):
        return lax.div(total, int(count))
    return lax.div(total, float(count) if count > 0 else float("nan"))


def _mean_where(x: Array, axes: tuple[int, ...], keepdims: bool, where: ArrayLike) -> Array:
    total = reductions.sum(reductions.wide(x), axes, keepdims=keepdims, where=where)
    counted = count_nonzero(broadcast_to_shape(as_array(where), x.shape), axes, keepdims)
    return cast(_over_count(total, counted), x.dtype)


def _over_count(total: Array, count: Array, root: bool = False) -> Array:
    """Divide a sum by a count, and take the root if `root`; nan, with derivative 0, if the count is not positive."""
    some = lax.gt(count, 0)
    found = lax.div(total, cast(select(some, count, 1), total.dtype))
    return select(some, lax.root_of_squares(found) if root else found, float("nan"))


@one_program
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """Compute the average over axes, optionally weighted.

    Args:
      axis: one or several; all if None.
      weights: of the shape of a, or of the axes in `axis`, in their order; 1 if None.
      returned: whether to return the sum of weights, too.
      keepdims: keep the axes, with size 1.
    Returns: the average, floating point or complex; with `returned` a pair of it and the sum of weights.
    Raises: ValueError if weights have another shape, or an axis is out of range.
    """
    x = array_operand("average", a)
    if weights is None:
        found = mean(x, axis, keepdims=keepdims)
        count = x.size / max(found.size, 1)
        return (found, full(found.shape, count, found.dtype)) if returned else found
    w = array_operand("average", weights)
    if w.shape != x.shape:
        w = weights_along("average", x, w, axis)
    x, w = promoted_inexact("average", x, w)
    wide = reductions.wide(as_array(w))
    total = reductions.sum(wide, axis, keepdims=keepdims)
    found = lax.div(reductions.sum(lax.mul(reductions.wide(as_array(x)), wide), axis, keepdims=keepdims), total)
    return (cast(found, x.dtype), cast(total, x.dtype)) if returned else cast(found, x.dtype)


def weights_along(name: str, x: Array, w: Array, axis: Axis) -> Array:
    """Broadcast weights of the named axes, in their order, to x. Raises: ValueError for weights of another shape."""
    named = () if axis is None else listed_axes(axis)
    axes = [canonical_axis(d, x.ndim) for d in named]
    if not axes or w.shape != tuple(x.shape[d] for d in axes):
        raise ValueError(f"{name}: weights {w.aval} must have the shape of {x.aval}, or that of the axes {axis}.")
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return broadcast_in_dim(transpose(w, order), x.shape, sorted(axes))


@one_program
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the mean over axes, ignoring nan; nan if all elements are nan. Args, Raises: as for `mean`."""
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


@one_program
@mixing_inside
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """Compute the variance over axes: the mean of |x - mean|², with n - ddof instead of n.

    Args:
      axis, keepdims: as for `mean`.
      dtype: of the result, real if None; the variance is computed in its floating point.
      where: which elements count, booleans broadcast to a; all if None.
      mean: the mean, if it is known, with the axes kept.
      correction: another name of ddof.
    Returns: nan if n - ddof is not positive.
    Raises: TypeError for complex numbers if `dtype` is real; ValueError for both ddof and correction.
    """
    check_no_out("var", out)
    x, result = _deviating("var", a, dtype)
    return cast(_variance_of("var", x, axis, _less("var", ddof, correction), keepdims, where, mean), result)


def _deviating(name: str, a: ArrayLike, dtype: Any) -> tuple[Array, np.dtype[Any]]:
    """Return the elements in the dtype in which deviations are computed, and the dtype of the result."""
    x = array_operand(name, a)
    if dtype is None:
        computed = dtypes.inexact_of(x.dtype)
        return cast(x, computed), dtypes.real_part_dtype(computed)
    result = dtypes.canonical(dtype)
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(result):
        raise TypeError(f"{name}: {x.aval} has imaginary parts, and {result} has none. Omit dtype, or take x.real.")
    return cast(x, dtypes.inexact_of(result)), result


def _less(name: str, ddof: Any, correction: Any) -> Any:
    if correction is None:
        return ddof
    if ddof:
        raise ValueError(f"{name}: ddof={ddof} and correction={correction} say the same: give one of them.")
    return correction


def _variance_of(
    name: str, x: Array, axis: Axis, ddof: float, keepdims: bool, where: Any, centre: Any, root: bool = False
) -> Array:
    """Compute the variance, or its square root."""
    axes = reductions.checked_axes(name, x, axis)
    if where is not None or centre is not None:
        where = None if where is None else reductions.checked_where(name, x, where)
        return _general_variance(x, axes, ddof, keepdims, where, centre, root)
    return _variance(x, axes=axes, ddof=ddof, keepdims=bool(keepdims), root=root)


@core.compound
def _variance(x: Array, *, axes: tuple[int, ...], ddof: float, keepdims: bool, root: bool) -> Array:
    elements, count = reductions.wide(x), math.prod(x.shape[d] for d in axes) - ddof
    centre = _mean(elements, axes=axes, keepdims=True)
    squares = _squared_size(lax.sub(elements, broadcast_to_shape(centre, x.shape)))
    found = quotient(reduce_sum(squares, axes), count)
    y = lax.convert_element_type(lax.root_of_squares(found) if root else found, dtypes.real_part_dtype(x.dtype))
    return expand_dims(y, axes) if keepdims and axes else y


def _squared_size(x: Any) -> Array:
    if dtypes.is_complex(x.dtype):
        return lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))
    return lax.square(x)


def _general_variance(
    x: Array, axes: tuple[int, ...], ddof: float, keepdims: bool, where: Any, centre: Any, root: bool
) -> Array:
    elements = reductions.wide(x)
    centre = mean(elements, axes, keepdims=True, where=where) if centre is None else centre
    if where is not None:
        elements = choose_between(where, elements, centre)  # what does not count may be nan
    squares = _squared_size(subtract(elements, centre))
    total = reductions.sum(squares, axes, keepdims=keepdims, where=where)
    counted = broadcast_to_shape(as_array(True if where is None else where), x.shape)
    count = lax.sub(cast(count_nonzero(counted, axes, keepdims), total.dtype), float(ddof))
    return cast(_over_count(total, count, root), dtypes.real_part_dtype(x.dtype))


@one_program
@mixing_inside
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """Compute the standard deviation over axes: the square root of `var`, with derivative 0 where it is 0.

    Args, Raises: as for `var`.
    """
    check_no_out("std", out)
    x, result = _deviating("std", a, dtype)
    return cast(_variance_of("std", x, axis, _less("std", ddof, correction), keepdims, where, mean, root=True), result)


@one_program
@mixing_inside
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Compute the variance over axes, ignoring nan. Args, Raises: as for `var`."""
    check_no_out("nanvar", out)
    x, valid = _numbers_among("nanvar", a, where)
    x, result = _deviating("nanvar", x, dtype)
    return cast(_variance_of("nanvar", x, axis, ddof, keepdims, valid, mean), result)


@one_program
@mixing_inside
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Compute the standard deviation over axes, ignoring nan. Args, Raises: as for `std`."""
    check_no_out("nanstd", out)
    x, valid = _numbers_among("nanstd", a, where)
    x, result = _deviating("nanstd", x, dtype)
    return cast(_variance_of("nanstd", x, axis, ddof, keepdims, valid, mean, root=True), result)
