"""Elementwise operations: arithmetic, the elementary functions, comparison, choice, conversion.

Operands have one dtype, and one shape up to axes of length 1, which are repeated, or rank 0. A Python number takes the
dtype of the other operand. Every function raises TypeError if dtypes differ or are not among those it takes, and
ValueError if shapes differ; all operands are named (see `kinds.joint_type`).
Source: the StableHLO specification, and DLMF chapter 4 for branches of the elementary functions.
"""

import builtins
from enum import IntEnum
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes, pytree
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.errors import not_supported
from tapeless.tracer.primitives import kinds
from tapeless.tracer.primitives.kinds import joint_type, list_types
from tapeless.tracer.primitives.operands import align_operands, exact_integer, match_dtypes
from tapeless.tracer.types import ShapedArray, aval_of, exact


def _same(name: str, allowed: str, takes_keys: bool = False) -> Primitive:
    return Primitive(name, kinds.same(name, allowed), takes_keys=takes_keys)


def _predicate(name: str, allowed: str, takes_keys: bool = False) -> Primitive:
    return Primitive(name, kinds.predicate(name, allowed), takes_keys=takes_keys)


def _real_part(name: str, allowed: str) -> Primitive:
    return Primitive(name, kinds.real_part(name, allowed))


# ---- arithmetic ----------------------------------------------------------------------------------------------


neg_p: Final = _same("neg", kinds.NUMERIC)
add_p: Final = _same("add", kinds.NUMERIC)
sub_p: Final = _same("sub", kinds.NUMERIC)
mul_p: Final = _same("mul", kinds.NUMERIC)
div_p: Final = _same("div", kinds.NUMERIC)
rem_p: Final = _same("rem", kinds.REAL)
max_p: Final = _same("max", kinds.ANY)
min_p: Final = _same("min", kinds.ANY)
sign_p: Final = _same("sign", kinds.NUMERIC)
abs_p: Final = _real_part("abs", kinds.NUMERIC)
floor_p: Final = _same("floor", kinds.FLOAT)
ceil_p: Final = _same("ceil", kinds.FLOAT)
nextafter_p: Final = _same("nextafter", kinds.FLOAT)
square_p: Final = _same("square", kinds.NUMERIC)
difference_p: Final = _same("difference", kinds.FLOAT)


def neg(x: ArrayLike) -> Array:
    """Negate x, elementwise; numbers, unsigned integers modulo their range."""
    return neg_p.bind(x)[0]


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Add x and y, elementwise; numbers of one dtype."""
    return add_p.bind(*align_operands(x, y))[0]


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """Subtract y from x, elementwise; numbers of one dtype."""
    return sub_p.bind(*align_operands(x, y))[0]


def difference(x: ArrayLike, y: ArrayLike) -> Array:
    """Subtract y from x, elementwise; floating point. Equal infinities have the difference 0, derivatives 1 and -1."""
    return difference_p.bind(*align_operands(x, y))[0]


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: dtypes.DTypeLike | None = None) -> Array:
    """Multiply x and y, elementwise; numbers of one dtype, or converted to `out_dtype` before."""
    if out_dtype is not None:
        x, y = convert_element_type(x, out_dtype), convert_element_type(y, out_dtype)
    return mul_p.bind(*align_operands(x, y))[0]


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """Divide x by y, elementwise; integers are divided towards zero."""
    return div_p.bind(*align_operands(x, y))[0]


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the remainder of x / y, rounded towards zero, elementwise; real. Has the sign of x, as C's fmod."""
    return rem_p.bind(*align_operands(x, y))[0]


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the greater of x and y, elementwise; nan if either is; complex numbers by real, then imaginary part."""
    return max_p.bind(*align_operands(x, y))[0]


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the lesser of x and y, elementwise; nan if either is; complex numbers by real, then imaginary part."""
    return min_p.bind(*align_operands(x, y))[0]


def sign(x: ArrayLike) -> Array:
    """Compute -1, 0 or 1 by the sign of x, elementwise; x/|x| for complex x, nan for nan."""
    return sign_p.bind(x)[0]


def abs(x: ArrayLike) -> Array:
    """Compute the absolute value, elementwise; numbers. It is real for complex numbers."""
    return abs_p.bind(x)[0]


def floor(x: ArrayLike) -> Array:
    """Round down to an integer, elementwise; floating point."""
    return floor_p.bind(x)[0]


