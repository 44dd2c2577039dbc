"""Quantiles over axes (percentiles, medians): elements, or interpolations, below which given shares of elements lie.

Source: Hyndman and Fan 1996, "Sample quantiles in statistical packages", whose nine definitions are among NumPy's
methods; four others are older.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program, one_program_for
from tapeless.tracer.numpy import reductions
from tapeless.tracer.numpy.arithmetic import select, true_divide
from tapeless.tracer.numpy.creation import array
from tapeless.tracer.numpy.indexing import take_along_axis
from tapeless.tracer.numpy.logic import isnan
from tapeless.tracer.numpy.promotion import array_operand, cast, check_no_out, check_operands, inexact
from tapeless.tracer.numpy.reductions import Axis
from tapeless.tracer.numpy.statistics import weights_along
from tapeless.tracer.primitives import bits, sorting
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.primitives.reduction import cumsum, reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, expand_dims, full, reshape, slice_in_dim, transpose
from tapeless.tracer.types import by_protocol

# (alpha, beta): of n sorted elements, the quantile q is at position n q + alpha + q (1 - alpha - beta) - 1.
_BETWEEN = {
    "linear": (1.0, 1.0),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_OTHERS = ("lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation")
_METHODS = (*_BETWEEN, *_OTHERS)


@one_program_for("q")
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute quantiles over axes: the numbers below which the shares q of all elements lie.

    Args:
      a: real numbers; integers become floating point.
      q: [k..], from 0 to 1.
      axis: one or several; all if None.
      overwrite_input: has no effect.
      method: the definition to use, by one of NumPy's thirteen names; "linear" interpolates between two elements.
      keepdims: keep the axes, with size 1.
      weights: how much each element counts, of the shape of a or of its reduced axes; for the method "inverted_cdf".
    Returns: [k.., axes of a without `axis`]; nan where an element is nan, there are none, or a weight is negative.
    Raises: ValueError for another method, q known to be outside, an axis out of range, or weights with another method,
      of another shape or known to be negative; TypeError for complex numbers.
    """
    return _quantiles("quantile", a, q, axis, out, method, keepdims, weights, skip_nan=False)


@one_program_for("q")
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute quantiles over axes, ignoring nan. Args, Returns, Raises: as for `quantile`."""
    return _quantiles("nanquantile", a, q, axis, out, method, keepdims, weights, skip_nan=True)


@one_program_for("q")
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute percentiles over axes. Args, Returns, Raises: as for `quantile`, with q from 0 to 100."""
    return _quantiles("percentile", a, q, axis, out, method, keepdims, weights, skip_nan=False, whole=100)


@one_program_for("q")
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute percentiles over axes, ignoring nan. Args, Returns, Raises: as for `quantile`, with q from 0 to 100."""
    return _quantiles("nanpercentile", a, q, axis, out, method, keepdims, weights, skip_nan=True, whole=100)


@one_program
def median(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Compute the median over axes: the middle element, or the mean of the two in the middle; nan for no elements.

    Args, Raises: as for `quantile`. Returns: floating point.
    """
    return _quantiles("median", a, 0.5, axis, out, "midpoint", keepdims, None, skip_nan=False)


