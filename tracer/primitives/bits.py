"""Operations on the representation of numbers: bitwise logic, shifts, counts, bit casts, rounding to fewer bits.

None has a derivative but `reduce_precision`, whose tangents are rounded like its operand. Operands have one shape and
dtype, or rank 0. Source: the StableHLO specification.
"""

from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import kinds
from tapeless.tracer.primitives.kinds import joint_type
from tapeless.tracer.primitives.operands import align_operands, exact_integer
from tapeless.tracer.types import ShapedArray


def _same(name: str, allowed: str) -> Primitive:
    return Primitive(name, kinds.same(name, allowed))


not_p: Final = _same("not", kinds.BITS)
and_p: Final = _same("and", kinds.BITS)
or_p: Final = _same("or", kinds.BITS)
xor_p: Final = _same("xor", kinds.BITS)
shift_left_p: Final = _same("shift_left", kinds.INTEGER)
shift_right_logical_p: Final = _same("shift_right_logical", kinds.INTEGER)
shift_right_arithmetic_p: Final = _same("shift_right_arithmetic", kinds.INTEGER)
population_count_p: Final = _same("population_count", kinds.INTEGER)
clz_p: Final = _same("clz", kinds.INTEGER)


def bitwise_not(x: ArrayLike) -> Array:
    """Invert every bit, elementwise; integers, and booleans, which are negated."""
    return not_p.bind(x)[0]


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the bitwise and of x and y, elementwise; integers or booleans."""
    return and_p.bind(*align_operands(x, y))[0]


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the bitwise or of x and y, elementwise; integers or booleans."""
    return or_p.bind(*align_operands(x, y))[0]


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the bitwise exclusive or of x and y, elementwise; integers or booleans."""
    return xor_p.bind(*align_operands(x, y))[0]


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Shift the bits of x left by y, elementwise; integers. The result is 0 if y is negative or too large."""
    return shift_left_p.bind(*align_operands(x, y))[0]


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Shift the bits of x right by y, filling with zeros, elementwise; integers."""
    return shift_right_logical_p.bind(*align_operands(x, y))[0]


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Shift the bits of x right by y, copying the sign bit, elementwise; integers."""
    return shift_right_arithmetic_p.bind(*align_operands(x, y))[0]


def population_count(x: ArrayLike) -> Array:
    """Count the set bits, elementwise; integers."""
    return population_count_p.bind(x)[0]


def clz(x: ArrayLike) -> Array:
    """Count the leading zero bits, elementwise; integers."""
    return clz_p.bind(x)[0]


# ---- representation ------------------------------------------------------------------------------------------


def bitcast_convert_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """Reinterpret the bits of operand as another dtype.

    Args:
      operand: [...], or [..., n] if `new_dtype` is n times wider.
      new_dtype: not boolean or complex, unless it is that of operand.
    Returns: [...] if widths are equal or `new_dtype` is wider, [..., n] if it is n times narrower, lowest bits first.
    Raises: TypeError for booleans and complex numbers; ValueError if the last axis does not fill new elements.
    Source: StableHLO spec, bitcast_convert.
    """
    return bitcast_convert_type_p.bind(operand, dtype=dtypes.canonical(new_dtype))[0]


def _bitcast_type(x: ShapedArray, *, dtype: np.dtype[Any]) -> tuple[ShapedArray, ...]:
    if x.dtype == dtype:
        return (x.strong(),)
    if any(dtypes.is_bool(d) or dtypes.is_complex(d) for d in (x.dtype, dtype)):
        raise TypeError(f"bitcast_convert_type: booleans and complex numbers cannot be read as others: {x} as {dtype}.")
    old, new = dtypes.bits_of(x.dtype), dtypes.bits_of(dtype)
    if old >= new:
        shape = x.shape if old == new else (*x.shape, old // new)
        return (ShapedArray(shape, dtype),)
    if not x.shape or x.shape[-1] != new // old:
        raise ValueError(
            f"bitcast_convert_type: the last axis of {x} must have {new // old} elements to make a {dtype}."
        )
    return (ShapedArray(x.shape[:-1], dtype),)


bitcast_convert_type_p: Final = Primitive("bitcast_convert_type", _bitcast_type)


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round operand to a floating point format of fewer bits, elementwise; the dtype does not change.

    Args:
      operand: [...], floating point.
      exponent_bits: at least 1.
      mantissa_bits: at least 0.
    Raises: TypeError if operand is not floating point; ValueError if there are too few bits.
    Source: StableHLO spec, reduce_precision.
    """
    return reduce_precision_p.bind(
        operand,
        exponent_bits=exact_integer(exponent_bits, "reduce_precision: exponent_bits"),
        mantissa_bits=exact_integer(mantissa_bits, "reduce_precision: mantissa_bits"),
    )[0]


def _reduce_precision_type(x: ShapedArray, *, exponent_bits: int, mantissa_bits: int) -> tuple[ShapedArray, ...]:
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(f"reduce_precision: {x} cannot have {exponent_bits} exponent, {mantissa_bits} mantissa bits.")
    return (joint_type("reduce_precision", (x,), kinds.FLOAT),)


reduce_precision_p: Final = Primitive("reduce_precision", _reduce_precision_type)