def ceil(x: ArrayLike) -> Array:
    """Round up to an integer, elementwise; floating point."""
    return ceil_p.bind(x)[0]


class RoundingMethod(IntEnum):
    """The rounding, by `round`, of numbers halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Round to the nearest integer, elementwise; floating point. Raises: ValueError for an unknown method."""
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))[0]


def _round_type(x: ShapedArray, *, rounding_method: RoundingMethod) -> tuple[ShapedArray, ...]:
    return (joint_type("round", (x,), kinds.FLOAT),)


round_p: Final = Primitive("round", _round_type)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Find the floating point number next to x1 in the direction of x2, elementwise; x2 if they are equal."""
    return nextafter_p.bind(*align_operands(x1, x2))[0]


# ---- powers --------------------------------------------------------------------------------------------------


sqrt_p: Final = _same("sqrt", kinds.INEXACT)
rsqrt_p: Final = _same("rsqrt", kinds.INEXACT)
cbrt_p: Final = _same("cbrt", kinds.FLOAT)
root_of_squares_p: Final = _same("root_of_squares", kinds.FLOAT)


def sqrt(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute the square root, elementwise; floating point or complex, with a real part that is not negative."""
    if accuracy is not None:
        raise not_supported("sqrt", "accuracy", accuracy)
    return sqrt_p.bind(x)[0]


