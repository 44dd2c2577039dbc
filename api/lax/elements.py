"""Operations on elements that are compositions of others: upper halves of products, functions at indices, extremes."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.arguments.argument_checks import check_callable
from tapeless.batch.vmap import vmap
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Tracer
from tapeless.tracer.numpy.at_apply import apply_repeatedly
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.indexing import GatherScatterMode, ScatterDimensionNumbers, scatter_add
from tapeless.tracer.primitives.kinds import joint_type
from tapeless.tracer.primitives.operands import align_operands, canonical_axis
from tapeless.tracer.primitives.shape import broadcasted_iota, reshape, slice_in_dim
from tapeless.tracer.primitives.sorting import sort_key_val, top_k
from tapeless.tracer.types import aval_of

# ---- upper halves of products --------------------------------------------------------------------------------


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute the upper half of the bits of a product of integers, elementwise: floor(x y / 2^n) for n bits.

    Args:
      x, y: integers of one dtype and shape, or scalars.
    Returns: the dtype of the operands.
    Raises: TypeError if they are no integers or dtypes differ, ValueError if shapes do; both are named.
    """
    x, y = align_operands(x, y)
    aval = joint_type("mulhi", (aval_of(x), aval_of(y)), "j")
    bits, signed = dtypes.bits_of(aval.dtype), dtypes.is_signed(aval.dtype)
    x, y = tnp.asarray(x), tnp.asarray(y)
    if bits < 64:
        wide = np.int64 if signed else np.uint64
        product = convert_element_type(x, wide) * convert_element_type(y, wide)
        return convert_element_type(product >> bits, aval.dtype, aval.weak_type)
    high = _upper_half(convert_element_type(x, np.uint64), convert_element_type(y, np.uint64))
    if not signed:
        return high
    found = convert_element_type(high, aval.dtype)
    return found - tnp.where(x < 0, y, 0) - tnp.where(y < 0, x, 0)


def _upper_half(x: Any, y: Any) -> Any:
    """Multiply 64 bits by 64 in halves. Source: Knuth, The Art of Computer Programming 2, algorithm 4.3.1M."""
    low = np.uint64(2**32 - 1)
    (x1, x0), (y1, y0) = ((v >> 32, v & low) for v in (x, y))
    middle = x1 * y0 + (x0 * y0 >> 32)
    other = x0 * y1 + (middle & low)
    return x1 * y1 + (middle >> 32) + (other >> 32)


# ---- functions at indices ------------------------------------------------------------------------------------


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: tuple[int, ...] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Apply a function to the elements at the given indices, once for each time that an index occurs.

    Args:
      func: a function of a scalar that keeps its dtype. It is applied to all elements, and kept where it should be.
      update_shape: the shape that the updates of `scatter` would have.
      others: as for `scatter`.
    Returns: the type of `operand`.
    Raises: TypeError if `func` changes the dtype or gives no scalar; as `scatter` for shapes that do not fit.
    """
    check_callable("scatter_apply", func, "func")
    x = tnp.asarray(operand)
    times: Any = scatter_add(
        np.zeros(x.shape, np.int32),
        scatter_indices,
        np.ones(update_shape, np.int32),
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )

    def of_all(x: Any) -> Array:
        out = tnp.asarray(vmap(func)(reshape(x, (x.size,))))
        if out.shape != (x.size,) or out.dtype != x.dtype:
            raise TypeError(f"scatter_apply: func gives {out.aval} for {x.size} scalars of {x.dtype}.")
        return reshape(out, x.shape)

    return apply_repeatedly(of_all, x, times if isinstance(times, Tracer) else np.asarray(times))


# ---- extremes ------------------------------------------------------------------------------------------------


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Find the k largest elements along an axis, exactly, in descending order, nan first, and their positions.

    Args:
      operand: [.., n, ..], floating point.
      reduction_dimension: the axis.
      recall_target: how many of the k largest are wanted, of 1: all are found.
      reduction_input_size_override: the size that the recall is meant for; of no effect, as it is 1.
      aggregate_to_topk: True.
    Returns: values [.., k, ..] of the dtype of `operand`, and positions int32[.., k, ..].
    Raises: TypeError if it is not of floating point; ValueError if there is no such axis, k is not from 0 to n or the
      recall not from 0 to 1; NotImplementedError for aggregate_to_topk=False.
    """
    _check_search("approx_max_k", operand, recall_target, aggregate_to_topk)
    return top_k(operand, operator.index(k), axis=reduction_dimension)


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Find the k smallest elements along an axis, exactly, in ascending order, nan last, and their positions."""
    _check_search("approx_min_k", operand, recall_target, aggregate_to_topk)
    aval, n = aval_of(operand), operator.index(k)
    axis = canonical_axis(reduction_dimension, aval.ndim)
    if not 0 <= n <= aval.shape[axis]:
        raise ValueError(f"approx_min_k: there are no {n} elements along axis {axis} of {aval}.")
    values, places = sort_key_val(operand, broadcasted_iota(np.int32, aval.shape, axis), axis)
    return slice_in_dim(values, 0, n, axis=axis), slice_in_dim(places, 0, n, axis=axis)


def _check_search(who: str, x: ArrayLike, recall: float, aggregate: bool) -> None:
    if not dtypes.is_float(aval_of(x).dtype):
        raise TypeError(f"{who}: the operand must be of floating point, not {aval_of(x)}.")
    if not 0 < recall <= 1:
        raise ValueError(f"{who}: recall_target must be above 0 and at most 1, not {recall}.")
    if not aggregate:
        raise NotImplementedError(f"{who}: aggregate_to_topk=False: the k elements are all that is found.")
