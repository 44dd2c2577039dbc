"""Element types: NumPy's and ml_dtypes', the promotion lattice with weak types, default widths.

Nothing here truncates: an explicit 64-bit dtype stays 64-bit. The lattice is JAX's ("Type promotion
semantics", jax.readthedocs.io); the width of weak values is Tapeless's own (design.md, 13).
"""

import functools
from typing import Any

import ml_dtypes
import numpy as np

from tapeless.tracer.config import config

float0 = np.dtype([("float0", np.void, 0)])

_SMALL_FLOATS = tuple(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float8_e4m3fn", "float8_e5m2", "float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz",
        "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn",
    )
)  # fmt: skip
bfloat16 = np.dtype(ml_dtypes.bfloat16)
_FLOATS = (*_SMALL_FLOATS, *map(np.dtype, ("float16", ml_dtypes.bfloat16, "float32", "float64")))
_COMPLEX = tuple(map(np.dtype, ("complex64", "complex128")))
_SIGNED = tuple(map(np.dtype, (ml_dtypes.int2, ml_dtypes.int4, "int8", "int16", "int32", "int64")))
_UNSIGNED = tuple(map(np.dtype, (ml_dtypes.uint2, ml_dtypes.uint4, "uint8", "uint16", "uint32", "uint64")))
_BOOL = np.dtype(bool)

_KIND: dict[np.dtype[Any], str] = {
    _BOOL: "b",
    **dict.fromkeys(_SIGNED, "i"),
    **dict.fromkeys(_UNSIGNED, "u"),
    **dict.fromkeys(_FLOATS, "f"),
    **dict.fromkeys(_COMPLEX, "c"),
}


def kind(dtype: Any) -> str:
    """b, i, u, f or c. Raises: TypeError for a dtype that is not ours."""
    try:
        return _KIND[dtype]
    except KeyError:
        return _KIND[canonical(dtype)]


def is_bool(dtype: Any) -> bool:
    """Whether `dtype` is bool."""
    return dtype == _BOOL


def is_integer(dtype: Any) -> bool:
    """Whether `dtype` is an integer type, signed or not."""
    return _KIND.get(dtype) in ("i", "u")


def is_signed(dtype: Any) -> bool:
    """Whether `dtype` has negative numbers."""
    return _KIND.get(dtype) in ("i", "f", "c")


def is_float(dtype: Any) -> bool:
    """Whether `dtype` is a real floating-point type."""
    return _KIND.get(dtype) == "f"


def is_complex(dtype: Any) -> bool:
    """Whether `dtype` is complex."""
    return _KIND.get(dtype) == "c"


def is_inexact(dtype: Any) -> bool:
    """Whether `dtype` is floating point or complex."""
    return _KIND.get(dtype) in ("f", "c")


def tangent_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """`dtype`, or float0 for integers and booleans, whose tangent space has no dimension."""
    return dtype if is_inexact(dtype) else float0


def default_dtype(of: str) -> np.dtype[Any]:
    """Dtype of the kind b, i, u, f or c that values have unless they say: `config.default_bits` wide."""
    return _DEFAULTS[config.default_bits][of]


_DEFAULTS = {
    32: {k: np.dtype(v) for k, v in dict(b="bool", i="int32", u="uint32", f="float32", c="complex64").items()},
    64: {k: np.dtype(v) for k, v in dict(b="bool", i="int64", u="uint64", f="float64", c="complex128").items()},
}
_PYTHON = {bool: "b", int: "i", float: "f", complex: "c"}


def scalar_dtype(kind: type) -> np.dtype[Any]:
    """Dtype of a Python bool, int, float or complex standing alone."""
    return _DEFAULTS[config.default_bits][_PYTHON[kind]]


def canonical(dtype: Any) -> np.dtype[Any]:
    """A dtype of ours from anything that names one; Python's types mean the default width.

    Raises: TypeError if it names none, or one that arrays here cannot have.
    """
    if type(dtype) is type and dtype in _PYTHON:
        return scalar_dtype(dtype)
    try:
        found = np.dtype(getattr(dtype, "dtype", dtype) if not isinstance(dtype, np.dtype) else dtype)
    except TypeError:
        raise TypeError(f"{dtype!r} is not a dtype.") from None
    found = found.newbyteorder("=") if found.kind in "iufc" and not found.isnative else found
    if found not in _KIND and found != float0:
        raise TypeError(f"arrays of dtype {found} are not supported.")
    return found


_LETTER = {"i": "i", "u": "u", "c": "c"}


@functools.cache
def short_name(dtype: np.dtype[Any]) -> str:
    """f32, i64, bool, bf16, c64, u8, f8_e4m3fn."""
    name = dtype.name
    if dtype == float0:
        return "float0"
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if name.startswith(long):
            return short + name[len(long) :]
    return name


