"""Arithmetic, elementwise: NumPy's ufuncs on numbers, with powers, rounding, extremes and complex parts."""

import builtins
import operator
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import (
    Operand,
    apply,
    apply2,
    apply2_inexact,
    apply_inexact,
    array_operand,
    as_array,
    cast,
    check_no_out,
    common_shape,
    inexact,
    number_operand,
    operand,
    promote_operands,
    promoted_inexact,
    require_ordered,
)
from tapeless.tracer.primitives import bits
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.shape import broadcast_in_dim
from tapeless.tracer.types import ShapedArray, aval_of

# ---- the four operations -------------------------------------------------------------------------------------


def add(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Add x1 and x2, elementwise; logical or for booleans."""
    return apply2("add", lax.add_p, x1, x2, bits.or_p)


def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Subtract x2 from x1, elementwise. Raises: TypeError for booleans."""
    return apply2("subtract", lax.sub_p, x1, x2)


def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply x1 and x2, elementwise; logical and for booleans."""
    return apply2("multiply", lax.mul_p, x1, x2, bits.and_p)


def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divide x1 by x2, elementwise; integers give floating point."""
    return apply2_inexact("divide", lax.div_p, x1, x2)


divide = true_divide


def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divide x1 by x2 and round down, elementwise, in the operands' dtype; integers divided by 0 give 0."""
    x, y = _numbers("floor_divide", x1, x2)
    return _floor_divide(x, y) if dtypes.is_integer(x.dtype) else _float_divmod(x, y)[0]


def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the remainder x1 - x2 floor(x1 / x2), with the sign of x2, elementwise; 0 for integers divided by 0."""
    return _remainder(*_numbers("remainder", x1, x2))


mod = remainder


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """Compute floor_divide and remainder, elementwise."""
    x, y = _numbers("divmod", x1, x2)
    return (_floor_divide(x, y), _remainder(x, y)) if dtypes.is_integer(x.dtype) else _float_divmod(x, y)


def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the remainder of x1 / x2 with the sign of x1, elementwise; 0 for integers divided by 0."""
    x, y = _numbers("fmod", x1, x2)
    return _integer_rem(x, y) if dtypes.is_integer(x.dtype) else lax.rem(x, y)


def _numbers(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Operand, Operand]:
    """Promote operands of a remainder; booleans become the default integer, complex numbers are refused."""
    x, y = promote_operands(name, x, y)
    if dtypes.is_complex(x.dtype):
        given = f"the operands are {aval_of(x)} and {aval_of(y)}"
        raise TypeError(f"{find_called(name)}: complex numbers have no remainder; {given}.")
    if dtypes.is_bool(x.dtype):
        integer = dtypes.default_dtype("i")
        return cast(x, integer), cast(y, integer)
    return x, y


@core.compound
def _floor_divide(x: Any, y: Any) -> Array:
    """Divide rounding down; 0 where y is 0, as in NumPy, where XLA gives -1."""
    return _zero_by_zero(y, _rounded_down(x, y))


def _zero_by_zero(y: Any, found: Array) -> Array:
    """Replace what integers divided by 0 give; the divisor itself stays, for `checkify` to see."""
    return found if not isinstance(y, Array) and np.all(y) else select(lax.eq(y, 0), 0, found)


def _rounded_down(x: Any, y: Any) -> Array:
    quotient = lax.div(x, y)
    if dtypes.kind(x.dtype) == "u":
        return quotient
    opposite = lax.ne(lax.sign(x), lax.sign(y))
    uneven = lax.ne(lax.rem(x, y), 0)
    return select(bits.bitwise_and(opposite, uneven), lax.sub(quotient, 1), quotient)


@core.compound
def _integer_rem(x: Any, y: Any) -> Array:
    """Compute the remainder of integers; 0 where y is 0, where XLA gives x."""
    return _zero_by_zero(y, lax.rem(x, y))


@core.compound
def _remainder(x: Any, y: Any) -> Array:
    r = _integer_rem(x, y) if dtypes.is_integer(x.dtype) else lax.rem(x, y)
    if dtypes.kind(x.dtype) == "u":
        return r
    opposite = lax.ne(lax.lt(r, 0), lax.lt(y, 0))
    found = select(bits.bitwise_and(opposite, lax.ne(r, 0)), lax.add(r, y), r)
    return _zero_as_divisor(found, y) if dtypes.is_float(x.dtype) else found


@core.compound
def _float_divmod(x: Any, y: Any) -> tuple[Array, Array]:
    """Compute the floor quotient and the remainder from the exact `rem`, which has the sign of x, then correct both."""
    r = lax.rem(x, y)
    quotient = lax.div(lax.sub(x, r), y)
    below = bits.bitwise_and(lax.ne(lax.lt(r, 0), lax.lt(y, 0)), lax.ne(r, 0))
    quotient = lax.round(select(below, lax.sub(quotient, 1), quotient))
    exact = lax.div(x, y)
    quotient = select(lax.eq(quotient, 0), lax.mul(lax.sign(exact), 0.0), quotient)
    return select(lax.eq(y, 0), exact, quotient), _zero_as_divisor(select(below, lax.add(r, y), r), y)


def _zero_as_divisor(r: Any, y: Any) -> Array:
    """Give a remainder of 0 the sign of the divisor, as in NumPy and Python; derivatives stay as they are."""
    like = aval_of(r).update(shape=())  # weak, if the operands are
    zero = select(lax.lt(y, 0), constant(-0.0, like), constant(0.0, like))
    moved = lax.sub(lax.stop_gradient(r), r)  # a zero, and its derivative; -0.0 minus 0.0 is -0.0
    return select(lax.eq(r, 0), lax.sub(broadcast_scalar(zero, r.shape), moved), r)


def select(where: Any, x: Any, y: Any) -> Array:
    """Select x where `where` is true, else y; rank 0 broadcasts as in primitives, numbers take the other's dtype."""
    like = aval_of(x) if not isinstance(x, (int, float)) else aval_of(y)
    x, y = (cast(v, like.dtype, like.weak_type) for v in (x, y))
    if where.shape and not x.shape and not y.shape:
        x = broadcast_scalar(x, where.shape)
    return lax.select_n(where, y, x)


def _element(x: Any, y: Any) -> ShapedArray:
    """Return the type of an element of the result of two promoted operands: weak if both are."""
    return ShapedArray((), x.dtype, aval_of(x).weak_type and aval_of(y).weak_type)


def _zeros_like(x: Any) -> Array:
    return as_array(broadcast_scalar(constant(0, _element(x, x)), x.shape))


def broadcast_scalar(x: Any, shape: tuple[int, ...]) -> Array:
    """Broadcast x to `shape`; x has this shape, or rank 0."""
    return x if x.shape == shape else broadcast_in_dim(x, shape, ())


# ---- signs and parts -----------------------------------------------------------------------------------------


def negative(x: ArrayLike, /) -> Array:
    """Negate x, elementwise. Raises: TypeError for booleans."""
    x = operand("negative", x)
    if x.dtype.kind == "b":
        raise TypeError(
            f"negative: booleans have no negative: {aval_of(x)}. Use tnp.logical_not, or convert with astype."
        )
    return lax.neg_p.bind(x)[0]


def positive(x: ArrayLike, /) -> Array:
    """Return x as an array."""
    return number_operand("positive", x)


def absolute(x: ArrayLike, /) -> Array:
    """Compute |x|, elementwise; real for complex x."""
    x = operand("absolute", x)
    return as_array(x) if dtypes.kind(x.dtype) in "bu" else lax.abs_p.bind(x)[0]


abs = absolute


def fabs(x: ArrayLike, /) -> Array:
    """Compute |x|, elementwise, as floating point."""
    return absolute(require_ordered(inexact("fabs", x), "fabs"))


@one_program
def sign(x: ArrayLike, /) -> Array:
    """Compute -1, 0 or 1 by the sign of x, elementwise; x/|x| for complex x. For -0.0 it is 0.0, as in NumPy."""
    found = apply("sign", lax.sign_p, x)
    return _positive_zero(found) if dtypes.is_inexact(found.dtype) else found


@core.compound
def _positive_zero(x: Any) -> Array:
    return select(lax.eq(x, 0), 0.0, x)


def real(val: ArrayLike, /) -> Array:
    """Return the real part, elementwise."""
    val = number_operand("real", val)
    return lax.real_p.bind(val)[0] if dtypes.is_complex(val.dtype) else val


def imag(val: ArrayLike, /) -> Array:
    """Return the imaginary part, elementwise; zero for real numbers."""
    val = number_operand("imag", val)
    return lax.imag_p.bind(val)[0] if dtypes.is_complex(val.dtype) else _zeros_like(val)


def conjugate(x: ArrayLike, /) -> Array:
    """Compute the complex conjugate, elementwise."""
    x = number_operand("conjugate", x)
    return lax.conj_p.bind(x)[0] if dtypes.is_complex(x.dtype) else x


conj = conjugate


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Compute the argument of complex numbers in radians, or degrees, elementwise."""
    z = _default_float("angle", z)
    result = lax.atan2(lax.imag(z), lax.real(z)) if dtypes.is_complex(z.dtype) else _angle_of_real(z)
    return lax.mul(result, 180 / np.pi) if deg else result


@core.compound
def _angle_of_real(x: Any) -> Array:
    """Return pi for negative numbers, -0.0 included, whose reciprocal is negative."""
    below = bits.bitwise_or(lax.lt(x, 0), bits.bitwise_and(lax.eq(x, 0), lax.lt(lax.div(1.0, x), 0)))
    return select(lax.ne(x, x), x, select(below, np.pi, _zeros_like(x)))


# ---- powers --------------------------------------------------------------------------------------------------


def square(x: ArrayLike, /) -> Array:
    """Compute x², elementwise; an integer for booleans."""
    x = array_operand("square", x)
    return cast(x, dtypes.default_dtype("i")) if x.dtype.kind == "b" else lax.square_p.bind(x)[0]


def sqrt(x: ArrayLike, /) -> Array:
    """Compute the square root, elementwise; nan for negative real numbers."""
    return apply_inexact("sqrt", lax.sqrt_p, x)


def cbrt(x: ArrayLike, /) -> Array:
    """Compute the cube root, elementwise; real."""
    return apply_inexact("cbrt", lax.cbrt_p, x)


def reciprocal(x: ArrayLike, /) -> Array:
    """Compute 1 / x, elementwise."""
    return lax.div(1.0, inexact("reciprocal", x))


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute x1 to the power x2, elementwise.

    A Python integer x2 multiplies (`x ** 2` is `x * x`, of any dtype); so do integer arrays, where a negative x2 gives
    no meaningful number unless x1 is 1 or -1.
    Raises: TypeError for integers to the power of a negative Python integer.
    """
    if isinstance(x2, (int, np.integer)) and not isinstance(x2, bool):
        x = operand("power", x1)
        aval = aval_of(x)
        x = cast(x, *dtypes.result_type(aval, x2)) if aval.weak_type or aval.dtype.kind == "b" else x
        return lax.integer_pow(x, int(x2))
    if type(x2) is float and x2 == 0.5:
        return sqrt(x1)
    x, y = promote_operands("power", x1, x2)
    if dtypes.is_inexact(x.dtype):
        return lax.pow_p.bind(x, y)[0]
    return _integer_power(*_numbers("power", x, y))


pow = power


@core.compound
def _integer_power(x: Any, y: Any) -> Array:
    """Compute an integer power by squaring, over all bits of y, since arithmetic is modulo a power of two."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    result, base = broadcast_scalar(constant(1, _element(x, y)), shape), broadcast_scalar(x, shape)
    for _ in range(8 * x.dtype.itemsize):
        odd = lax.ne(bits.bitwise_and(y, 1), 0)
        result = select(odd, lax.mul(result, base), result)
        base, y = lax.square(base), bits.shift_right_logical(y, 1)
    return result


def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute x1 to the power x2, elementwise, as floating point or complex."""
    return apply2_inexact("float_power", lax.pow_p, x1, x2)


def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute sqrt(x1² + x2²), elementwise, without overflow; infinite if either is, even if the other is nan.

    Raises: TypeError for complex numbers.
    """
    x, y = promoted_inexact("hypot", x1, x2)
    if dtypes.is_complex(x.dtype):
        raise TypeError(
            f"hypot: operands must be real, not {aval_of(x1)} and {aval_of(x2)}: take tnp.abs of complex ones."
        )
    return _hypot(x, y)


@core.compound
def _hypot(x: Any, y: Any) -> Array:
    """Compute sqrt(x*x + y*y), scaled by the larger operand: a constant, so that derivatives follow the formula."""
    x, y = _beside_infinity(x, y), _beside_infinity(y, x)
    high = lax.max(lax.abs(x), lax.abs(y))
    infinite = lax.eq(high, np.inf)
    reduced = select(lax.gt(high, 1), lax.mul(high, 0.125), high)  # the inverse of the greatest numbers is subnormal
    scale = lax.stop_gradient(select(bits.bitwise_or(infinite, lax.eq(high, 0)), 1, reduced))
    x, y = lax.div(select(infinite, 1, x), scale), lax.div(select(infinite, 1, y), scale)
    return select(infinite, high, lax.mul(scale, lax.root_of_squares(lax.add(lax.square(x), lax.square(y)))))


def _beside_infinity(x: Any, y: Any) -> Any:
    """Return x, or 0 where x is nan and y infinite: the result is infinite there, whatever x is."""
    return select(bits.bitwise_and(lax.ne(x, x), lax.eq(lax.abs(y), np.inf)), 0, x)


# ---- rounding ------------------------------------------------------------------------------------------------


def floor(x: ArrayLike, /) -> Array:
    """Round down to an integer, elementwise, in the dtype of x."""
    return _rounded("floor", lax.floor, x)


def ceil(x: ArrayLike, /) -> Array:
    """Round up to an integer, elementwise, in the dtype of x."""
    return _rounded("ceil", lax.ceil, x)


def trunc(x: ArrayLike) -> Array:
    """Round towards zero to an integer, elementwise, in the dtype of x."""
    return _rounded("trunc", _trunc, x)


@core.compound
def _trunc(x: Any) -> Array:
    return select(lax.lt(x, 0), lax.ceil(x), lax.floor(x))


fix = trunc


def rint(x: ArrayLike, /) -> Array:
    """Round to the nearest integer, ties to even, elementwise; integers become the default float."""
    return round(_default_float("rint", x))


def _default_float(name: str, x: ArrayLike) -> Array:
    """Convert x to the default float unless x is floating point or complex, as JAX takes integers in some functions."""
    x = array_operand(name, x)
    return x if dtypes.is_inexact(x.dtype) else cast(x, dtypes.float_of(x.dtype), x.weak_type)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round to `decimals`, ties to the even digit, elementwise; negative `decimals` round left of the point."""
    check_no_out("round", out)
    a, decimals = number_operand("round", a), operator.index(decimals)
    if dtypes.is_complex(a.dtype):
        return lax.complex(round(lax.real(a), decimals), round(lax.imag(a), decimals))
    if dtypes.is_integer(a.dtype) and decimals < 0:
        return _round_integers(a, decimals=decimals)
    return _round(a, decimals=decimals) if dtypes.is_float(a.dtype) else a


around = round


@core.compound
def _round(x: Any, *, decimals: int) -> Array:
    if decimals == 0:
        return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    if 10 ** builtins.abs(decimals) > float(dtypes.finfo(x.dtype).max):
        return x if decimals > 0 else _round_beyond(x, unit=10**-decimals)
    scale = 10.0 ** builtins.abs(decimals)
    there, back = (lax.mul, lax.div) if decimals > 0 else (lax.div, lax.mul)
    rounded = back(lax.round(there(x, scale), lax.RoundingMethod.TO_NEAREST_EVEN), scale)
    return select(lax.is_finite(rounded), rounded, x)


def _round_beyond(x: Any, *, unit: int) -> Array:
    """Round to multiples of a number above all of the dtype: 0, or infinite above half of it, as in float16."""
    rounded = lax.mul(x, 0.0)
    if unit // 2 < float(dtypes.finfo(x.dtype).max):
        rounded = select(lax.gt(lax.abs(x), unit / 2), lax.mul(x, np.inf), rounded)
    return select(lax.is_finite(x), rounded, x)


@core.compound
def _round_integers(x: Any, *, decimals: int) -> Array:
    """Round integers to multiples of 10**-decimals, ties to even; 0 if that exceeds the dtype, whose overflow wraps."""
    if 10**-decimals > dtypes.iinfo(x.dtype).max:
        return _zeros_like(x)
    scale = np.asarray(10**-decimals, x.dtype)
    whole, rest = _rounded_down(x, scale), _remainder(x, scale)
    other = lax.sub(scale, rest)
    odd = lax.ne(bits.bitwise_and(whole, 1), 0)
    up = bits.bitwise_or(lax.gt(rest, other), bits.bitwise_and(lax.eq(rest, other), odd))
    return lax.mul(lax.add(whole, lax.convert_element_type(up, x.dtype)), scale)


def _rounded(name: str, function: Any, x: ArrayLike) -> Array:
    x = number_operand(name, x)
    return x if dtypes.kind(x.dtype) in "biu" else function(x)


# ---- extremes ------------------------------------------------------------------------------------------------


def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the greater of both, elementwise; nan if either is."""
    return apply2("maximum", lax.max_p, x1, x2)


def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the lesser of both, elementwise; nan if either is."""
    return apply2("minimum", lax.min_p, x1, x2)


def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the greater of both, elementwise; if one is nan, the other."""
    return _ignoring_nan(*promote_operands("fmax", x1, x2), primitive=lax.max_p)


def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the lesser of both, elementwise; if one is nan, the other."""
    return _ignoring_nan(*promote_operands("fmin", x1, x2), primitive=lax.min_p)


@core.compound
def _ignoring_nan(x: Any, y: Any, *, primitive: Any) -> Array:
    found = primitive.bind(x, y)[0]
    if not dtypes.is_inexact(x.dtype):
        return found
    x, y = broadcast_scalar(x, found.shape), broadcast_scalar(y, found.shape)
    return select(lax.ne(x, x), y, select(lax.ne(y, y), x, found))


@one_program
def clip(
    arr: ArrayLike,
    /,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    *,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
) -> Array:
    """Limit elements to the range from `min` to `max`.

    Raises: TypeError for complex numbers.
    """
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    arr = number_operand("clip", arr)
    if dtypes.is_complex(arr.dtype):
        name = find_called("clip")
        raise TypeError(f"{name}: complex numbers are not ordered: {arr.aval}. Clip the real and imaginary parts.")
    common_shape("clip", arr.shape, *[x.shape for x in (low, high) if isinstance(x, (Array, np.ndarray))])
    if low is not None:
        arr = maximum(low, arr)
    return arr if high is None else minimum(high, arr)


# ---- integers ------------------------------------------------------------------------------------------------


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the greatest common divisor of integers, elementwise; not negative, except where |x| overflows."""
    return _gcd(*_integers("gcd", x1, x2))


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the least common multiple of integers, elementwise; not negative."""
    x, y = _integers("lcm", x1, x2)
    return _lcm(x, y)


def _integers(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Operand, Operand]:
    x, y = promote_operands(name, x, y)
    if not dtypes.is_integer(x.dtype):
        raise TypeError(f"{name}: operands must be integers, not {aval_of(x)} and {aval_of(y)}.")
    return x, y


@core.compound
def _gcd(x: Any, y: Any) -> Array:
    """Run Euclid's algorithm, at most 1.44 steps a bit: the longest run is on consecutive Fibonacci numbers.

    Without signs: the absolute value of the least integer is none of its dtype.
    """
    shape, dtype, weak = np.broadcast_shapes(x.shape, y.shape), x.dtype, _element(x, y).weak_type
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    x, y = (lax.convert_element_type(broadcast_scalar(absolute(v), shape), unsigned) for v in (x, y))
    for _ in range(int(1.45 * 8 * dtype.itemsize) + 2):
        over = lax.eq(y, 0)
        x, y = select(over, x, y), select(over, 0, lax.rem(x, select(over, 1, y)))
    return lax.convert_element_type(x, dtype, weak)


@core.compound
def _lcm(x: Any, y: Any) -> Array:
    divisor = _gcd(x, y)
    none = lax.eq(divisor, 0)
    product = lax.mul(absolute(x), lax.div(absolute(y), select(none, 1, divisor)))
    return select(none, 0, product)