def rsqrt(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute 1 / sqrt(x), elementwise; floating point or complex."""
    if accuracy is not None:
        raise not_supported("rsqrt", "accuracy", accuracy)
    return rsqrt_p.bind(x)[0]


def cbrt(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute the real cube root, elementwise; floating point."""
    if accuracy is not None:
        raise not_supported("cbrt", "accuracy", accuracy)
    return cbrt_p.bind(x)[0]


def root_of_squares(x: ArrayLike) -> Array:
    """Compute the square root of a sum of squares, elementwise; floating point. Its derivative at 0 is 0."""
    return root_of_squares_p.bind(x)[0]


def square(x: ArrayLike) -> Array:
    """Compute x times x, elementwise; numbers."""
    return square_p.bind(x)[0]


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Compute x to the integer power y, elementwise; numbers. Raises: TypeError if y is negative and x an integer."""
    return integer_pow_p.bind(x, y=exact_integer(y, "integer_pow: y"))[0]


def reciprocal(x: ArrayLike) -> Array:
    """Compute 1 / x, elementwise, of floating-point or complex numbers."""
    return integer_pow(x, -1)


def _integer_pow_type(x: ShapedArray, *, y: int) -> tuple[ShapedArray, ...]:
    if y < 0 and dtypes.is_integer(x.dtype):
        raise TypeError(f"integer_pow: {x} has no power {y} among the integers. Convert it to a float first.")
    return (joint_type("integer_pow", (x,), kinds.NUMERIC),)


integer_pow_p: Final = Primitive("integer_pow", _integer_pow_type)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute x to the power y, elementwise: numbers of one dtype, or y an integer. 0 to the power 0 is 1."""
    mixed = type(y) is int or (type(x) in (float, builtins.complex) and dtypes.is_integer(aval_of(y).dtype))
    return pow_p.bind(*((x, y) if mixed else align_operands(x, y)))[0]


def _pow_type(x: ShapedArray, y: ShapedArray) -> tuple[ShapedArray, ...]:
    if dtypes.is_inexact(x.dtype) and dtypes.is_integer(y.dtype):
        weak = x.weak_type and y.weak_type
        return (x.update(shape=kinds.joint_shape("pow", (x, y)), weak_type=weak),)
    return (joint_type("pow", (x, y), kinds.NUMERIC),)


pow_p: Final = Primitive("pow", _pow_type)


# ---- elementary functions ------------------------------------------------------------------------------------


exp_p: Final = _same("exp", kinds.INEXACT)
exp2_p: Final = _same("exp2", kinds.INEXACT)
expm1_p: Final = _same("expm1", kinds.INEXACT)
log_p: Final = _same("log", kinds.INEXACT)
log1p_p: Final = _same("log1p", kinds.INEXACT)
log_plus_one_p: Final = _same("log_plus_one", kinds.FLOAT)
logistic_p: Final = _same("logistic", kinds.INEXACT)
sin_p: Final = _same("sin", kinds.INEXACT)
cos_p: Final = _same("cos", kinds.INEXACT)
tan_p: Final = _same("tan", kinds.INEXACT)
asin_p: Final = _same("asin", kinds.INEXACT)
acos_p: Final = _same("acos", kinds.INEXACT)
atan_p: Final = _same("atan", kinds.INEXACT)
atan2_p: Final = _same("atan2", kinds.FLOAT)
sinh_p: Final = _same("sinh", kinds.INEXACT)
cosh_p: Final = _same("cosh", kinds.INEXACT)
tanh_p: Final = _same("tanh", kinds.INEXACT)
asinh_p: Final = _same("asinh", kinds.INEXACT)
acosh_p: Final = _same("acosh", kinds.INEXACT)
atanh_p: Final = _same("atanh", kinds.INEXACT)


def exp(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute e to the power x, elementwise; floating point or complex."""
    if accuracy is not None:
        raise not_supported("exp", "accuracy", accuracy)
    return exp_p.bind(x)[0]


def exp2(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute 2 to the power x, elementwise; floating point or complex."""
    if accuracy is not None:
        raise not_supported("exp2", "accuracy", accuracy)
    return exp2_p.bind(x)[0]


def expm1(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute exp(x) - 1 without cancellation, elementwise; floating point or complex."""
    if accuracy is not None:
        raise not_supported("expm1", "accuracy", accuracy)
    return expm1_p.bind(x)[0]


def log(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute the natural logarithm, elementwise; floating point or complex, principal branch."""
    if accuracy is not None:
        raise not_supported("log", "accuracy", accuracy)
    return log_p.bind(x)[0]


def log1p(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute log(1 + x) without cancellation, elementwise; floating point or complex."""
    if accuracy is not None:
        raise not_supported("log1p", "accuracy", accuracy)
    return log1p_p.bind(x)[0]


def log_plus_one(x: ArrayLike) -> Array:
    """Compute log(1 + x) to the bits of XLA's operation, of which JAX makes random numbers; `log1p` is more precise."""
    return log_plus_one_p.bind(x)[0]


def logistic(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute 1 / (1 + exp(-x)), elementwise; floating point or complex."""
    if accuracy is not None:
        raise not_supported("logistic", "accuracy", accuracy)
    return logistic_p.bind(x)[0]


def sin(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute the sine, elementwise; floating point or complex, radians."""
    if accuracy is not None:
        raise not_supported("sin", "accuracy", accuracy)
    return sin_p.bind(x)[0]


def cos(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute the cosine, elementwise; floating point or complex, radians."""
    if accuracy is not None:
        raise not_supported("cos", "accuracy", accuracy)
    return cos_p.bind(x)[0]


def tan(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute the tangent, elementwise; floating point or complex, radians."""
    if accuracy is not None:
        raise not_supported("tan", "accuracy", accuracy)
    return tan_p.bind(x)[0]


def asin(x: ArrayLike) -> Array:
    """Compute the arcsine, elementwise; floating point or complex, principal branch."""
    return asin_p.bind(x)[0]


def acos(x: ArrayLike) -> Array:
    """Compute the arccosine, elementwise; floating point or complex, principal branch."""
    return acos_p.bind(x)[0]


def atan(x: ArrayLike) -> Array:
    """Compute the arctangent, elementwise; floating point or complex, principal branch."""
    return atan_p.bind(x)[0]


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the angle of the point (y, x), elementwise; floating point, between -pi and pi."""
    return atan2_p.bind(*align_operands(x, y))[0]


def sinh(x: ArrayLike) -> Array:
    """Compute the hyperbolic sine, elementwise; floating point or complex."""
    return sinh_p.bind(x)[0]


def cosh(x: ArrayLike) -> Array:
    """Compute the hyperbolic cosine, elementwise; floating point or complex."""
    return cosh_p.bind(x)[0]


def tanh(x: ArrayLike, *, accuracy: None = None) -> Array:
    """Compute the hyperbolic tangent, elementwise; floating point or complex."""
    if accuracy is not None:
        raise not_supported("tanh", "accuracy", accuracy)
    return tanh_p.bind(x)[0]


def asinh(x: ArrayLike) -> Array:
    """Compute the inverse hyperbolic sine, elementwise; floating point or complex, principal branch."""
    return asinh_p.bind(x)[0]


def acosh(x: ArrayLike) -> Array:
    """Compute the inverse hyperbolic cosine, elementwise; floating point or complex, principal branch."""
    return acosh_p.bind(x)[0]


def atanh(x: ArrayLike) -> Array:
    """Compute the inverse hyperbolic tangent, elementwise; floating point or complex, principal branch."""
    return atanh_p.bind(x)[0]


# ---- complex numbers -----------------------------------------------------------------------------------------


real_p: Final = _real_part("real", kinds.COMPLEX)
imag_p: Final = _real_part("imag", kinds.COMPLEX)
conj_p: Final = _same("conj", kinds.COMPLEX)


def real(x: ArrayLike) -> Array:
    """Return the real part, elementwise; complex."""
    return real_p.bind(x)[0]


def imag(x: ArrayLike) -> Array:
    """Return the imaginary part, elementwise; complex."""
    return imag_p.bind(x)[0]


def conj(x: ArrayLike) -> Array:
    """Compute the complex conjugate, elementwise, always complex, as float32 and float64 become."""
    aval = aval_of(x)
    if dtypes.is_float(aval.dtype) and dtypes.bits_of(aval.dtype) >= 32:
        return convert_element_type(x, dtypes.complex_of(aval.dtype), weak_type=aval.weak_type)
    return conj_p.bind(x)[0]


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """Make complex numbers x + i y, elementwise; float32 or float64, both the same."""
    return complex_p.bind(*align_operands(x, y))[0]


def _complex_type(x: ShapedArray, y: ShapedArray) -> tuple[ShapedArray, ...]:
    aval = joint_type("complex", (x, y), kinds.WIDE_FLOAT)
    return (aval.update(dtype=dtypes.complex_of(aval.dtype)),)


complex_p: Final = Primitive("complex", _complex_type)


# ---- comparison ----------------------------------------------------------------------------------------------


eq_p: Final = _predicate("eq", kinds.ANY, takes_keys=True)
ne_p: Final = _predicate("ne", kinds.ANY, takes_keys=True)
lt_p: Final = _predicate("lt", kinds.ORDERED)
le_p: Final = _predicate("le", kinds.ORDERED)
gt_p: Final = _predicate("gt", kinds.ORDERED)
ge_p: Final = _predicate("ge", kinds.ORDERED)
is_finite_p: Final = _predicate("is_finite", kinds.FLOAT)


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether x = y, elementwise; nan equals nothing."""
    return eq_p.bind(*align_operands(x, y))[0]


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether x differs from y, elementwise; nan differs from everything."""
    return ne_p.bind(*align_operands(x, y))[0]


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether x < y, elementwise; real or boolean."""
    return lt_p.bind(*align_operands(x, y))[0]


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether x <= y, elementwise; real or boolean."""
    return le_p.bind(*align_operands(x, y))[0]


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether x > y, elementwise; real or boolean."""
    return gt_p.bind(*align_operands(x, y))[0]


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether x >= y, elementwise; real or boolean."""
    return ge_p.bind(*align_operands(x, y))[0]


def is_finite(x: ArrayLike) -> Array:
    """Tell whether x is neither infinite nor nan, elementwise; floating point."""
    return is_finite_p.bind(x)[0]


# ---- choice --------------------------------------------------------------------------------------------------


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Select for each element the case `which`: boolean for at most two cases, or an integer below len(cases).

    Args:
      which: [...] or a scalar; bool or integer.
      cases: [...] or scalars, of one dtype.
    Returns: [...], dtype of the cases.
    Raises: TypeError, ValueError if types differ or do not fit; all are named.
    """
    typed = next((x for x in cases if hasattr(x, "dtype")), None)
    dtype = aval_of(which).dtype
    one = len(cases) == 1 and dtypes.is_bool(dtype)
    if one or (dtypes.is_integer(dtype) and dtype != np.int32):
        which = convert_element_type(which, np.int32)
    return select_n_p.bind(which, *[match_dtypes(x, typed)[0] if typed is not None else x for x in cases])[0]


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Select `on_true` where `pred` is true, else `on_false`; `select_n` has the opposite order.

    Raises: TypeError, ValueError if types differ or do not fit; all are named.
    """
    try:
        return select_n(pred, on_false, on_true)
    except (TypeError, ValueError) as error:
        of_select_n = error
    _check_choice("select", aval_of(pred), aval_of(on_true), aval_of(on_false))
    raise of_select_n


def _check_choice(name: str, pred: ShapedArray, *cases: ShapedArray) -> None:
    """Raise an error for a wrong choice of two operands, given in the order of `where`."""
    joint_type(name, cases)
    if pred.dtype != kinds.BOOL:
        raise TypeError(f"{name}: pred must be bool, not {pred}, to choose between {list_types(cases)}.")
    kinds.joint_shape(name, (pred, *cases))


def _select_n_type(which: ShapedArray, *cases: ShapedArray) -> tuple[ShapedArray, ...]:
    if not cases:
        raise TypeError(f"select_n: there is no case for {which} to choose.")
    out = joint_type("select_n", cases)
    if which.dtype not in (kinds.BOOL, "int32"):
        raise TypeError(f"select_n: the choice must be bool or int32, not {which}, among {list_types(cases)}.")
    if which.dtype == kinds.BOOL and len(cases) != 2:
        raise TypeError(f"select_n: a bool, {which}, chooses between 2 cases, not {len(cases)}: {list_types(cases)}.")
    return (out.update(shape=kinds.joint_shape("select_n", (which, *cases))),)


select_n_p: Final = Primitive("select_n", _select_n_type, takes_keys=True)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Limit x to the range from lower to upper, elementwise: min(max(x, lower), upper).

    Args:
      min: [...] or a scalar, real; the lower bound.
      x: [...], dtype of the bounds.
      max: [...] or a scalar; the upper bound, which wins where the bounds are in the wrong order.
    Raises: TypeError, ValueError if types differ; all are named.
    """
    return clamp_p.bind(match_dtypes(min, x)[0], x, match_dtypes(x, max)[1])[0]


def _clamp_type(lower: ShapedArray, x: ShapedArray, upper: ShapedArray) -> tuple[ShapedArray, ...]:
    out = joint_type("clamp", (lower, x, upper), kinds.ORDERED)
    if out.shape != x.shape:
        raise ValueError(
            f"clamp: bounds must be scalars, or have the operand's shape: {list_types((lower, x, upper))}."
        )
    return (out,)


clamp_p: Final = Primitive("clamp", _clamp_type)


# ---- conversion ----------------------------------------------------------------------------------------------


copy_p: Final = _same("copy", kinds.ANY, takes_keys=True)
stop_gradient_p: Final = _same("stop_gradient", kinds.ANY, takes_keys=True)


def convert_element_type(operand: ArrayLike, new_dtype: Any, weak_type: bool = False) -> Array:
    """Convert elements to another dtype; complex to real drops the imaginary part, to bool tests != 0.

    Integers of an array that do not fit wrap. Keys stay keys.

    Raises: OverflowError for a Python integer that does not fit; TypeError from a complex number of Python to a
      real dtype, from keys to numbers, and from numbers to keys.
    """
    dtype = dtypes.canonical(new_dtype)
    if type(operand) is builtins.complex and dtypes.kind(dtype) in "iuf":
        raise TypeError(f"convert_element_type: the complex number {operand} does not fit {dtype}: take its real part.")
    if type(operand) is int and dtypes.is_integer(dtype):
        dtypes.check_fits(operand, dtype)
    elif type(operand) is int and dtypes.is_inexact(dtype) and not dtypes.holds_integers(_int(), operand, operand):
        operand = exact(float(operand), dtype)  # a float of many digits needs no integer dtype on its way
    if dtypes.is_key(dtype) and isinstance(operand, Array) and operand.dtype is dtype:
        return operand
    return convert_element_type_p.bind(operand, dtype=dtype, weak_type=bool(weak_type))[0]


def _int() -> Any:
    return dtypes.default_dtype("i")


def _convert_type(x: ShapedArray, *, dtype: Any, weak_type: bool) -> tuple[ShapedArray, ...]:
    return (x.update(dtype=dtype, weak_type=weak_type),)


convert_element_type_p: Final = Primitive("convert_element_type", _convert_type)


def copy(x: ArrayLike) -> Array:
    """Copy x to memory of its own."""
    return copy_p.bind(x)[0]


def stop_gradient(x: Any) -> Any:
    """Treat a pytree of arrays as constant in differentiation. Integers and booleans are constant anyway."""
    return pytree.tree_map(_stopped, x)


def _stopped(x: ArrayLike) -> Any:
    return stop_gradient_p.bind(x)[0] if dtypes.is_inexact(aval_of(x).dtype) else x
