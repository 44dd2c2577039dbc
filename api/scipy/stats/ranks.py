"""Ranks, the most frequent elements, and the standard error of the mean: functions of `scipy.stats`."""

import operator
from typing import Any, NamedTuple

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import array_operand, inexact, number_operand
from tapeless.tracer.primitives.reduction import cummax, cummin

_METHODS = ("average", "min", "max", "dense", "ordinal")


class ModeResult(NamedTuple):
    """Most frequent elements, and their counts."""

    mode: Array
    count: Array  # pyright: ignore[reportIncompatibleMethodOverride] # the name that SciPy has


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """Find the most frequent element, the least one of ties.

    Args:
      a: real numbers.
      axis: along which; None for all elements.
      nan_policy: "propagate" counts nan like any other element, "omit" not at all.
      keepdims: keep the axis, or all of them, with size 1.
    Returns: (mode, of the dtype of a; count, default integer), a named tuple; default floats nan and 0 if there are no
      elements.
    Raises: ValueError for an axis out of range or another `nan_policy`; NotImplementedError for "raise".
    """
    x = tnp.atleast_1d(number_operand("mode", a))
    _check_policy("mode", nan_policy)
    shape = x.shape
    along, axis = (tnp.ravel(x), 0) if axis is None else (x, _axis("mode", axis, x))
    kept = (1,) * len(shape) if along is not x else (*shape[:axis], 1, *shape[axis + 1 :])
    value, count = _mode(tnp.moveaxis(along, axis, -1), omit=nan_policy == "omit")
    if keepdims:
        return ModeResult(value.reshape(kept), count.reshape(kept))
    return ModeResult(value, count)


@core.compound
def _mode(x: Any, *, omit: bool) -> Any:
    if not x.shape[-1]:
        dtype = dtypes.default_dtype("f")
        return tnp.full(x.shape[:-1], np.nan, dtype), tnp.zeros(x.shape[:-1], dtype)
    ordered = tnp.sort(x)
    first, _ = _runs(ordered)
    count = tnp.arange(x.shape[-1]) - first + 1
    if omit:
        count = tnp.where(tnp.isnan(ordered), 0, count)
    at = tnp.argmax(count, axis=-1)[..., None]
    return tuple(tnp.take_along_axis(v, at, -1)[..., 0] for v in (ordered, count))


@one_program
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """Rank the elements: 1 for the least.

    Args:
      a: real numbers.
      method: for elements that are equal "average", "min" or "max" of the ranks they would have in some order; "dense"
        is "min" without gaps; "ordinal" ranks them in their order.
      axis: along which; None for all elements, flat.
      nan_policy: "propagate" makes all ranks nan where a nan is among the elements, "omit" that of nan alone.
    Returns: default floating point, of the shape of a, or flat.
    Raises: ValueError for an axis out of range, another method or `nan_policy`; NotImplementedError for "raise".
    """
    x = number_operand("rankdata", a)
    _check_policy("rankdata", nan_policy)
    if method not in _METHODS:
        raise ValueError(f"rankdata: method must be one of {', '.join(_METHODS)}, not {method!r}.")
    along, axis = (tnp.ravel(x), 0) if axis is None else (x, _axis("rankdata", axis, x))
    ranks = _ranks(tnp.moveaxis(along, axis, -1), method=method, omit=nan_policy == "omit")
    return tnp.moveaxis(ranks, -1, axis)


@core.compound
def _ranks(x: Any, *, method: str, omit: bool) -> Any:
    dtype = dtypes.default_dtype("f")
    if not x.size:
        return tnp.zeros(x.shape, dtype)
    order = tnp.argsort(x)
    places = tnp.argsort(order)
    first, last = _runs(tnp.take_along_axis(x, order, -1))
    low, high = (tnp.take_along_axis(v, places, -1) + 1 for v in (first, last))
    if method == "ordinal":
        found = (places + 1).astype(dtype)
    elif method == "dense":
        begins = first == tnp.arange(x.shape[-1])
        found = tnp.take_along_axis(tnp.cumsum(begins, axis=-1), places, -1).astype(dtype)
    else:
        least, greatest = low.astype(dtype), high.astype(dtype)
        found = {"min": least, "max": greatest, "average": 0.5 * (least + greatest)}[method]
    missing = tnp.isnan(x)
    return tnp.where(missing if omit else tnp.any(missing, axis=-1, keepdims=True), np.nan, found)


def _runs(ordered: Any) -> tuple[Any, Any]:
    """Find the first and the last position of elements equal to each, along the sorted last axis; nan equals nan."""
    n, axis = ordered.shape[-1], ordered.ndim - 1
    here, before = ordered[..., 1:], ordered[..., :-1]
    differs = (here != before) & ~(tnp.isnan(here) & tnp.isnan(before))
    end = tnp.ones((*ordered.shape[:-1], min(n, 1)), bool)
    places = tnp.arange(n)
    first = cummax(tnp.where(tnp.concatenate([end, differs], -1), places, 0), axis=axis)
    last = cummin(tnp.where(tnp.concatenate([differs, end], -1), places, n), axis=axis, reverse=True)
    return first, last


@one_program
def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """Estimate the standard error of the mean: the standard deviation over the square root of the number of elements.

    Args:
      a: real or complex numbers.
      axis: along which; None for all elements.
      ddof: the standard deviation divides by the number of elements less `ddof`.
      nan_policy: "propagate" gives nan if an element is nan, "omit" leaves it out.
      keepdims: keep the axis, or all of them, with size 1.
    Raises: ValueError for an axis out of range or another `nan_policy`; NotImplementedError for "raise".
    """
    x = array_operand("sem", inexact("sem", a))
    _check_policy("sem", nan_policy)
    if nan_policy == "omit":
        count = tnp.sum(~tnp.isnan(x), axis=axis, keepdims=keepdims)
        spread = tnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims)
        return spread / tnp.sqrt(count.astype(spread.dtype))
    n = x.size if axis is None else x.shape[_axis("sem", axis, x)]
    return tnp.std(x, axis, ddof=ddof, keepdims=keepdims) / np.sqrt(n)


def _axis(name: str, axis: Any, x: Array) -> int:
    found = operator.index(axis)
    if not -x.ndim <= found < x.ndim:
        raise ValueError(f"{name}: axis {found} is out of range for {x.aval}.")
    return found % x.ndim


def _check_policy(name: str, policy: Any) -> None:
    if policy == "raise":
        raise NotImplementedError(f"{name}: nan_policy='raise' asks for elements, which are not known while tracing.")
    if policy not in ("propagate", "omit"):
        raise ValueError(f"{name}: nan_policy must be 'propagate' or 'omit', not {policy!r}.")
