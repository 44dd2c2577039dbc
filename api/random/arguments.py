"""Argument checks of random samplers: key, shape, dtype, and parameters.

Parameters that are not arrays are converted to the sampler's dtype directly, not to the default width of Python's
numbers first.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.keys.prng_keys import one_key, shape_of_result
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.operands import known_elements, shape_of
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import aval_of, exact, is_arraylike

KeyLike = ArrayLike  # one key: an array of a key dtype, or bare words
Shape = Sequence[int]

_WHAT = {"f": "floating point", "fc": "floating point or complex", "u": "an unsigned integer", "iu": "an integer"}


def request(
    name: str, key: KeyLike, shape: Any, dtype: Any, kinds: str, what: str = "the dtype"
) -> tuple[Any, tuple[int, ...], Any]:
    """Check and canonicalise the key, shape and dtype of a sample.

    Args:
      dtype: one of `kinds`; the default one of the first kind if None.
      what: whose dtype it is, for messages.
    Returns: (key, of a key dtype; shape; dtype).
    Raises: TypeError if one of them is wrong, ValueError for a negative size.
    """
    key, sizes = one_key(name, key), shape_of_result(name, shape)
    dtype = dtypes.default_dtype(kinds[0]) if dtype is None else dtypes.canonical(dtype)
    if dtypes.kind(dtype) not in kinds or _has_no_mantissa(dtype):
        raise TypeError(f"{name}: {what} must be {_WHAT[kinds]}, not {dtype}.")
    return key, sizes, dtype


def _has_no_mantissa(dtype: Any) -> bool:
    """Tell whether a floating-point dtype has too few bits of its own to draw a number in [1, 2)."""
    return dtypes.is_float(dtype) and (dtypes.finfo(dtype).bits < 8 or dtypes.finfo(dtype).nmant == 0)


def sampling_mode(name: str, mode: str | None, known: tuple[str, ...] = ("low", "high")) -> str:
    """Canonicalise a sampler's mode, the number of bits of a sample: by the settings if None.

    Raises: ValueError if it is not among the known ones.
    """
    if mode is not None and mode not in known:
        listed = ", ".join(f'"{word}"' for word in known[:-1])
        raise ValueError(f'{name}: the mode must be {listed} or "{known[-1]}", not {mode!r}.')
    return mode or ("high" if config.high_dynamic_range_gumbel else "low")


def gumbel_mode(name: str, mode: str | None) -> str:
    """Canonicalise the mode of a sampler that draws Gumbel numbers, as `sampling_mode`."""
    return sampling_mode(name, mode, ("low", "high", "highest"))


def count_of(name: str, x: Any) -> int:
    """Convert x to a Python int, the size of a population. Raises: TypeError if it is not one known integer."""
    if not is_arraylike(x) or not dtypes.is_integer(aval_of(x).dtype):
        raise TypeError(f"{name} takes an array with axes or an integer, not {x!r}.")
    return operator.index(x)


def convert_bound(name: str, x: Any, dtype: Any) -> Any:
    """Convert a bound to an array; a Python integer to the dtype in which `dtype` is drawn, or a wider one if needed.

    Floats that are whole numbers stand for integers, if they are known.

    Raises: TypeError if it is no integer, OverflowError if it has more than 64 bits.
    """
    x = _whole(x, drawn_as(dtype))
    if not is_arraylike(x) or not dtypes.is_integer(aval_of(x).dtype):
        raise TypeError(f"randint: {name} must be an integer, not {x!r}. Convert it with astype.")
    if not isinstance(x, int):
        return x if isinstance(x, Array) else np.asarray(x)
    for candidate in (drawn_as(dtype), np.dtype("int64"), np.dtype("uint64")):
        if dtypes.iinfo(candidate).min <= x <= dtypes.iinfo(candidate).max:
            return exact(x, candidate)
    raise OverflowError(f"randint: {name} {x} does not fit 64 bits.")


def _whole(x: Any, dtype: Any) -> Any:
    """Convert known floats to `dtype` if they are whole numbers that it holds; return other objects unchanged."""
    if not is_arraylike(x) or not dtypes.is_float(aval_of(x).dtype) or (known := known_elements(x)) is None:
        return x
    values, range_ = known.astype(np.float64), dtypes.iinfo(dtype)
    whole = (values == np.floor(values)) & (values >= float(range_.min)) & (values < float(range_.max))
    return values.astype(dtype) if whole.all() else x


def parameter(x: Any, dtype: Any) -> Any:
    """Convert a number to an array of `dtype`, not by way of the default width; arrays stay."""
    return x if isinstance(x, Array) else np.asarray(x, dtype)


def weights(p: Any, count: int) -> Any:
    """Convert probabilities to floating point. Raises: ValueError if they are not of shape [count]."""
    if shape_of(p) != (count,):
        raise ValueError(f"choice: p must have shape ({count},), a probability for each part, not {shape_of(p)}.")
    given = aval_of(p).dtype
    dtype = given if dtypes.is_float(given) else dtypes.float_of(given)
    return parameter(p, dtype) if dtype == given else convert_element_type(p, dtype)


def check_broadcast(name: str, shape: tuple[int, ...], **operands: tuple[int, ...]) -> None:
    """Check that these shapes broadcast to `shape`. Raises: ValueError for the first that does not."""
    for operand, own in operands.items():
        if len(own) > len(shape) or any(n not in (1, m) for n, m in zip(own[::-1], shape[::-1], strict=False)):
            raise ValueError(f"{name}: {operand}, of shape {own}, does not broadcast to shape {shape}.")


def check_population(name: str, count: int, draws: int, replace: bool) -> None:
    """Check that `draws` elements can be drawn from `count`. Raises: ValueError."""
    if count < 0 or (draws > count and not (replace and count)):
        again = "" if replace else " without replacement"
        raise ValueError(f"{name}: {draws} cannot be drawn from {count}{again}.")


def drawn_as(dtype: Any) -> Any:
    """Return the dtype in which integers of `dtype` are drawn: at least 32 bits."""
    return dtype if dtype.itemsize >= 4 else np.dtype("int32")
