"""Statistics over axes: means, variances, quantiles, covariances and correlations. Histograms are in sorting.py."""

import math
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy import reductions
from tapeless.tracer.numpy.arithmetic import real, select, subtract, true_divide
from tapeless.tracer.numpy.creation import array
from tapeless.tracer.numpy.indexing import take_along_axis
from tapeless.tracer.numpy.logic import choose_between, isnan
from tapeless.tracer.numpy.matrices import diagonal
from tapeless.tracer.numpy.norms import root_of_squares
from tapeless.tracer.numpy.promotion import (
    array_operand,
    cast,
    check_no_out,
    check_operands,
    inexact,
    promoted_inexact,
    promoted_inexact_dtypes,
    stretched,
)
from tapeless.tracer.numpy.reductions import Axis, count_nonzero
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.contraction import dot_general
from tapeless.tracer.primitives.operands import canonical_axes
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, concatenate, expand_dims, full, reshape, transpose
from tapeless.tracer.primitives.sorting import sort

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
    """Mean over axes, of integers as floating point. Half-precision numbers are summed in float32."""
    check_no_out("mean", out)
    x = _averaged("mean", a, dtype)
    if where is not None:
        return _mean_where(x, axis, keepdims, where)
    axes = reductions.checked_axes("mean", x, axis)
    return _mean(x, axes=axes, keepdims=bool(keepdims))


@core.compound
def _mean(x: Array, *, axes: tuple[int, ...], keepdims: bool) -> Array:
    count = math.prod(x.shape[d] for d in axes)
    wide = _wide(x)
    y = lax.div(reduce_sum(wide, axes), float(count) if count else float("nan"))
    y = y if y.dtype == x.dtype and not y.weak_type else lax.convert_element_type(y, x.dtype)
    return expand_dims(y, axes) if keepdims and axes else y


def _wide(x: Array) -> Array:
    """x in a dtype that sums do not soon overflow or stall in."""
    return lax.convert_element_type(x, np.float32) if dtypes.is_float(x.dtype) and x.dtype.itemsize < 4 else x


def _averaged(name: str, a: ArrayLike, dtype: Any) -> Array:
    x = array_operand(name, a)
    return cast(x, dtypes.inexact_of(x.dtype) if dtype is None else dtypes.canonical(dtype))


def _mean_where(x: Array, axis: Axis, keepdims: bool, where: ArrayLike) -> Array:
    total = reductions.sum(x, axis, keepdims=keepdims, where=where)
    counted = stretched(array_operand("mean", where), x.shape)
    return lax.div(total, cast(count_nonzero(counted, axis, keepdims), total.dtype))


