"""Elementwise operations. Operands have one shape, or rank 0 and are broadcast; nothing else broadcasts here.

Each row names what it computes; types come in a few forms: `_same` (the result is like the operands),
`_predicate` (the result is boolean) and those of the conversions at the end.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.operands import matched
from tapeless.tracer.types import ShapedArray

_NUMERIC, _INEXACT, _REAL, _FLOAT, _COMPLEX, _INTEGER, _BITS, _ANY = "nixrcjba"
_KINDS: dict[str, tuple[str, Callable[[np.dtype[Any]], bool]]] = {
    "n": ("a number", lambda d: not dtypes.is_bool(d)),
    "i": ("floating point or complex", dtypes.is_inexact),
    "x": ("real", lambda d: not dtypes.is_complex(d) and not dtypes.is_bool(d)),
    "r": ("floating point", dtypes.is_float),
    "c": ("complex", dtypes.is_complex),
    "j": ("an integer", dtypes.is_integer),
    "b": ("boolean or an integer", lambda d: dtypes.is_bool(d) or dtypes.is_integer(d)),
    "a": ("a number or boolean", lambda d: True),
}


# ---- types ---------------------------------------------------------------------------------------------------


def joint_type(name: str, avals: tuple[ShapedArray, ...], kinds: str = _ANY) -> ShapedArray:
    """The type that operands of an elementwise operation share: one dtype, one shape up to rank 0.

    Raises: TypeError if dtypes differ or are of no use to `name`, ValueError if shapes differ; all are named.
    """
    dtype, shape, weak = avals[0].dtype, avals[0].shape, avals[0].weak_type
    for aval in avals[1:]:
        if aval.dtype != dtype:
            raise TypeError(f"{name}: operands differ in dtype: {_list(avals)}. Convert with astype.")
        if aval.shape != shape:
            if shape and aval.shape:
                raise ValueError(f"{name}: operands differ in shape: {_list(avals)}.")
            shape = shape or aval.shape
        weak = weak and aval.weak_type
    what, allowed = _KINDS[kinds]
    if not allowed(dtype):
        raise TypeError(f"{name}: the operand must be {what}, not {_list(avals)}.")
    return ShapedArray(shape, dtype, weak)


def _list(avals: tuple[ShapedArray, ...]) -> str:
    return " and ".join(map(str, avals))


def _same(name: str, kinds: str) -> Primitive:
    return Primitive(name, lambda *avals, **params: (joint_type(name, avals, kinds),))


def _predicate(name: str, kinds: str) -> Primitive:
    return Primitive(name, lambda *avals: (joint_type(name, avals, kinds).update(dtype=_BOOL, weak_type=False),))


_BOOL = np.dtype(bool)


def _real_part(name: str, kinds: str) -> Primitive:
    """Complex to real; real operands keep their type."""

    def typing_rule(x: ShapedArray) -> tuple[ShapedArray, ...]:
        aval = joint_type(name, (x,), kinds)
        return (aval.update(dtype=dtypes.real_part_dtype(aval.dtype)),)

    return Primitive(name, typing_rule)


# ---- one operand ---------------------------------------------------------------------------------------------


neg_p = _same("neg", _NUMERIC)
sign_p = _same("sign", _NUMERIC)
floor_p = _same("floor", _FLOAT)
ceil_p = _same("ceil", _FLOAT)
round_p = _same("round", _FLOAT)
exp_p = _same("exp", _INEXACT)
exp2_p = _same("exp2", _INEXACT)
expm1_p = _same("expm1", _INEXACT)
log_p = _same("log", _INEXACT)
log1p_p = _same("log1p", _INEXACT)
sin_p = _same("sin", _INEXACT)
cos_p = _same("cos", _INEXACT)
tan_p = _same("tan", _INEXACT)
asin_p = _same("asin", _INEXACT)
acos_p = _same("acos", _INEXACT)
atan_p = _same("atan", _INEXACT)
sinh_p = _same("sinh", _INEXACT)
cosh_p = _same("cosh", _INEXACT)
tanh_p = _same("tanh", _INEXACT)
asinh_p = _same("asinh", _INEXACT)
acosh_p = _same("acosh", _INEXACT)
atanh_p = _same("atanh", _INEXACT)
logistic_p = _same("logistic", _INEXACT)
sqrt_p = _same("sqrt", _INEXACT)
rsqrt_p = _same("rsqrt", _INEXACT)
cbrt_p = _same("cbrt", _FLOAT)
square_p = _same("square", _NUMERIC)
integer_pow_p = _same("integer_pow", _NUMERIC)
not_p = _same("not", _BITS)
population_count_p = _same("population_count", _INTEGER)
clz_p = _same("clz", _INTEGER)
is_finite_p = _predicate("is_finite", _INEXACT)
abs_p = _real_part("abs", _NUMERIC)
real_p = _real_part("real", _COMPLEX)
imag_p = _real_part("imag", _COMPLEX)
conj_p = _same("conj", _COMPLEX)


def neg(x: ArrayLike) -> Array:
    """-x, elementwise; numbers."""
    return neg_p.bind(x)[0]


def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1 by the sign of x, elementwise; x/|x| for complex x, nan for nan."""
    return sign_p.bind(x)[0]


