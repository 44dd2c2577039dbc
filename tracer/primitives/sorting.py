"""Sorting: of several arrays by the first of them, and the largest elements."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.indexing import GatherDimensionNumbers, GatherScatterMode, gather
from tapeless.tracer.primitives.kinds import REAL, joint_type
from tapeless.tracer.primitives.operands import canonical_axis, exact_integer, ndim, shape_of
from tapeless.tracer.primitives.shape import expand_dims, full, transpose
from tapeless.tracer.types import ShapedArray, aval_of


def sort(
    operand: ArrayLike | Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """Sort along `dimension`, ascending. Of several arrays the first `num_keys` are compared, in order of precedence.

    nan comes last, -0.0 equals 0.0, complex numbers are ordered by real, then imaginary part, False before True.

    Args:
      operand: an array, or a sequence of arrays [...] of one shape, which are permuted together.
      is_stable: whether elements that compare equal stay in order.
    Returns: an array, or a tuple of as many as given; a tuple if and only if a sequence was given.
    Raises: ValueError if shapes differ, `dimension` is out of range, or num_keys not between 1 and their number.
    Source: StableHLO spec, sort.
    """
    several = isinstance(operand, (list, tuple))
    operands: Sequence[Any] = operand if several else (operand,)
    if not operands:
        raise ValueError("sort: there is nothing to sort, an empty sequence of arrays.")
    axis = canonical_axis(dimension, ndim(operands[0]), "dimension")
    outs = sort_p.bind(
        *operands, dimension=axis, is_stable=bool(is_stable), num_keys=exact_integer(num_keys, "sort: num_keys")
    )
    return outs if several else outs[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort `keys` along `dimension`, ascending, and permute `values`, of the same shape, with them: see `sort`."""
    sorted_keys, permuted = sort((keys, values), dimension, is_stable)
    return sorted_keys, permuted


def _sort_type(*xs: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> tuple[ShapedArray, ...]:
    if any(x.shape != xs[0].shape for x in xs):
        raise ValueError(f"sort: operands differ in shape: {' and '.join(map(str, xs))}.")
    if not 1 <= num_keys <= len(xs):
        raise ValueError(
            f"sort: num_keys must be from 1 to {len(xs)}, for {' and '.join(map(str, xs))}, not {num_keys}."
        )
    return xs


sort_p: Final = Primitive("sort", _sort_type)


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """Find the k largest elements along `axis`, in descending order, and their positions.

    nan is largest, ties keep their order, 0.0 comes before -0.0.

    Args:
      operand: [..., n, ...], real or boolean.
      k: from 0 to n.
    Returns: values [..., k, ...] of operand's dtype, and positions of the same shape, int32.
    Raises: ValueError if the axis is out of range, or k is not from 0 to n; TypeError for complex.
    """
    rank = ndim(operand)
    axis = canonical_axis(axis, rank)
    if dtypes.is_bool(aval_of(operand).dtype):
        values, positions = top_k(convert_element_type(operand, np.uint8), k, axis=axis)
        return convert_element_type(values, bool), positions
    if axis == rank - 1:
        return top_k_p.bind(operand, k=exact_integer(k, "top_k: k"))
    swap = [rank - 1 if i == axis else axis if i == rank - 1 else i for i in range(rank)]
    values, positions = top_k_p.bind(transpose(operand, swap), k=exact_integer(k, "top_k: k"))
    return transpose(values, swap), transpose(positions, swap)


_MOST = int(np.iinfo(np.int32).max)


def _top_k_type(x: ShapedArray, *, k: int) -> tuple[ShapedArray, ...]:
    joint_type("top_k", (x,), REAL)
    if not x.shape or not 0 <= k <= x.shape[-1]:
        raise ValueError(f"top_k: k = {k} is not from 0 to the length of the axis of {x} that is searched.")
    if x.shape[-1] > _MOST:
        raise ValueError(f"top_k: positions are int32, and the axis of {x} that is searched is longer than {_MOST}.")
    out = x.update(shape=(*x.shape[:-1], k))
    return out, out.update(dtype=dtypes.canonical("int32"), weak_type=False)


top_k_p: Final = Primitive("top_k", _top_k_type)


def take_along_axis(operand: ArrayLike, places: ArrayLike, axis: int) -> Array:
    """Gather elements of `operand` at `places` along `axis`, each for its own index along the other axes.

    Args:
      operand: [.., n, ..] of any dtype.
      places: [.., k, ..], the other axes as in operand; integers from 0 to n - 1, which is not checked.
    Returns: [.., k, ..].
    """
    rank = ndim(operand)
    axis = canonical_axis(axis, rank)
    if not aval_of(places).size:
        return full(shape_of(places), 0, aval_of(operand).dtype)  # gather refuses windows of an empty operand
    others = tuple(i for i in range(rank) if i != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    index, mode = expand_dims(places, (rank,)), GatherScatterMode.PROMISE_IN_BOUNDS
    return gather(operand, index, numbers, (1,) * rank, mode=mode)
