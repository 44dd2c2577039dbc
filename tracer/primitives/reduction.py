"""Reductions over axes: sum, product, extremes, logic; the positions of extremes; cumulative forms.

Sums and products of floating point of fewer than 32 bits are accumulated in float32, and rounded once.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.errors import not_supported
from tapeless.tracer.primitives.kinds import ANY, BITS, FLOAT, INEXACT, NUMERIC, ORDERED, joint_type
from tapeless.tracer.primitives.operands import canonical_axes, canonical_axis, ndim, without
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray, aval_of

# ---- reductions ----------------------------------------------------------------------------------------------


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: None = None) -> Array:
    """Sum `operand` over `axes`, which are dropped.

    Args:
      operand: [...], numbers.
      axes: distinct axes of operand.
    Returns: operand's shape without `axes`, dtype of operand; 0 where nothing is summed.
    Raises: TypeError for booleans; ValueError if an axis is out of range or named twice, or for 16 bits that
      `config.allow_f16_reductions` forbids to add.
    Source: StableHLO spec, reduce.
    """
    if out_sharding is not None:
        raise not_supported("reduce_sum", "out_sharding", out_sharding)
    over = canonical_axes(axes, ndim(operand))
    if not config.allow_f16_reductions:
        _refuse_narrow_sum(aval_of(operand), over)
    return reduce_sum_p.bind(operand, axes=over)[0]


def _refuse_narrow_sum(x: ShapedArray, axes: tuple[int, ...]) -> None:
    if dtypes.is_float(x.dtype) and x.dtype.itemsize == 2 and any(x.shape[i] != 1 for i in axes):
        raise ValueError(
            f"reduce_sum: {x} has 16 bits, which config.allow_f16_reductions forbids to add.\n"
            "  Convert it with astype(float32), or use numpy.sum, which converts it."
        )


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Multiply elements over `axes`, which are dropped; 1 if there are no elements: see `reduce_sum`."""
    return reduce_prod_p.bind(operand, axes=canonical_axes(axes, ndim(operand)))[0]


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Compute the maximum of `operand` over `axes`, which are dropped; the least value of the dtype if empty.

    A nan makes the result nan; complex numbers are ordered by real, then imaginary part. Ties share the
    derivative equally.
    Raises: ValueError if an axis is out of range or named twice.
    """
    return reduce_max_p.bind(operand, axes=canonical_axes(axes, ndim(operand)))[0]


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Compute the minimum of `operand` over `axes`, which are dropped: see `reduce_max`."""
    return reduce_min_p.bind(operand, axes=canonical_axes(axes, ndim(operand)))[0]


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Compute the logical or bitwise and over `axes`, which are dropped; all ones if empty."""
    return reduce_and_p.bind(operand, axes=canonical_axes(axes, ndim(operand)))[0]


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Compute the logical or bitwise or over `axes`, which are dropped; zero if empty."""
    return reduce_or_p.bind(operand, axes=canonical_axes(axes, ndim(operand)))[0]


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Compute the logical or bitwise exclusive or over `axes`, which are dropped; zero if empty."""
    return reduce_xor_p.bind(operand, axes=canonical_axes(axes, ndim(operand)))[0]


def _reduction(name: str, kinds: str) -> Primitive:
    def typing_rule(x: ShapedArray, *, axes: tuple[int, ...]) -> tuple[ShapedArray, ...]:
        joint_type(name, (x,), kinds)
        return (x.update(shape=without(x.shape, axes)),)

    return Primitive(name, typing_rule)


reduce_sum_p: Final = _reduction("reduce_sum", NUMERIC)
reduce_prod_p: Final = _reduction("reduce_prod", NUMERIC)
reduce_max_p: Final = _reduction("reduce_max", ANY)
reduce_min_p: Final = _reduction("reduce_min", ANY)
reduce_and_p: Final = _reduction("reduce_and", BITS)
reduce_or_p: Final = _reduction("reduce_or", BITS)
reduce_xor_p: Final = _reduction("reduce_xor", BITS)


# ---- positions of extremes -----------------------------------------------------------------------------------


def argmax(operand: ArrayLike, axis: int, index_dtype: Any = np.int32) -> Array:
    """Find the position of the maximum along `axis`, which is dropped: the first nan if any, else the first of ties.

    Args:
      operand: [..., n, ...], real or boolean.
      index_dtype: dtype of the result, an integer that can hold n - 1.
    Raises: ValueError if the axis is empty or out of range; TypeError for a wrong index_dtype or complex numbers.
    """
    return argmax_p.bind(operand, axis=canonical_axis(axis, ndim(operand)), index_dtype=dtypes.canonical(index_dtype))[
        0
    ]


def argmin(operand: ArrayLike, axis: int, index_dtype: Any = np.int32) -> Array:
    """Find the position of the minimum along `axis`, which is dropped: see `argmax`."""
    return argmin_p.bind(operand, axis=canonical_axis(axis, ndim(operand)), index_dtype=dtypes.canonical(index_dtype))[
        0
    ]


def _position(name: str) -> Primitive:
    def typing_rule(x: ShapedArray, *, axis: int, index_dtype: np.dtype[Any]) -> tuple[ShapedArray, ...]:
        joint_type(name, (x,), ORDERED)
        if x.shape[axis] == 0:
            raise ValueError(f"{name}: axis {axis} of {x} has no elements, so none is the {name[3:]}imum.")
        if not dtypes.is_integer(index_dtype) or x.shape[axis] - 1 > dtypes.iinfo(index_dtype).max:
            raise TypeError(f"{name}: positions along axis {axis} of {x} are not {index_dtype}. Choose a wide integer.")
        return (ShapedArray(without(x.shape, (axis,)), index_dtype),)

    return Primitive(name, typing_rule)


argmax_p: Final = _position("argmax")
argmin_p: Final = _position("argmin")


# ---- cumulative ----------------------------------------------------------------------------------------------


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Compute the cumulative sum along `axis`, from the end if `reverse`.

    Args:
      operand: [...], numbers.
    Returns: shape and dtype of operand.
    Raises: TypeError for booleans; ValueError if the axis is out of range.
    Source: Blelloch 1990, "Prefix sums and their applications".
    """
    return cumsum_p.bind(operand, axis=canonical_axis(axis, ndim(operand)), reverse=bool(reverse))[0]


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Compute the cumulative product along `axis`, with exact derivatives at zeros: see `cumsum`."""
    return cumprod_p.bind(operand, axis=canonical_axis(axis, ndim(operand)), reverse=bool(reverse))[0]


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Compute the cumulative maximum along `axis`, nan from the first nan on: see `cumsum`.

    The first of ties, in the order of accumulation, has the derivative.
    """
    return cummax_p.bind(operand, axis=canonical_axis(axis, ndim(operand)), reverse=bool(reverse))[0]


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Compute the cumulative minimum along `axis`: see `cummax`."""
    return cummin_p.bind(operand, axis=canonical_axis(axis, ndim(operand)), reverse=bool(reverse))[0]


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Compute the cumulative log of the sum of exp along `axis`, without overflow: see `cumsum`.

    Floating point only.
    """
    return cumlogsumexp_p.bind(operand, axis=canonical_axis(axis, ndim(operand)), reverse=bool(reverse))[0]


