"""What a value is inside the oracle: float64, complex128, int64, uint64 or bool, whatever width is declared.

Integers are kept modulo the range of their declared dtype. Floating point is rounded to the declared dtype, or not at
all in exact runs. A value declared real may be complex: its imaginary part is then the tangent of a complex step. A key
of random numbers is its two words in one, the first above the second.
"""

from typing import Any

import ml_dtypes
import numpy as np

Values = np.ndarray[Any, Any]

_SUB_BYTE = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4}
_WIDE = {"f": np.float64, "c": np.complex128, "i": np.int64, "u": np.uint64, "b": np.bool_, "k": np.uint64}
KEYS = np.dtype([("word0", np.uint32), ("word1", np.uint32)])  # as the outside gets them


def kind_of(dtype: Any) -> str:
    """f, c, i, u or b: the kind of numbers that a dtype has; k: keys."""
    if getattr(dtype, "name", "") == "key<fry>" or dtype == KEYS:
        return "k"
    dtype = np.dtype(dtype)
    if dtype.kind in "fciub":
        return dtype.kind
    if dtype.name in _SUB_BYTE:
        return "u" if dtype.name.startswith("u") else "i"
    if "float" in dtype.name:
        return "f"
    raise TypeError(f"the oracle does not know the dtype {dtype}.")


def bits_of(dtype: Any) -> int:
    """Number of bits of an element."""
    dtype = np.dtype(dtype)
    return _SUB_BYTE[dtype.name] if dtype.name in _SUB_BYTE else 8 * dtype.itemsize


def widened(x: Any) -> Values:
    """The same numbers in the widest dtype of their kind."""
    if kind_of(x.dtype) == "k":
        words = x if isinstance(x, np.ndarray) else np.asarray(x.words).view(KEYS)[..., 0]
        return keys_of(words["word0"], words["word1"])
    x = np.asarray(x)
    return x.astype(_WIDE[kind_of(x.dtype)])


def zeros(shape: tuple[int, ...], dtype: Any) -> Values:
    """Zeros as values of a declared dtype."""
    return np.zeros(shape, _WIDE[kind_of(dtype)])


def keys_of(first: Values, second: Values) -> Values:
    """Keys from their words."""
    return np.asarray(first).astype(np.uint64) << np.uint64(32) | np.asarray(second).astype(np.uint64)


def words_of(keys: Values) -> tuple[Values, Values]:
    """The words of keys."""
    return keys >> np.uint64(32), keys & np.uint64(2**32 - 1)


def rounded(x: Values, dtype: Any) -> Values:
    """Floating point numbers, wide again after they were rounded to `dtype`."""
    dtype = np.dtype(dtype)
    if dtype in (np.float64, np.complex128):
        return x
    return (_to_odd(x) if dtype.itemsize < 4 and x.dtype == np.float64 else x).astype(dtype).astype(x.dtype)


def _to_odd(x: Values) -> Values:
    """Numbers of float32, odd where not exact: ml_dtypes rounds to float32 first, which must not make ties."""
    near = x.astype(np.float32)
    even = near.view(np.int32) % 2 == 0
    beyond = np.nextafter(near, np.where(x > near, np.inf, -np.inf).astype(np.float32))
    return np.where(np.isfinite(x) & (near != x) & even, beyond, near)


def units(x: Values, dtype: Any) -> Any:
    """The distances of floating point numbers to their neighbours in `dtype`."""
    info = ml_dtypes.finfo(dtype)
    size = np.where(np.isfinite(x), np.abs(x), 0)
    return np.maximum(size * float(info.eps), float(info.smallest_subnormal))


def wrapped(x: Values, dtype: Any) -> Values:
    """Integers modulo the range of `dtype`, wide."""
    bits, signed = bits_of(dtype), kind_of(dtype) == "i"
    modulo = x.astype(np.uint64) & np.uint64(2**bits - 1)
    if not signed:
        return modulo
    sign = np.uint64(1 << (bits - 1))
    return ((modulo ^ sign) - sign).astype(np.int64)


def settled(x: Any, dtype: Any, exact: bool) -> Values:
    """What was computed, as a value of the declared dtype."""
    x, kind = np.asarray(x), kind_of(dtype)
    if kind in "iu":
        return wrapped(x, dtype)
    if kind in "bk":
        return x.astype(_WIDE[kind])
    wide = x if np.iscomplexobj(x) else x.astype(_WIDE[kind])
    return wide if exact else rounded(wide, dtype)


def declared(x: Values, dtype: Any, exact: bool) -> Values:
    """A value as the outside gets it: as declared; floating point in the widest if `exact`, keys as records."""
    if kind_of(dtype) == "k":
        out = np.empty(x.shape, KEYS)
        out["word0"], out["word1"] = words_of(x)
        return out
    return x if exact and kind_of(dtype) in "fc" else x.astype(dtype)


def limits(dtype: Any) -> tuple[int, int]:
    """The least and the greatest integer of a dtype."""
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def least(dtype: Any) -> Any:
    """What is below all values of a dtype, or the least of them: the maximum of nothing."""
    return _extreme(dtype, -np.inf, 0)


def greatest(dtype: Any) -> Any:
    """What is above all values of a dtype, or the greatest of them: the minimum of nothing."""
    return _extreme(dtype, np.inf, 1)


def _extreme(dtype: Any, infinity: float, side: int) -> Any:
    kind = kind_of(dtype)
    if kind == "b":
        return np.bool_(side)
    if kind == "c":
        return np.complex128(complex(infinity, infinity))
    if kind == "f":
        info = ml_dtypes.finfo(dtype)
        return np.float64(infinity if np.isinf(info.max.dtype.type(infinity)) else (info.min, info.max)[side])
    return _WIDE[kind](limits(dtype)[side])
