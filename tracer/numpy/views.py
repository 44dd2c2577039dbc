"""Views: `x.view(dtype)` reads the bytes of an array as another dtype; the size of the last axis changes with itemsize.

Booleans are bytes, and a complex number is its real part followed by its imaginary part. Bytes are little-endian.
"""

from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.primitives import bits
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.shape import concatenate, expand_dims, index_in_dim, reshape, rev


def view(x: Array, dtype: DTypeLike | None = None, *shape: Any) -> Array:
    """Read the bytes of x [.., n] as another dtype: [.., n old / new], where old and new are the sizes of elements.

    `shape` is refused, with advice: `x.view(2, 3)` is PyTorch's `x.reshape(2, 3)`.

    Raises: ValueError if the last axis does not divide into elements of the new size, or there is none and sizes
      differ; TypeError for types that take less than a byte, and for keys.
    """
    if shape or isinstance(dtype, (int, tuple, list)):
        given = ", ".join([repr(n) for n in (dtype, *shape)])
        raise TypeError(f"view: {given} is not a dtype. It reads the bytes as another dtype; write x.reshape({given}).")
    wanted = x.dtype if dtype is None else dtypes.canonical(dtype)
    if x.dtype == wanted:
        return lax.convert_element_type(x, wanted) if x.weak_type else x
    core.refuse_keys("view", x.aval, dtype=wanted)
    _check_sizes(x, wanted)
    if not x.ndim:
        return reshape(view(reshape(x, (1,)), wanted), ())
    return _from_bits(_cast_bits(_as_bits(x), _stored_as(wanted)), wanted)


def byteswap(x: Array) -> Array:
    """Reverse the bytes of every element; of complex numbers, those of each part.

    Raises: TypeError for types that take less than a byte, and for keys.
    """
    size = _stored_as(x.dtype).itemsize
    if (size == 1 and dtypes.bits_of(x.dtype) >= 8) or dtypes.is_bool(x.dtype):
        return x
    octets = view(reshape(x, (x.size,)), np.uint8)
    swapped = rev(reshape(octets, (octets.size // size, size)), (1,))
    return reshape(view(reshape(swapped, octets.shape), x.dtype), x.shape)


def _check_sizes(x: Array, wanted: np.dtype[Any]) -> None:
    old, new = dtypes.bits_of(x.dtype), dtypes.bits_of(wanted)
    if (old < 8 and not dtypes.is_bool(x.dtype)) or (new < 8 and not dtypes.is_bool(wanted)):
        raise TypeError(f"view: {x.aval} as {wanted}: a type of less than a byte cannot be viewed as another.")
    old, new = x.dtype.itemsize, wanted.itemsize
    if old != new and not x.ndim:
        raise ValueError(
            f"view: {x.aval} has no axis that its elements of {old} bytes could be divided along, or joined."
        )
    if old < new and x.shape[-1] * old % new:
        raise ValueError(
            f"view: the last axis of {x.aval} has {x.shape[-1] * old} bytes, which do not make elements of {wanted}."
        )


def _stored_as(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype whose bits are read for elements of `dtype`: bytes for booleans, real parts for complex."""
    return np.dtype("uint8") if dtypes.is_bool(dtype) else dtypes.real_part_dtype(dtype)


def _as_bits(x: Array) -> Array:
    if dtypes.is_complex(x.dtype):
        return _flattened(concatenate([expand_dims(part(x), (x.ndim,)) for part in (lax.real, lax.imag)], x.ndim))
    return lax.convert_element_type(x, np.uint8) if dtypes.is_bool(x.dtype) else x


def _cast_bits(x: Array, wanted: np.dtype[Any]) -> Array:
    old, new = x.dtype.itemsize, wanted.itemsize
    if old < new:
        x = reshape(x, (*x.shape[:-1], x.shape[-1] * old // new, new // old))
    found = bits.bitcast_convert_type(x, wanted)
    return _flattened(found) if old > new else found


def _from_bits(x: Array, wanted: np.dtype[Any]) -> Array:
    if dtypes.is_bool(wanted):
        return lax.ne(x, 0)
    if not dtypes.is_complex(wanted):
        return x
    pairs = reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
    return lax.complex(*(index_in_dim(pairs, i, axis=-1, keepdims=False) for i in range(2)))


def _flattened(x: Array) -> Array:
    """Merge the last two axes: x [.., n, k] as [.., n k]."""
    return reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))