def floor(x: ArrayLike) -> Array:
    """Largest integer not above x, elementwise; floating point."""
    return floor_p.bind(x)[0]


def sin(x: ArrayLike) -> Array:
    """Sine, elementwise; floating point or complex, radians."""
    return sin_p.bind(x)[0]


def cos(x: ArrayLike) -> Array:
    """Cosine, elementwise; floating point or complex, radians."""
    return cos_p.bind(x)[0]


def exp(x: ArrayLike) -> Array:
    """e to the power x, elementwise; floating point or complex."""
    return exp_p.bind(x)[0]


def log(x: ArrayLike) -> Array:
    """Natural logarithm, elementwise; floating point or complex."""
    return log_p.bind(x)[0]


def tanh(x: ArrayLike) -> Array:
    """Hyperbolic tangent, elementwise; floating point or complex."""
    return tanh_p.bind(x)[0]


def sqrt(x: ArrayLike) -> Array:
    """Square root, elementwise; floating point or complex."""
    return sqrt_p.bind(x)[0]


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to the integer power y, elementwise; numbers. Raises: TypeError if y is negative and x an integer."""
    return integer_pow_p.bind(x, y=int(y))[0]


# ---- two operands --------------------------------------------------------------------------------------------


add_p = _same("add", _NUMERIC)
sub_p = _same("sub", _NUMERIC)
mul_p = _same("mul", _NUMERIC)
div_p = _same("div", _NUMERIC)
max_p = _same("max", _ANY)
min_p = _same("min", _ANY)
eq_p = _predicate("eq", _ANY)
lt_p = _predicate("lt", _ANY)


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y, elementwise; numbers of one dtype."""
    return add_p.bind(*matched(x, y))[0]


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """x - y, elementwise; numbers of one dtype."""
    return sub_p.bind(*matched(x, y))[0]


def mul(x: ArrayLike, y: ArrayLike) -> Array:
    """x y, elementwise; numbers of one dtype."""
    return mul_p.bind(*matched(x, y))[0]


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """x / y, elementwise; integers are divided towards zero."""
    return div_p.bind(*matched(x, y))[0]


# ---- choice --------------------------------------------------------------------------------------------------


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """For every element, the case that `which` says: boolean for two cases, else an integer below len(cases).

    Args:
      which: [...] or a scalar; bool or int32.
      cases: [...] each, of one dtype.
    Returns: [...].
    Raises: TypeError, ValueError if types differ or do not fit; all are named.
    """
    return select_n_p.bind(which, *cases)[0]


def _select_n_type(which: ShapedArray, *cases: ShapedArray) -> tuple[ShapedArray, ...]:
    out = joint_type("select_n", cases)
    if which.dtype != _BOOL and (which.dtype != np.int32 or len(cases) < 2):
        raise TypeError(f"select_n: the choice must be bool, or int32 among several cases, not {which}.")
    if which.dtype == _BOOL and len(cases) != 2:
        raise TypeError(f"select_n: a bool chooses between 2 cases, not {len(cases)}.")
    if which.shape and which.shape != out.shape:
        raise ValueError(f"select_n: the choice {which} and the cases {out} differ in shape.")
    return (out,)


select_n_p = Primitive("select_n", _select_n_type)


# ---- conversions ---------------------------------------------------------------------------------------------


def convert_element_type(x: ArrayLike, dtype: Any, weak_type: bool = False) -> Array:
    """x with elements of another dtype, elementwise; complex to real drops the imaginary part, to bool tests != 0."""
    return convert_element_type_p.bind(x, dtype=dtypes.canonical(dtype), weak_type=bool(weak_type))[0]


def _convert_type(x: ShapedArray, *, dtype: Any, weak_type: bool) -> tuple[ShapedArray, ...]:
    return (x.update(dtype=dtype, weak_type=weak_type),)


convert_element_type_p = Primitive("convert_element_type", _convert_type)
