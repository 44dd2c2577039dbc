"""Print and read numbers exactly: `2.0`, `(1+2j)`, `True`, or bits, `0x7fc00001`, if no decimal is exact.

The dtype of a number in a program is written behind it, `2.0:f16`, unless it is inferred: it is that of the first
operand, or else result, of its equation that is of the number's kind (`expected_type`).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.dtypes import DType
from tapeless.tracer.types import ShapedArray

_SPELLED = {
    "b": "b",
    "i": "i",
    "u": "i",
    "f": "f",
    "c": "c",
}  # kinds, as far as spelling tells them
_OTHERWISE = {"b": "bool", "i": "int32", "f": "float32", "c": "complex64"}


def scalar_text(value: Any, dtype: DType) -> str:
    """Write an element of a dtype: the shortest decimal that is this number, or its bits if there is none."""
    if dtype == dtypes.float0:
        return "0"
    scalar = np.asarray(value, dtype)[()]
    text = str(scalar)
    if dtypes.kind(dtype) == "f" and text.lstrip("-").isdigit():
        text += ".0"
    if dtypes.kind(dtype) in "fc" and _bits(read_scalar(text, dtype)) != _bits(scalar):
        return "0x" + _bits(scalar)[::-1].hex()
    return text


def read_scalar(text: str, dtype: DType) -> Any:
    """Read an element of a dtype, as `scalar_text` writes it. Raises: ValueError if it is not one."""
    kind = dtypes.kind(dtype) if dtype != dtypes.float0 else "b"
    if text.startswith("0x"):
        bits = bytes.fromhex(text[2:])[::-1]
        if kind not in "fc" or len(bits) != dtype.itemsize:
            raise ValueError(f"{text} is not the bits of a number of {dtype.name}")
        return np.frombuffer(bits, dtype)[0]
    if kind == "b":
        if text not in ("True", "False", "0"):
            raise ValueError(f"{text} is neither True nor False")
        return np.asarray(text == "True").astype(dtype)[()]
    if kind in "iu":
        return _integer(int(text), dtype)
    with np.errstate(over="ignore"):
        return dtype.type(complex(text) if kind == "c" else float(text))


def _integer(value: int, dtype: DType) -> Any:
    low, high = dtypes.limits(dtype)
    if not low <= value <= high:
        raise ValueError(f"{value} is not between {low} and {high}, the limits of {dtype.name}")
    return dtype.type(value)


def _bits(scalar: Any) -> bytes:
    return np.asarray(scalar).tobytes()


def spelled_kind(text: str) -> str:
    """Return the kind of a number from its spelling: b, i, f or c; f for bits."""
    if text in ("True", "False"):
        return "b"
    if text.lstrip("-").isdigit():
        return "i"
    return "c" if text.endswith(("j", "j)")) else "f"


def expected_type(text: str, types: Iterable[ShapedArray]) -> ShapedArray:
    """Infer the type of a number with none behind it: the first in `types` of its kind, or else one of 32 bits."""
    kind = spelled_kind(text)
    for aval in types:
        if not dtypes.is_key(aval.dtype) and aval.dtype != dtypes.float0 and _SPELLED[dtypes.kind(aval.dtype)] == kind:
            return ShapedArray((), aval.dtype, aval.weak_type)
    return ShapedArray((), _OTHERWISE[kind], kind == "i")  # weak integers: most are indices that were numbers in Python
