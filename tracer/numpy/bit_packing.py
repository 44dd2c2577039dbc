"""Pack bits into bytes, and unpack bytes into bits: `packbits` and `unpackbits`."""

from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.logic import truth
from tapeless.tracer.numpy.promotion import array_operand
from tapeless.tracer.numpy.shaping import moveaxis
from tapeless.tracer.primitives import bits
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import canonical_axis
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, broadcasted_iota, full, pad, reshape, slice_in_dim

_BYTE = np.dtype(np.uint8)


@one_program
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack elements into the bits of bytes along `axis`: 1 for a nonzero element, else 0.

    Args:
      a: [.., n, ..] integers or booleans.
      axis: the array is flattened if None.
      bitorder: "big": the first of eight elements is the highest bit; "little": it is the lowest.
    Returns: [.., ceil(n / 8), ..], uint8; missing bits are 0.
    Raises: TypeError for other dtypes; ValueError for another order, or an axis out of range.
    """
    x = array_operand("packbits", a)
    if not (dtypes.is_integer(x.dtype) or dtypes.is_bool(x.dtype)):
        raise TypeError(f"packbits: elements must be integers or booleans, not {x.aval}.")
    x, axis = _along(x, axis)
    return moveaxis(
        _packed(moveaxis(truth("packbits", x), axis, -1), little=_is_little("packbits", bitorder)), -1, axis
    )


@core.compound
def _packed(x: Array, *, little: bool) -> Array:
    n = x.shape[-1]
    x = lax.convert_element_type(x, _BYTE)
    x = pad(x, np.zeros((), _BYTE), [(0, 0, 0)] * (x.ndim - 1) + [(0, -n % 8, 0)])
    x = reshape(x, (*x.shape[:-1], x.shape[-1] // 8, 8))
    return reduce_sum(bits.shift_left(x, _places(x.shape, little)), (x.ndim - 1,))


@one_program
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """Unpack bytes into bits along `axis`.

    Args:
      a: [.., n, ..] uint8.
      axis: the array is flattened if None.
      count: the number of bits to return, filled up with zeros; if negative, so many fewer than 8 n; 8 n if None.
      bitorder: as for `packbits`.
    Returns: [.., count, ..], uint8, 0 or 1.
    Raises: TypeError for other dtypes; ValueError for another order, an axis out of range or too negative a count.
    """
    x = array_operand("unpackbits", a)
    if x.dtype != _BYTE:
        raise TypeError(f"unpackbits: elements must be uint8, not {x.aval}.")
    x, axis = _along(x, axis)
    found = _unpacked(moveaxis(x, axis, -1), little=_is_little("unpackbits", bitorder))
    n = found.shape[-1]
    size = n if count is None else count if count >= 0 else n + count
    if size < 0:
        raise ValueError(f"unpackbits: count={count}, but there are only {n} bits.")
    if size > n:
        found = pad(found, np.zeros((), _BYTE), [(0, 0, 0)] * (found.ndim - 1) + [(0, size - n, 0)])
    return moveaxis(slice_in_dim(found, 0, size, axis=-1), -1, axis)


@core.compound
def _unpacked(x: Array, *, little: bool) -> Array:
    shape = (*x.shape, 8)
    each = broadcast_in_dim(x, shape, tuple(range(x.ndim)))
    found = bits.bitwise_and(bits.shift_right_logical(each, _places(shape, little)), full(shape, 1, _BYTE))
    return reshape(found, (*x.shape[:-1], x.shape[-1] * 8))


def _places(shape: tuple[int, ...], little: bool) -> Array:
    """Return the shift of each of eight bits along the last axis of `shape`: 7 to 0, or 0 to 7 if `little`."""
    count = broadcasted_iota(_BYTE, shape, len(shape) - 1)
    return count if little else lax.sub(full(shape, 7, _BYTE), count)


def _along(x: Array, axis: Any) -> tuple[Array, int]:
    return (reshape(x, (x.size,)), 0) if axis is None else (x, canonical_axis(axis, x.ndim))


def _is_little(name: str, order: Any) -> bool:
    if order not in ("big", "little"):
        raise ValueError(f"{name}: bitorder must be 'big' or 'little', not {order!r}.")
    return order == "little"