def _cumulative(name: str, kinds: str) -> Primitive:
    def typing_rule(x: ShapedArray, *, axis: int, reverse: bool) -> tuple[ShapedArray, ...]:
        joint_type(name, (x,), kinds)
        return (x,)

    return Primitive(name, typing_rule)


cumsum_p: Final = _cumulative("cumsum", NUMERIC)
cumprod_p: Final = _cumulative("cumprod", NUMERIC)
cummax_p: Final = _cumulative("cummax", ORDERED)
cummin_p: Final = _cumulative("cummin", ORDERED)
cumlogsumexp_p: Final = _cumulative("cumlogsumexp", FLOAT)


def linear_recurrence(decay: ArrayLike, operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Solve z[i] = decay[i] z[i-1] + operand[i] for z along `axis`, from z[-1] = 0; backwards if `reverse`.

    Linear in `operand`. The derivatives of the other cumulative functions are of this form. The first decay, in the
    order of accumulation, is not used.

    Args:
      decay, operand: [...] of one type, floating point or complex.
    Raises: TypeError if dtypes differ or are not inexact; ValueError if shapes differ, the axis is out of range.
    Source: Blelloch 1990, section 1.4, first-order recurrences.
    """
    axis = canonical_axis(axis, ndim(operand))
    return linear_recurrence_p.bind(decay, operand, axis=axis, reverse=bool(reverse))[0]


def _linear_recurrence_type(decay: ShapedArray, x: ShapedArray, *, axis: int, reverse: bool) -> tuple[ShapedArray, ...]:
    aval = joint_type("linear_recurrence", (decay, x), INEXACT)
    if decay.shape != x.shape:
        raise ValueError(f"linear_recurrence: operands differ in shape: {decay} and {x}.")
    return (aval,)


linear_recurrence_p: Final = Primitive("linear_recurrence", _linear_recurrence_type)