def real_part_dtype(dtype: Any) -> np.dtype[Any]:
    """Dtype of the parts of a complex dtype; any other is its own."""
    return {_COMPLEX[0]: np.dtype("float32"), _COMPLEX[1]: np.dtype("float64")}.get(dtype, dtype)


def complex_of(dtype: Any) -> np.dtype[Any]:
    """The complex dtype whose parts are at least as wide as `dtype`."""
    return _COMPLEX[1] if dtype in (np.dtype("float64"), _COMPLEX[1]) else _COMPLEX[0]


def finfo(dtype: Any) -> Any:
    """Limits of a floating-point dtype."""
    return ml_dtypes.finfo(real_part_dtype(canonical(dtype)))


def iinfo(dtype: Any) -> Any:
    """Limits of an integer dtype."""
    return ml_dtypes.iinfo(canonical(dtype))


def check_fits(value: int, dtype: Any) -> None:
    """Raises: OverflowError if the integer `value` is not in the range of `dtype`."""
    low, high = _range(dtype)
    if not low <= value <= high:
        raise OverflowError(
            f"the integer {value} does not fit {dtype} (from {low} to {high}). "
            "Give it a wider dtype, or use tl.enable_x64()."
        )


@functools.cache
def _range(dtype: Any) -> tuple[int, int]:
    info = iinfo(dtype)
    return int(info.min), int(info.max)


# ---- promotion -----------------------------------------------------------------------------------------------


@functools.cache
def promote(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """Dtype of two strongly typed operands. Raises: TypeError where an 8-bit float meets another float."""
    if a == b:
        return a
    ka, kb = kind(a), kind(b)
    low, high = (a, b) if "biufc".index(ka) <= "biufc".index(kb) else (b, a)
    kl, kh = kind(low), kind(high)
    if kl == "b" or (kl in "iu" and kh in "fc"):
        return high
    if kl == kh == "i" or kl == kh == "u":
        return max(a, b, key=_bits)
    if kl == "i" and kh == "u":
        return _signed_above(low, high)
    if kh == "c":
        return _COMPLEX[1] if np.dtype("float64") in (low, real_part_dtype(low), real_part_dtype(high)) else _COMPLEX[0]
    return _float_join(a, b)


def _signed_above(signed: np.dtype[Any], unsigned: np.dtype[Any]) -> np.dtype[Any]:
    if _bits(signed) > _bits(unsigned):
        return signed
    if _bits(unsigned) >= 64:
        return default_dtype("f")
    return next(d for d in _SIGNED if _bits(d) > _bits(unsigned))


def _float_join(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    if a in _SMALL_FLOATS and b in _SMALL_FLOATS:
        raise TypeError(f"{a} and {b} have no common dtype: convert one of them with astype.")
    if a in _SMALL_FLOATS or b in _SMALL_FLOATS:
        return b if a in _SMALL_FLOATS else a
    if {a, b} == {np.dtype("float16"), bfloat16}:
        return np.dtype("float32")
    return max(a, b, key=_bits)


@functools.cache
def _bits(dtype: Any) -> int:
    name = dtype.name
    return int("".join(c for c in name.split("_")[0] if c.isdigit()) or 1) if name != "bfloat16" else 16


def joined(a: np.dtype[Any], weak_a: bool, b: np.dtype[Any], weak_b: bool) -> tuple[np.dtype[Any], bool]:
    """Dtype and weakness of two operands.

    A weak operand of a kind that is not higher gives way; of a higher kind it lends that kind, in the default width.
    """
    if weak_a == weak_b:
        return promote(a, b), weak_a
    strong, weak = (b, a) if weak_a else (a, b)
    ks, kw = kind(strong), kind(weak)
    if "bufc".index(ks.replace("i", "u")) >= "bufc".index(kw.replace("i", "u")):
        return strong, False
    if kw == "c" and ks == "f":
        return complex_of(strong), False
    return default_dtype(kw), kw in "fc" or ks == "b"


def value_type(value: Any) -> tuple[np.dtype[Any], bool]:
    """Dtype and weakness of a value or type."""
    aval = getattr(value, "aval", None)
    if aval is not None:
        return aval.dtype, aval.weak_type
    kind = type(value)
    if kind in _PYTHON:
        return scalar_dtype(kind), kind is not bool
    if isinstance(value, np.generic):
        return canonical(value.dtype), value.dtype.kind != "b"
    if hasattr(value, "dtype"):
        return canonical(value.dtype), getattr(value, "weak_type", False)
    return canonical(np.asarray(value).dtype), False


def result_type(*operands: Any) -> tuple[np.dtype[Any], bool]:
    """Dtype and weakness that operands have in common; Python scalars alone are of the default width."""
    dtype, weak = value_type(operands[0])
    for operand in operands[1:]:
        other, other_weak = value_type(operand)
        if other != dtype or other_weak != weak:
            dtype, weak = joined(dtype, weak, other, other_weak)
    return dtype, weak