@one_program
def nanmedian(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Compute the median over axes, ignoring nan. Args, Returns, Raises: as for `median`."""
    return _quantiles("nanmedian", a, 0.5, axis, out, "midpoint", keepdims, None, skip_nan=True)


def _quantiles(
    name: str,
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis,
    out: None,
    method: str,
    keepdims: bool,
    weights: ArrayLike | None,
    *,
    skip_nan: bool,
    whole: int = 1,
) -> Array:
    check_no_out(name, out)
    if method not in _METHODS:
        raise ValueError(f"{name}: method must be one of {', '.join(_METHODS)}, not {method!r}.")
    x = inexact(name, array_operand(name, a))
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"{name}: complex numbers have no order: {x.aval}.")
    q = array(q) if isinstance(q, (list, tuple)) else by_protocol(q)
    check_operands(name, x, q)
    _check_shares(name, q, whole)
    shares = cast(q, np.dtype(np.float32) if x.dtype.itemsize < 4 else x.dtype)  # positions need the precision
    shares = shares if whole == 1 else true_divide(shares, whole)
    axes = reductions.checked_axes(name, x, axis)
    if weights is None:
        found = _quantile(x, shares, axes=axes, method=method, skip_nan=skip_nan)
    else:
        w = _checked_weights(name, x, weights, axis, method)
        found = _weighted_quantile(x, shares, w, axes=axes, skip_nan=skip_nan)
    at = tuple(len(shares.shape) + d for d in axes)
    return expand_dims(found, at) if keepdims and at else found


def _check_shares(name: str, q: Any, whole: int) -> None:
    """Check that q, if it is known, is from 0 to `whole`. Raises: ValueError."""
    known = known_elements(q)
    if known is not None and not np.all((known >= 0) & (known <= whole)):
        raise ValueError(f"{name}: q must be from 0 to {whole}, not {known}.")


def _checked_weights(name: str, x: Array, weights: ArrayLike, axis: Axis, method: str) -> Array:
    if method != "inverted_cdf":
        raise ValueError(f"{name}: weights are for the method 'inverted_cdf', not {method!r}.")
    w = array_operand(name, weights)
    if dtypes.is_complex(w.dtype):
        raise TypeError(f"{name}: weights must be real, not {w.aval}.")
    known = known_elements(w)
    if known is not None and np.any(known < 0):
        raise ValueError(f"{name}: weights must not be negative.")
    w = reductions.wide(cast(w, x.dtype))
    return w if w.shape == x.shape else weights_along(name, x, w, axis)


def _rows(x: Array, axes: tuple[int, ...]) -> Array:
    """Flatten the axes to be reduced into the last axis: [kept.., n]."""
    rest = tuple(d for d in range(x.ndim) if d not in axes)
    return reshape(transpose(x, (*rest, *axes)), (*[x.shape[d] for d in rest], math.prod(x.shape[d] for d in axes)))


@core.compound
def _quantile(x: Array, q: Any, *, axes: tuple[int, ...], method: str, skip_nan: bool) -> Array:
    """Compute quantiles by one sort, and a gather of two neighbours for each q along the last axis."""
    flat = _rows(x, axes)
    kept = flat.shape[:-1]
    if not x.size:
        return full((*q.shape, *kept), np.nan, x.dtype)
    ordered, missing = sorting.sort(flat), isnan(flat)
    shape = (*q.shape, *kept)
    shares = broadcast_in_dim(q, shape, tuple(range(len(q.shape))))
    last = _last_position(flat, missing, shape, skip_nan, q.dtype)
    low, high, weight = _neighbours(shares, last, method)
    below, above = (reductions.wide(_picked(ordered, places, len(q.shape))) for places in (low, high))
    between = lax.add(lax.mul(below, lax.sub(1.0, weight)), lax.mul(above, weight))
    # without the select, 0 times an infinite neighbour would be nan
    found = lax.convert_element_type(select(lax.eq(low, high), below, between), x.dtype)
    return _without_missing(found, last, missing, len(q.shape), skip_nan)


def _without_missing(found: Array, last: Any, missing: Array, k: int, skip_nan: bool) -> Array:
    """Set results to nan where all elements are nan if `skip_nan`, else where any is."""
    if skip_nan:
        return select(lax.lt(last, 0), np.nan, found)
    some = lax.ne(reduce_sum(lax.convert_element_type(missing, np.int32), (missing.ndim - 1,)), 0)
    return select(broadcast_in_dim(some, found.shape, tuple(range(k, found.ndim))), np.nan, found)


def _last_position(flat: Array, missing: Array, shape: tuple[int, ...], skip_nan: bool, dtype: Any) -> Array:
    """Return the position of the last element that counts, as a number of `dtype`; -1 if there is none."""
    n = flat.shape[-1]
    if not skip_nan:
        return full(shape, n - 1, dtype)
    absent = reduce_sum(lax.convert_element_type(missing, np.int32), (flat.ndim - 1,))
    last = lax.convert_element_type(lax.sub(n - 1, absent), dtype)
    return broadcast_in_dim(last, shape, tuple(range(len(shape) - last.ndim, len(shape))))


def _neighbours(q: Array, last: Array, method: str) -> tuple[Array, Array, Any]:
    """Return the positions of the elements before and after the quantile q, and the weight of the latter."""
    low, high = _positions(q, last, method)
    halves = method in ("midpoint", "averaged_inverted_cdf")
    weight = full(q.shape, 0.5, q.dtype) if halves else lax.sub(_between(q, last, method), low)
    weight = weight if halves or method in _BETWEEN else full(q.shape, 0.0, q.dtype)
    low, high = (lax.max(lax.min(v, last), 0.0) for v in (low, high))
    return low, high, weight


def _between(q: Array, last: Array, method: str) -> Array:
    alpha, beta = _BETWEEN.get(method, (1.0, 1.0))
    if alpha == beta == 1:
        return lax.mul(q, last)
    offset = lax.add(lax.mul(q, 1.0 - alpha - beta), alpha - 1.0)
    return lax.add(lax.mul(q, lax.add(last, 1.0)), offset)


_ROUNDED: dict[str, Callable[[Any], Array]] = {
    "lower": lax.floor,
    "higher": lax.ceil,
    "nearest": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
}


def _positions(q: Array, last: Array, method: str) -> tuple[Array, Array]:
    if method in _BETWEEN or method == "midpoint":
        place = _between(q, last, method)
        return lax.floor(place), lax.ceil(place)
    if method in _ROUNDED:
        place = _ROUNDED[method](lax.mul(q, last))
        return place, place
    count = lax.mul(q, lax.add(last, 1.0))
    if method == "closest_observation":
        place = lax.sub(count, 1.5)
        low = lax.floor(place)
        stays = bits.bitwise_and(lax.eq(place, low), lax.ne(lax.rem(low, 2.0), 0.0))
        place = select(stays, low, lax.add(low, 1.0))
        return place, place
    low = lax.sub(lax.ceil(count), 1.0)
    return low, (low if method == "inverted_cdf" else lax.floor(count))


def _picked(ordered: Array, places: Array, k: int) -> Array:
    """Gather from `ordered` [kept.., n] at positions [k axes, kept..]; the result has the shape of the positions."""
    kept = tuple(range(k, places.ndim))
    last = transpose(lax.convert_element_type(places, np.int32), (*kept, *range(k)))
    rows = reshape(last, (*places.shape[k:], math.prod(places.shape[:k])))
    found = reshape(take_along_axis(ordered, rows, -1, mode="clip"), last.shape)
    return transpose(found, (*range(len(kept), places.ndim), *range(len(kept))))


@core.compound
def _weighted_quantile(x: Array, q: Any, w: Array, *, axes: tuple[int, ...], skip_nan: bool) -> Array:
    """Find the first element at which the sum of weights reaches the share q of the total, and is not 0."""
    flat, weights = _rows(x, axes), _rows(w, axes)
    k, kept = len(q.shape), flat.shape[:-1]
    if not x.size:
        return full((*q.shape, *kept), np.nan, x.dtype)
    missing = isnan(flat)
    bad = bits.bitwise_not(lax.ge(weights, 0))
    weights = select(missing, 0.0, weights) if skip_nan else weights
    ordered, weights = sorting.sort((flat, weights), num_keys=1)
    sums = cumsum(weights, weights.ndim - 1)
    total = slice_in_dim(sums, -1, None, axis=-1)
    shape = (*q.shape, *flat.shape)
    shares = broadcast_in_dim(q, shape, tuple(range(k)))
    sums, total = (broadcast_in_dim(v, shape, tuple(range(k, len(shape)))) for v in (sums, total))
    before = bits.bitwise_or(lax.lt(sums, lax.mul(shares, total)), lax.eq(sums, 0))
    count = reduce_sum(lax.convert_element_type(before, np.int32), (len(shape) - 1,))
    found = _picked(ordered, lax.min(count, flat.shape[-1] - 1), k)
    wrong = lax.ne(reduce_sum(lax.convert_element_type(bad, np.int32), (bad.ndim - 1,)), 0)
    wrong = broadcast_in_dim(wrong, found.shape, tuple(range(k, found.ndim)))
    nothing = lax.eq(reshape(slice_in_dim(total, 0, 1, axis=-1), found.shape), 0)
    found = select(bits.bitwise_or(wrong, nothing), np.nan, found)
    return found if skip_nan else _without_missing(found, None, missing, k, False)
