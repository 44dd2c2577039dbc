"""Reductions over segments: the names of `jax.ops`.

Search terms: group by, scatter-reduce, `tf.math.unsorted_segment_sum`.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.indexing import Mode
from tapeless.tracer.numpy.promotion import concrete
from tapeless.tracer.numpy.reductions import greatest, least
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.indexing import GatherScatterMode
from tapeless.tracer.types import exact

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


_Reduction = Callable[..., Array]


@one_program
def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Mode = None,
) -> Array:
    """Sum the elements of each segment; 0 for an empty one.

    Args:
      data: [n, ..].
      segment_ids: integers [n], the segment of each data[i].
      num_segments: how many segments there are; if None the largest of segment_ids, which must be known then, plus 1.
      indices_are_sorted, unique_indices: promises about segment_ids, which may save time.
      bucket_size: reduce so many elements at a time, and then their results: sums of many numbers lose less by
        rounding, for more memory. All at once if None.
      mode: for segment_ids outside of the segments: "drop" (also None), "clip", "promise_in_bounds".
    Returns: [num_segments, ..], of data's dtype.
    Raises: TypeError if segment_ids are no integers, ValueError if shapes do not fit or sizes are negative;
      ConcretizationTypeError if segment_ids are traced and there is no `num_segments`.
    """
    settings = num_segments, indices_are_sorted, unique_indices, bucket_size, mode
    return _reduced("segment_sum", "add", data, segment_ids, lambda dtype: 0, tnp.sum, *settings)


@one_program
def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Mode = None,
) -> Array:
    """Multiply the elements of each segment; 1 for an empty one. Args, Returns, Raises: as for `segment_sum`.

    The derivative by an element is the product of the others, also where some of them are 0.
    """
    settings = num_segments, indices_are_sorted, unique_indices, bucket_size, mode
    return _reduced("segment_prod", "multiply", data, segment_ids, lambda dtype: 1, tnp.prod, *settings)


@one_program
def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Mode = None,
) -> Array:
    """Find the largest element of each segment; the least value of the dtype for an empty one.

    Args, Returns, Raises: as for `segment_sum`.
    """
    settings = num_segments, indices_are_sorted, unique_indices, bucket_size, mode
    return _reduced("segment_max", "max", data, segment_ids, least, tnp.max, *settings)


@one_program
def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Mode = None,
) -> Array:
    """Find the least element of each segment; the greatest value of the dtype for an empty one.

    Args, Returns, Raises: as for `segment_sum`.
    """
    settings = num_segments, indices_are_sorted, unique_indices, bucket_size, mode
    return _reduced("segment_min", "min", data, segment_ids, greatest, tnp.min, *settings)


def _reduced(
    name: str,
    method: str,
    data: ArrayLike,
    segment_ids: ArrayLike,
    neutral: Callable[[Any], Any],
    reduce: _Reduction,
    num_segments: int | None,
    indices_are_sorted: bool,
    unique_indices: bool,
    bucket_size: int | None,
    mode: Mode,
) -> Array:
    """Reduce the elements of each segment, beginning with the neutral one, by a method of `.at[..]`."""
    x, ids = tnp.asarray(data), tnp.asarray(segment_ids)
    _check(name, x.aval, ids.aval)
    count = _count(name, ids, num_segments)
    mode = GatherScatterMode.from_any(mode)
    promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    options = {**promises, "mode": mode, "wrap_negative_indices": False}
    places = tnp.clip(ids, 0, max(count - 1, 0)) if mode is GatherScatterMode.CLIP else ids
    empty = exact(neutral(x.dtype), x.dtype)
    if bucket_size is None:
        whole = tnp.full((count, *x.shape[1:]), empty, x.dtype)
        return getattr(whole.at[places], method)(x, **options)
    size = _at_least(name, "bucket_size", bucket_size, 1)
    buckets = -(-x.shape[0] // size)
    whole = tnp.full((buckets, count, *x.shape[1:]), empty, x.dtype)
    parts = getattr(whole.at[np.arange(x.shape[0]) // size, places], method)(x, **options)
    return convert_element_type(reduce(parts, axis=0, initial=empty), x.dtype)


def _check(name: str, data: Any, ids: Any) -> None:
    if not dtypes.is_integer(ids.dtype):
        raise TypeError(f"{name}: segment_ids must be integers, not {ids}.")
    if len(ids.shape) != 1 or ids.shape != data.shape[:1]:
        raise ValueError(f"{name}: segment_ids must have one number for each of the data, {data}, not be {ids}.")


def _count(name: str, ids: Array, num_segments: int | None) -> int:
    if num_segments is not None:
        return _at_least(name, "num_segments", num_segments, 0)
    known = concrete(name, ids, "Give num_segments.")
    return max(int(known.max()) + 1, 0) if known.size else 0


def _at_least(name: str, what: str, n: Any, least: int) -> int:
    found = operator.index(n)
    if found < least:
        raise ValueError(f"{name}: {what} must be at least {least}, not {found}.")
    return found


_complete_namespace(globals())
