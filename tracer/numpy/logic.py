"""Boolean results and choices, elementwise: comparisons, logic, bits, tests of floats, where, select and closeness."""

from collections.abc import Callable
from typing import Any, overload

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.arithmetic import select
from tapeless.tracer.numpy.creation import asarray
from tapeless.tracer.numpy.promotion import (
    Operand,
    apply,
    apply2,
    array_operand,
    as_array,
    broadcast,
    broadcast_to_shape,
    broadcasts_to,
    cast,
    check_no_out,
    check_operands,
    common_shape,
    operand,
    promote_operands,
    promoted_dtypes,
    refuse_keys,
    require_ordered,
)
from tapeless.tracer.primitives import bits
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import constant, shape_of
from tapeless.tracer.primitives.reduction import reduce_and
from tapeless.tracer.primitives.shape import full
from tapeless.tracer.types import aval_of, by_protocol, is_arraylike

# ---- comparisons ---------------------------------------------------------------------------------------------


def equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether x1 == x2, elementwise."""
    return apply2("equal", lax.eq_p, x1, x2)


def not_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether x1 != x2, elementwise."""
    return apply2("not_equal", lax.ne_p, x1, x2)


def less(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether x1 < x2, elementwise; complex numbers are ordered by real, then imaginary part."""
    return _compared("less", lax.lt_p, lax.lt, x1, x2)


def less_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether x1 <= x2, elementwise; complex numbers are ordered by real, then imaginary part."""
    return _compared("less_equal", lax.le_p, lax.lt, x1, x2)


def greater(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether x1 > x2, elementwise; complex numbers are ordered by real, then imaginary part."""
    return _compared("greater", lax.gt_p, lax.gt, x1, x2)


def greater_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether x1 >= x2, elementwise; complex numbers are ordered by real, then imaginary part."""
    return _compared("greater_equal", lax.ge_p, lax.gt, x1, x2)


def _compared(
    name: str, compare: Primitive, strictly: Callable[[Any, Any], Array], x1: ArrayLike, x2: ArrayLike
) -> Array:
    if _is_complex(x1) or _is_complex(x2):
        return _compared_by_parts(*promote_operands(name, x1, x2), compare=compare, strictly=strictly)
    return apply2(name, compare, x1, x2)


def _is_complex(x: Any) -> bool:
    if isinstance(x, Array):
        return dtypes.is_complex(x.aval.dtype)
    return type(x) not in (int, float) and is_arraylike(x) and dtypes.is_complex(aval_of(x).dtype)


@core.compound
def _compared_by_parts(x: Any, y: Any, *, compare: Primitive, strictly: Callable[[Any, Any], Array]) -> Array:
    """Compare real parts, then imaginary parts if they are equal; false if a part is nan, as in NumPy."""
    (a, b), (c, d) = ((lax.real(v), lax.imag(v)) for v in (x, y))
    known = bits.bitwise_and(lax.eq(b, b), lax.eq(d, d))
    by_imaginary = bits.bitwise_and(lax.eq(a, c), compare.bind(b, d)[0])
    return bits.bitwise_or(bits.bitwise_and(strictly(a, c), known), by_imaginary)


# ---- logic: operands are true where they are not 0 -----------------------------------------------------------


@one_program
def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the logical and, elementwise; nonzero numbers are true."""
    return apply2("logical_and", bits.and_p, truth("logical_and", x1), truth("logical_and", x2))


@one_program
def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the logical or, elementwise; nonzero numbers are true."""
    return apply2("logical_or", bits.or_p, truth("logical_or", x1), truth("logical_or", x2))


@one_program
def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the logical exclusive or, elementwise; nonzero numbers are true."""
    return apply2("logical_xor", bits.xor_p, truth("logical_xor", x1), truth("logical_xor", x2))


@one_program
def logical_not(x: ArrayLike, /) -> Array:
    """Tell whether x is 0, elementwise."""
    return bits.not_p.bind(truth("logical_not", x))[0]


@overload
def truth(name: str, x: Array) -> Array: ...
@overload
def truth(name: str, x: Any) -> Operand: ...
def truth(name: str, x: Any) -> Operand:
    """Convert an operand to booleans: whether x is not 0, elementwise. Raises: TypeError for keys."""
    x = operand(name, x)
    refuse_keys(name, x)
    return x if x.dtype.kind == "b" else lax.ne(x, constant(0, aval_of(x)))


# ---- bits ----------------------------------------------------------------------------------------------------


def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the bitwise and of integers or booleans, elementwise. Raises: TypeError for other dtypes."""
    return apply2("bitwise_and", bits.and_p, x1, x2)


def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the bitwise or of integers or booleans, elementwise. Raises: TypeError for other dtypes."""
    return apply2("bitwise_or", bits.or_p, x1, x2)


def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the bitwise exclusive or of integers or booleans, elementwise. Raises: TypeError for other dtypes."""
    return apply2("bitwise_xor", bits.xor_p, x1, x2)


def bitwise_not(x: ArrayLike, /) -> Array:
    """Invert every bit of integers, elementwise; logical not for booleans. Raises: TypeError for other dtypes."""
    return apply("bitwise_not", bits.not_p, x)


invert = bitwise_not
bitwise_invert = bitwise_not


def left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Shift the bits of integers x1 left by x2, elementwise: x1 times 2 to the power x2.

    Two booleans are shifted as numbers of the default integer. Raises: TypeError for other dtypes.
    """
    return _shift("left_shift", bits.shift_left_p, bits.shift_left_p, x1, x2)


def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Shift the bits of integers x1 right by x2, elementwise: x1 divided by 2 to the power x2, rounded down.

    Two booleans are shifted as numbers of the default integer. Raises: TypeError for other dtypes.
    """
    return _shift("right_shift", bits.shift_right_arithmetic_p, bits.shift_right_logical_p, x1, x2)


bitwise_left_shift = left_shift
bitwise_right_shift = right_shift


def _shift(name: str, signed: Primitive, unsigned: Primitive, x: ArrayLike, y: ArrayLike) -> Array:
    x, y = promote_operands(name, x, y)
    if dtypes.is_bool(x.dtype):
        x, y = (cast(v, dtypes.default_dtype("i")) for v in (x, y))
    if not dtypes.is_integer(x.dtype):
        raise TypeError(f"{find_called(name)}: operands must be integers, not {aval_of(x)} and {aval_of(y)}.")
    return (unsigned if dtypes.kind(x.dtype) == "u" else signed).bind(x, y)[0]


@one_program
def bitwise_count(x: ArrayLike, /) -> Array:
    """Count the set bits of |x|, elementwise, for integers and booleans; uint8. Raises: TypeError for other dtypes."""
    x = operand("bitwise_count", x)
    if x.dtype.kind == "b":
        return lax.convert_element_type(x, np.uint8)
    x = lax.abs(x) if dtypes.kind(x.dtype) == "i" else x
    return lax.convert_element_type(bits.population_count(x), np.uint8)


# ---- tests of floats -----------------------------------------------------------------------------------------


def isfinite(x: ArrayLike, /) -> Array:
    """Tell whether x is neither infinite nor nan, elementwise."""
    x = operand("isfinite", x)
    return _isfinite(x) if dtypes.is_inexact(x.dtype) else full(x.shape, True)


def _isfinite(x: Any) -> Array:
    if dtypes.is_complex(x.dtype):
        return bits.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


def isnan(x: ArrayLike, /) -> Array:
    """Tell whether x is nan, elementwise."""
    x = operand("isnan", x)
    return lax.ne(x, x) if dtypes.is_inexact(x.dtype) else full(x.shape, False)


def isinf(x: ArrayLike, /) -> Array:
    """Tell whether x is infinite, elementwise."""
    x = operand("isinf", x)
    return _isinf(x) if dtypes.is_inexact(x.dtype) else full(x.shape, False)


@core.compound
def _isinf(x: Any) -> Array:
    if dtypes.is_complex(x.dtype):
        return bits.bitwise_or(_isinf(lax.real(x)), _isinf(lax.imag(x)))
    return lax.eq(lax.abs(x), np.inf)


@one_program
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Tell whether x is +inf, elementwise. Raises: TypeError for complex numbers."""
    check_no_out("isposinf", out)
    x = require_ordered(operand("isposinf", x), "isposinf")
    return lax.eq(x, np.inf) if dtypes.is_inexact(x.dtype) else full(x.shape, False)


@one_program
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Tell whether x is -inf, elementwise. Raises: TypeError for complex numbers."""
    check_no_out("isneginf", out)
    x = require_ordered(operand("isneginf", x), "isneginf")
    return lax.eq(x, -np.inf) if dtypes.is_inexact(x.dtype) else full(x.shape, False)


@one_program
def isreal(x: ArrayLike) -> Array:
    """Tell whether the imaginary part of x is 0, elementwise."""
    x = operand("isreal", x)
    return lax.eq(lax.imag(x), 0) if dtypes.is_complex(x.dtype) else full(x.shape, True)


@one_program
def iscomplex(x: ArrayLike) -> Array:
    """Tell whether the imaginary part of x is not 0, elementwise."""
    x = operand("iscomplex", x)
    return lax.ne(lax.imag(x), 0) if dtypes.is_complex(x.dtype) else full(x.shape, False)


@one_program
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace nan and infinities, elementwise; of complex numbers in both parts.

    Args:
      copy: has no effect, as arrays are immutable.
      nan: instead of nan; like the others a number, or an array that broadcasts to x.
      posinf, neginf: instead of infinities; the greatest and the least number of the dtype if None.
    Returns: the shape and dtype of x; integers, booleans and keys of random numbers as they are.
    Raises: ValueError if a replacement does not broadcast to x.
    """
    x = array_operand("nan_to_num", x)
    if dtypes.is_complex(x.dtype):
        parts = (nan_to_num(part, copy, nan, posinf, neginf) for part in (lax.real(x), lax.imag(x)))
        return lax.complex(*parts)
    if not dtypes.is_inexact(x.dtype):
        return x
    info = dtypes.finfo(x.dtype)
    high = float(info.max) if posinf is None else posinf
    low = float(info.min) if neginf is None else neginf
    return _nan_to_num(x, *(_replacement(v, x) for v in (nan, high, low)))


def _replacement(v: ArrayLike, x: Any) -> Any:
    """Convert v to the dtype of x and, if it has axes, to its shape."""
    v = cast(v, x.dtype, x.weak_type)
    if not shape_of(v):
        return v
    if not broadcasts_to(shape_of(v), x.shape):
        raise ValueError(f"nan_to_num: a replacement, {aval_of(v)}, does not broadcast to the array, {x.aval}.")
    return broadcast_to_shape(v, x.shape)


@core.compound
def _nan_to_num(x: Any, nan: Any, high: Any, low: Any) -> Array:
    x = select(lax.ne(x, x), nan, x)
    x = select(lax.eq(x, np.inf), high, x)
    return select(lax.eq(x, -np.inf), low, x)


# ---- choice --------------------------------------------------------------------------------------------------


def choose_between(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    """Select x where `condition` is true, else y: all three broadcast, x and y are promoted; see `where`."""
    condition, x, y = by_protocol(condition), by_protocol(x), by_protocol(y)
    check_operands("where", condition, x, y)
    x, y = promoted_dtypes("where", x, y)
    condition = truth("where", condition)
    if condition.shape == x.shape == y.shape:
        return lax.select_n_p.bind(condition, y, x)[0]
    return _broadcast_choice(condition, x, y)


@core.compound
def _broadcast_choice(condition: Any, x: Any, y: Any) -> Array:
    shape = common_shape("where", condition.shape, x.shape, y.shape)
    condition = broadcast_to_shape(condition, shape) if condition.shape else condition
    x, y = (broadcast_to_shape(v, shape) if v.shape else v for v in (x, y))
    if shape and not x.shape and not y.shape:
        x = broadcast_to_shape(x, shape)
    return lax.select_n_p.bind(condition, y, x)[0]


def select_cases(condlist: Any, choicelist: Any, default: ArrayLike = 0) -> Array:
    """Select for each element the choice of the first condition that is true, or `default`.

    Args:
      condlist: a list of conditions, which broadcast with the choices.
      choicelist: an array or a number for each condition. default: where no condition is true.
    Raises: ValueError if there is not one choice for each condition, none at all, or shapes do not broadcast.
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(f"select: {len(condlist)} conditions and {len(choicelist)} choices: give one for each.")
    condlist = [by_protocol(condition) for condition in condlist]
    *choices, result = promoted_dtypes("select", *choicelist, default)
    common_shape("select", *map(shape_of, condlist), *map(shape_of, choices), shape_of(result))
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = choose_between(condition, choice, result)
    return as_array(result)


# ---- closeness -----------------------------------------------------------------------------------------------


@one_program
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Tell whether |a - b| <= atol + rtol |b|, elementwise; infinities are close to themselves, nan if `equal_nan`.

    Keys of random numbers are close if they are equal.

    Raises: ValueError if shapes do not broadcast.
    """
    if isinstance(a, Array) and dtypes.is_key(a.dtype):
        return equal(a, b)
    a, b = promote_operands("isclose", a, b)
    if not dtypes.is_inexact(a.dtype):
        dtype = dtypes.inexact_of(a.dtype)
        return _integers_close(a, b, cast(rtol, dtype), cast(atol, dtype))
    dtype = dtypes.real_part_dtype(a.dtype)
    return _isclose(a, b, cast(rtol, dtype), cast(atol, dtype), equal_nan=equal_nan)


@core.compound
def _isclose(a: Any, b: Any, rtol: Any, atol: Any, *, equal_nan: bool) -> Array:
    near = lax.le(lax.abs(lax.sub(a, b)), lax.add(atol, lax.mul(rtol, lax.abs(b))))
    finite = bits.bitwise_and(isfinite(a), isfinite(b))
    close = bits.bitwise_or(bits.bitwise_and(near, finite), lax.eq(a, b))
    return bits.bitwise_or(close, bits.bitwise_and(isnan(a), isnan(b))) if equal_nan else close


@core.compound
def _integers_close(a: Any, b: Any, rtol: Any, atol: Any) -> Array:
    """Compare integers by their unsigned distance: converted to floating point, large ones that differ may be equal."""
    a, b = (lax.convert_element_type(v, np.int8) if dtypes.is_bool(v.dtype) else v for v in (a, b))
    less = lax.lt(a, b)
    unsigned = np.dtype(f"uint{8 * a.dtype.itemsize}")
    there, back = (lax.convert_element_type(lax.sub(*v), unsigned) for v in ((b, a), (a, b)))
    distance = lax.convert_element_type(lax.select_n(less, back, there), rtol.dtype)
    size = lax.abs(lax.convert_element_type(b, rtol.dtype))
    return lax.le(distance, lax.add(atol, lax.mul(rtol, size)))


@one_program
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Tell whether all elements of a and b are close, as a scalar array; see `isclose`."""
    close = isclose(a, b, rtol, atol, equal_nan)
    return reduce_and(close, tuple(range(close.ndim)))


@one_program
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Test whether two arrays have the same shape and elements, as a scalar array; nan equals nan if `equal_nan`.

    Args:
      a1, a2: arrays, numbers, or lists of them, of any shapes.
    """
    a, b = promoted_dtypes("array_equal", asarray(a1), asarray(a2))
    return _all_equal(a, b, equal_nan) if a.shape == b.shape else full((), False)


@one_program
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Test whether two arrays broadcast to one shape and then have the same elements, as a scalar array.

    Args:
      a1, a2: arrays, numbers, or lists of them, of any shapes.
    """
    a, b = promoted_dtypes("array_equiv", asarray(a1), asarray(a2))
    try:
        a, b = broadcast("array_equiv", a, b)
    except ValueError:
        return full((), False)
    return _all_equal(a, b, False)


def _all_equal(a: Any, b: Any, equal_nan: bool) -> Array:
    same = lax.eq(a, b)
    if equal_nan:
        same = bits.bitwise_or(same, bits.bitwise_and(isnan(a), isnan(b)))
    return reduce_and(same, tuple(range(same.ndim)))
