"""Elements of arrays as they lie in files: which of safetensors' dtypes holds which of ours, and the way back.

What safetensors has no dtype for is held by another: complex numbers by pairs of real ones, along one more axis; small
integers by bytes of the same value; small floats by the byte that they are in memory. Where not every byte is a value
of the dtype (booleans, and types of less than 8 bits) bytes are checked when they are read.
"""

from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.dtypes import DType

Elements = np.ndarray[Any, Any]

_TAGS = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "int2": "I8", "int4": "I8",
    "complex64": "F32", "complex128": "F64",
}  # fmt: skip


def tag_of(dtype: DType) -> str:
    """Name the dtype of safetensors that holds one of ours: U8 for bits that have no name there."""
    return _TAGS.get(dtype.name, "U8")


def stored(values: Elements) -> Elements:
    """Return the elements as they lie in a file: little-endian, complex numbers as pairs along one more axis."""
    dtype = dtypes.canonical(values.dtype)
    values = np.asarray(values, dtype, order="C")
    if dtypes.is_complex(dtype):
        return values.reshape(-1).view(dtypes.real_part_dtype(dtype)).reshape(stored_shape(dtype, values.shape))
    if _is_small_integer(dtype):
        return values.astype(_byte_of(dtype))
    return values


def stored_shape(dtype: DType, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the stored form of an array of this dtype and shape."""
    return (*shape, 2) if dtypes.is_complex(dtype) else shape


def restored(raw: Elements, dtype: DType, shape: tuple[int, ...]) -> Elements:
    """Restore an array of this dtype and shape from its bytes: a view, but for integers of less than 8 bits.

    Raises: ValueError if a byte is not a value of the dtype.
    """
    if dtypes.is_bool(dtype):
        _check_bytes(raw, 0, 1, dtype)
    elif _is_small_integer(dtype):
        limits = dtypes.iinfo(dtype)
        raw = raw.view(_byte_of(dtype))
        _check_bytes(raw, int(limits.min), int(limits.max), dtype)
        return raw.astype(dtype).reshape(shape)
    elif dtypes.bits_of(dtype) < 8:
        _check_bytes(raw, 0, 2 ** dtypes.bits_of(dtype) - 1, dtype)
    return raw.view(dtype).reshape(shape)


def _is_small_integer(dtype: DType) -> bool:
    return dtypes.is_integer(dtype) and dtypes.bits_of(dtype) < 8


def _byte_of(dtype: DType) -> type:
    return np.int8 if dtypes.is_signed(dtype) else np.uint8


def _check_bytes(raw: Elements, low: int, high: int, dtype: DType) -> None:
    if raw.size and not low <= int(raw.min()) <= int(raw.max()) <= high:
        raise ValueError(f"a byte of it is no {dtype.name}")
