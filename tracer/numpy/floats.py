"""The representation of floats, elementwise: sign bits, neighbours, fractions and exponents."""

from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.arithmetic import select, trunc
from tapeless.tracer.numpy.promotion import (
    apply2_inexact,
    broadcast,
    cast,
    check_no_out,
    inexact,
    number_operand,
    operand,
    promoted_inexact,
    require_ordered,
)
from tapeless.tracer.primitives import bits
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import shape_of
from tapeless.tracer.primitives.shape import full
from tapeless.tracer.types import aval_of

# ---- signs ---------------------------------------------------------------------------------------------------


def signbit(x: ArrayLike, /) -> Array:
    """Tell whether x is negative, or -0.0 or a negative NaN, elementwise. Raises: TypeError for complex numbers."""
    return _signbit(require_ordered(number_operand("signbit", x), "signbit"))


@core.compound
def _signbit(x: Any) -> Array:
    if not dtypes.is_float(x.dtype):
        return lax.lt(x, 0) if dtypes.kind(x.dtype) == "i" else full(shape_of(x), False)
    return lax.lt(bits.bitcast_convert_type(x, _bits_of(x.dtype)), 0)


def _bits_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"int{8 * dtype.itemsize}")


def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute |x1| with the sign of x2, elementwise, as floating point. Raises: TypeError for complex numbers."""
    x, y = promoted_inexact("copysign", x1, x2)
    return _copysign(x, y)


@core.compound
def _copysign(x: Any, y: Any) -> Array:
    size = lax.abs(x)
    found = select(signbit(y), lax.neg(size), size)
    return found if aval_of(y).weak_type else lax.convert_element_type(found, found.dtype)


# ---- fractions and exponents ---------------------------------------------------------------------------------


@one_program
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Split x into fractional and integral part, elementwise; both have the sign of x, and are floating point.

    Raises: TypeError for complex numbers, NotImplementedError for an `out`.
    """
    check_no_out("modf", out)
    x = inexact("modf", x)
    return select(lax.eq(lax.abs(x), np.inf), copysign(0, x), lax.rem(x, 1)), trunc(x)


def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the next floating point number after x1 in the direction of x2, elementwise.

    Raises: TypeError for complex numbers.
    """
    return apply2_inexact("nextafter", lax.nextafter_p, x1, x2)


def spacing(x: ArrayLike, /) -> Array:
    """Compute the distance to the next number farther from 0, with the sign of x, elementwise; nan for inf and nan.

    Raises: TypeError for complex numbers.
    """
    return _spacing(inexact("spacing", x))


@core.compound
def _spacing(x: Any) -> Array:
    """Write the power of 2 by its bits: XLA would compute a subnormal difference as 0."""
    digits, integer = int(dtypes.finfo(x.dtype).nmant), _bits_of(x.dtype)
    one, width = integer.type(1), integer.type(digits)
    code = bits.bitcast_convert_type(x, integer)
    exponent = bits.shift_right_logical(bits.bitwise_and(code, np.iinfo(integer).max), width)
    normal = bits.shift_left(lax.sub(lax.max(exponent, width), width), width)
    subnormal = bits.shift_left(one, lax.sub(lax.clamp(one, exponent, width), one))
    size = bits.bitcast_convert_type(lax.select(lax.gt(exponent, width), normal, subnormal), x.dtype)
    negative = bits.bitwise_and(lax.lt(code, 0), lax.ne(code, np.iinfo(integer).min))  # -0.0 is not
    return select(lax.is_finite(x), select(negative, lax.neg(size), size), np.nan)


@one_program
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute x1 times 2 to the integer power x2, elementwise, as floating point.

    Raises: TypeError if x2 is no integer or boolean, or x1 complex.
    """
    x2 = operand("ldexp", x2)
    if not dtypes.is_integer(x2.dtype) and not dtypes.is_bool(x2.dtype):
        raise TypeError(f"ldexp: the exponent must be an integer, not {aval_of(x2)}.")
    x = inexact("ldexp", x1)
    return _ldexp(*broadcast("ldexp", x, _as_int32(x2)))


def _as_int32(n: Any) -> Any:
    """Convert an exponent to int32; one out of range becomes the nearest int32, which means the same."""
    if dtypes.holds(np.dtype(np.int32), n.dtype):
        return cast(n, np.dtype(np.int32))
    limits = np.iinfo(np.int32)
    n = lax.min(n, limits.max)
    return lax.convert_element_type(n if dtypes.kind(n.dtype) == "u" else lax.max(n, limits.min), np.int32)


@core.compound
def _ldexp(x: Any, n: Any) -> Array:
    """Multiply by 2**n in three factors: a single factor can be infinite where the product is finite."""
    low, high = int(dtypes.finfo(x.dtype).minexp), int(dtypes.finfo(x.dtype).maxexp) - 1
    for _ in range(3):
        step = lax.min(lax.max(n, low), high)
        x, n = lax.mul(x, _power_of_two(step, x.dtype)), lax.sub(n, step)
    return x


def _power_of_two(n: Any, dtype: np.dtype[Any]) -> Array:
    info = dtypes.finfo(dtype)
    biased = lax.convert_element_type(lax.add(n, 1 - int(info.minexp)), _bits_of(dtype))
    return bits.bitcast_convert_type(bits.shift_left(biased, int(info.nmant)), dtype)


@one_program
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Split x into fraction f and exponent n with x = f 2^n and |f| in [0.5, 1), elementwise.

    Returns: (f, floating point; n, int32); (x, 0) for 0, inf and nan.
    Raises: TypeError for complex numbers.
    """
    x = inexact("frexp", x)
    if not dtypes.is_float(x.dtype):
        raise TypeError(f"frexp: the operand must be real, not {aval_of(x)}.")
    return _frexp(x)


@core.compound
def _frexp(x: Any) -> tuple[Array, Array]:
    """Numbers below the normal ones are scaled up first, unless a processor takes them as 0: they remain."""
    info, integer = dtypes.finfo(x.dtype), _bits_of(x.dtype)
    mantissa, bias = int(info.nmant), 1 - int(info.minexp)
    small = lax.lt(lax.abs(x), float(info.smallest_normal))
    scaled = select(small, lax.mul(x, 2.0**mantissa), x)
    pattern = bits.bitcast_convert_type(scaled, integer)
    field = ((1 << (int(info.bits) - mantissa - 1)) - 1) << mantissa
    exponent = lax.sub(bits.shift_right_logical(bits.bitwise_and(pattern, field), mantissa), bias - 1)
    exponent = lax.sub(exponent, select(small, mantissa, full(x.shape, 0, integer)))
    halved = bits.bitwise_or(bits.bitwise_and(pattern, ~field), (bias - 1) << mantissa)
    plain = bits.bitwise_or(lax.eq(scaled, 0), bits.bitwise_not(lax.is_finite(x)))
    fraction = _following(bits.bitcast_convert_type(halved, x.dtype), select(plain, 1, scaled))
    return select(plain, x, fraction), lax.convert_element_type(select(plain, 0, exponent), np.int32)


def _following(y: Any, x: Any) -> Array:
    """Give y, computed from the bits of x, the derivative y/x of a function proportional to x."""
    slope = lax.stop_gradient(lax.div(y, x))
    return lax.add(y, lax.mul(lax.sub(x, lax.stop_gradient(x)), slope))