def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """Mean over axes weighted by `weights`, which have the shape of a, or are a vector along `axis`.

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
    axes = canonical_axes(axis, x.ndim) if axis is not None else ()
    if w.ndim != 1 or len(axes) != 1 or w.shape[0] != x.shape[axes[0]]:
        raise ValueError(f"average: weights {w.aval} must have the shape of {x.aval}, or be a vector along one axis.")
    return broadcast_in_dim(w, x.shape, axes)


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
    x = _averaged("nanmean", a, dtype)
    valid = lax.eq(x, x)
    if where is not None:
        valid = choose_between(where, valid, False)
    return _mean_where(reductions.without_nan("nanmean", x, 0), axis, keepdims, valid)


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
    """Variance over axes: the mean of |x - mean|², with n - ddof instead of n. `correction` is another name of ddof."""
    check_no_out("var", out)
    x = _averaged("var", a, dtype)
    less = ddof if correction is None else correction
    if where is not None or mean is not None:
        return _general_variance(x, axis, less, keepdims, where, mean)
    return _variance(x, axes=reductions.checked_axes("var", x, axis), ddof=less, keepdims=bool(keepdims))


@core.compound
def _variance(x: Array, *, axes: tuple[int, ...], ddof: float, keepdims: bool) -> Array:
    wide, count = _wide(x), math.prod(x.shape[d] for d in axes) - ddof
    centre = _mean(wide, axes=axes, keepdims=True)
    squares = _squared_size(lax.sub(wide, stretched(centre, wide.shape)))
    y = lax.div(reduce_sum(squares, axes), float(count) if count > 0 else float("nan"))
    y = lax.convert_element_type(y, dtypes.real_part_dtype(x.dtype))
    return expand_dims(y, axes) if keepdims and axes else y


def _squared_size(x: Any) -> Array:
    if dtypes.is_complex(x.dtype):
        return lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))
    return lax.square(x)


def _general_variance(x: Array, axis: Axis, ddof: float, keepdims: bool, where: Any, centre: Any) -> Array:
    centre = mean(x, axis, keepdims=True, where=where) if centre is None else centre
    squares = _squared_size(subtract(x, centre))
    total = reductions.sum(squares, axis, keepdims=keepdims, where=where)
    counted = stretched(array_operand("var", True if where is None else where), x.shape)
    count = cast(count_nonzero(counted, axis, keepdims), total.dtype)
    return lax.div(total, lax.sub(count, float(ddof)))


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
    return root_of_squares(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


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
    x = _averaged("nanvar", a, dtype)
    valid = lax.eq(x, x)
    if where is not None:
        valid = choose_between(where, valid, False)
    return var(reductions.without_nan("nanvar", x, 0), axis, None, None, ddof, keepdims, where=valid)


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
    return root_of_squares(nanvar(a, axis, dtype, None, ddof, keepdims, where))


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
    x = _averaged(name, a, None)
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"{name}: complex numbers have no order: {x.aval}.")
    q = array(q) if isinstance(q, (list, tuple)) else q
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


# ---- covariances ---------------------------------------------------------------------------------------------


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: None = None,
    aweights: None = None,
) -> Array:
    """Covariances of variables, the rows of m (columns if not `rowvar`), and those of y; n - 1 in the denominator.

    Raises: ValueError if m or y has more than two axes; NotImplementedError for weights.
    """
    if fweights is not None or aweights is not None:
        raise NotImplementedError("cov: weights are not supported; multiply the deviations by their roots.")
    x = _variables(m, rowvar)
    if y is not None:
        x, other = promoted_inexact_dtypes("cov", x, _variables(y, rowvar))
        x = concatenate([x, other], 0)
    less = (0 if bias else 1) if ddof is None else ddof
    found = _cov(x, ddof=less)
    return reshape(found, ()) if found.shape == (1, 1) else found


def _variables(m: ArrayLike, rowvar: bool) -> Array:
    x = inexact("cov", array_operand("cov", m))
    if x.ndim > 2:
        raise ValueError(f"cov: variables are the rows of a matrix, not {x.aval}.")
    x = reshape(x, (1, x.size)) if x.ndim < 2 else x
    return x if rowvar or x.shape[0] == 1 else transpose(x, (1, 0))


@core.compound
def _cov(x: Array, *, ddof: float) -> Array:
    count = x.shape[1] - ddof
    centred = lax.sub(x, stretched(_mean(x, axes=(1,), keepdims=True), x.shape))
    conjugate = lax.conj(centred) if dtypes.is_complex(x.dtype) else centred
    products = dot_general(centred, conjugate, (((1,), (1,)), ((), ())))
    return lax.div(products, float(count) if count > 0 else float("nan"))


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True) -> Array:
    """Correlations of variables: their covariances divided by their standard deviations, clipped to [-1, 1]."""
    c = cov(x, y, rowvar)
    return lax.div(c, c) if not c.ndim else _correlations(c)


@core.compound
def _correlations(c: Array) -> Array:
    deviation = lax.sqrt(diagonal(real(c)))
    scale = lax.mul(*(broadcast_in_dim(deviation, c.shape, (d,)) for d in (0, 1)))
    if dtypes.is_complex(c.dtype):
        return lax.div(c, lax.convert_element_type(scale, c.dtype))
    return lax.clamp(-1.0, lax.div(c, scale), 1.0)
