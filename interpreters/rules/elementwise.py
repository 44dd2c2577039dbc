"""Rules of elementwise operations. A row per operand: `t` is its tangent, the letters are the operands.

Complex operations are holomorphic, or linear over the reals, or sums of such; cotangents pair with tangents as
Re(ct t), without conjugation, so that a holomorphic function's rule is that of the real one.
At a kink: half to each side of a tie of max and min, nothing at a bound of clamp, 0 for |x| at 0, as for max(x, -x).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import Avals, IndexRow, Params, elements, pointwise, rows, same, terms
from tapeless.interpreters.transpose import Linear
from tapeless.interpreters.zero import Zero, zero_of
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.bits import bitwise_and, bitwise_or
from tapeless.tracer.primitives.elementwise import (
    add,
    complex,
    conj,
    convert_element_type,
    cos,
    cosh,
    div,
    eq,
    gt,
    imag,
    integer_pow,
    log,
    lt,
    mul,
    neg,
    real,
    rsqrt,
    select_n,
    sign,
    sin,
    sinh,
    square,
    sub,
)
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import Lookup, Term, Use
from tapeless.tracer.types import aval_of


def _fit(ct: Any, x: Any) -> Any:
    """Return a cotangent in the shape of the operand `x`: sum it if `x` was broadcast from rank 0."""
    aval = aval_of(ct)
    return ct if aval.shape == x.aval.shape else reduce_sum(ct, range(aval.ndim))


def _spread(t: Any, *operands: Any) -> Any:
    """Broadcast a rank-0 tangent to the shape of the result."""
    shape = max((aval_of(x).shape for x in operands), key=len)
    return broadcast_in_dim(t, shape, ()) if aval_of(t).shape != shape else t


def _only_where(mask: Any, t: Any) -> Any:
    """Select t where the mask holds, else 0."""
    return select_n(mask, constant(0, aval_of(t)), t)


def _times(ct: Any, y: Any) -> Any:
    """Multiply ct by y; return y if ct is the constant 1, from which every gradient starts."""
    return y if isinstance(ct, np.ndarray) and ct.ndim == 0 and ct == 1 else mul(ct, y)


def _is_complex(x: Any) -> bool:
    return dtypes.is_complex(aval_of(x).dtype)


# ---- arithmetic ----------------------------------------------------------------------------------------------

jvp.linear(e.neg_p)
transpose.unary(e.neg_p, lambda ct, x: neg(ct))

jvp.partials(e.add_p, lambda t, x, y: _spread(t, x, y), lambda t, x, y: _spread(t, x, y))
jvp.structurally_linear[e.add_p] = jvp.All.JOINTLY
transpose.joint(e.add_p, lambda ct, x, y: _fit(ct, x), lambda ct, x, y: _fit(ct, y))

jvp.partials(e.sub_p, lambda t, x, y: _spread(t, x, y), lambda t, x, y: neg(_spread(t, x, y)))
jvp.structurally_linear[e.sub_p] = jvp.All.JOINTLY
transpose.joint(e.sub_p, lambda ct, x, y: _fit(ct, x), lambda ct, x, y: neg(_fit(ct, y)))

jvp.partials(e.difference_p, lambda t, x, y: _spread(t, x, y), lambda t, x, y: neg(_spread(t, x, y)))

jvp.multilinear(e.mul_p)
transpose.multilinear(e.mul_p, lambda ct, x, y: _fit(_times(ct, y), x), lambda ct, x, y: _fit(_times(ct, x), y))


def _div_jvp(primals: list[Any], tangents: list[Any]) -> tuple[Any, Any]:
    """Push tangents as (ẋ - q ẏ) / y, two operations less than ẋ / y - ẏ q / y; by one coefficient if x is constant."""
    (x, y), (t, s) = primals, tangents
    q = div(x, y)
    if type(s) is Zero:
        return (q,), (zero_of(q) if type(t) is Zero else div(t, y),)
    if type(t) is Zero:
        return (q,), (mul(s, neg(div(q, y))),)
    return (q,), (div(sub(t, mul(q, s)), y),)


jvp.rules[e.div_p] = _div_jvp
jvp.structurally_linear[e.div_p] = (0,)
transpose.multilinear(e.div_p, lambda ct, x, y: _fit(div(ct, y), x), transpose.no_transpose)

jvp.partials_of_result(
    e.rem_p,
    lambda t, r, x, y: _spread(t, x, y),
    lambda t, r, x, y: mul(t, e.round(div(sub(r, x), y))),  # minus the quotient, an integer up to rounding
)


def _extreme(primitive: Primitive, wins: Callable[[Any, Any], Any]) -> None:
    """Register the rule of max or min: 1 for the operand that wins, 1/2 for each in a tie, 0 where there is nan.

    Operands are compared with one another, not with the result: an operand that is recomputed may be rounded in another
    way than when the result was computed, and no longer equal it.
    """

    def share(x: Any, other: Any) -> Any:
        aval = max(aval_of(x), aval_of(other), key=lambda aval: len(aval.shape))
        of_tie = select_n(eq(x, other), constant(0, aval), constant(0.5, aval))
        return select_n(_wins(wins, x, other), of_tie, constant(1, aval))

    jvp.partials(primitive, lambda t, x, y: mul(t, share(x, y)), lambda t, x, y: mul(t, share(y, x)))


def _wins(wins: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Tell where x wins over y; complex numbers are compared by their real parts, then by their imaginary parts."""
    if not dtypes.is_complex(aval_of(x).dtype):
        return wins(x, y)
    of_tie = bitwise_and(eq(real(x), real(y)), wins(imag(x), imag(y)))
    return bitwise_or(wins(real(x), real(y)), of_tie)


_extreme(e.max_p, gt)
_extreme(e.min_p, lt)


def _sign_of_complex(t: Any, s: Any, z: Any) -> Any:
    """Differentiate s = z / |z|: ds = i s Im(conj(s) dz) / |z|, and 0 at z = 0, where s = 0."""
    modulus = e.abs(z)
    angle = div(imag(mul(t, conj(s))), select_n(eq(modulus, 0.0), modulus, constant(1, aval_of(modulus))))
    return mul(convert_element_type(angle, aval_of(s).dtype), mul(1j, s))


jvp.partials_of_result(e.sign_p, lambda t, s, x: _sign_of_complex(t, s, x) if _is_complex(x) else Zero(aval_of(x)))
jvp.partials(e.abs_p, lambda t, x: real(mul(t, conj(sign(x)))) if _is_complex(x) else mul(t, sign(x)))

# ---- powers --------------------------------------------------------------------------------------------------

jvp.partials_of_result(e.sqrt_p, lambda t, y, x: mul(t, div(0.5, y)))
jvp.partials_of_result(e.root_of_squares_p, lambda t, y, x: mul(t, _only_where(e.ne(y, 0.0), div(0.5, y))))
jvp.partials_of_result(e.rsqrt_p, lambda t, y, x: mul(t, div(mul(-0.5, y), x)))
jvp.partials_of_result(e.cbrt_p, lambda t, y, x: mul(t, div(1.0 / 3.0, square(y))))
jvp.partials(e.square_p, lambda t, x: mul(t, mul(2.0, x)))


def _integer_pow(t: Any, power: Any, x: Any, *, y: int) -> Any:
    """Compute t y x^(y-1); for negative y the power is x^y / x."""
    if y == 0:
        return Zero(aval_of(x))
    if y == 1:
        return t
    lower = div(power, x) if y < 0 else x if y == 2 else integer_pow(x, y - 1)
    return mul(t, mul(float(y), lower))


def _pow_base(t: Any, x: Any, y: Any) -> Any:
    """Compute t y x^(y-1); where y = 0 and x is 0 or nan it is 0, with 1 in the place of x.

    For y = 0 and any other x the power stays, as the derivative of y x^(y-1) by y is not 0 there.
    """
    zero = constant(0, aval_of(y))
    usual = bitwise_and(eq(x, x), e.ne(x, constant(0, aval_of(x))))
    x = select_n(bitwise_or(e.ne(y, zero), usual), constant(1, aval_of(x)), x)
    if dtypes.is_integer(aval_of(y).dtype):
        factor, below = convert_element_type(y, aval_of(x).dtype), e.pow(x, _one_less(y))
    else:
        factor, below = y, e.pow(x, sub(y, 1.0))
    return mul(t, mul(factor, below))


def _one_less(y: Any) -> Any:
    """Subtract 1 from integers, in a dtype that holds the result; 64-bit ones are clamped so that int64 holds it.

    The clamped exponents differ from the true ones by too little for a float to tell.
    """
    dtype = aval_of(y).dtype
    if dtypes.bits_of(dtype) < 64:
        y = convert_element_type(y, np.int32 if dtypes.bits_of(dtype) < 32 else np.int64)
    elif dtypes.is_signed(dtype):
        y = e.max(y, constant(np.iinfo(np.int64).min + 1, aval_of(y)))
    else:
        y = convert_element_type(e.min(y, constant(np.iinfo(np.int64).max, aval_of(y))), np.int64)
    return sub(y, constant(1, aval_of(y)))


def _pow_exponent(t: Any, power: Any, x: Any, y: Any) -> Any:
    """Compute t x^y log x, with 0 for log x where x = 0."""
    if dtypes.is_integer(aval_of(y).dtype):
        return zero_of(y)
    nonzero = select_n(eq(x, 0.0), x, constant(1, aval_of(x)))
    return mul(t, mul(power, log(nonzero)))


jvp.partials_of_result(e.integer_pow_p, _integer_pow)
jvp.partials_of_result(e.pow_p, lambda t, power, x, y: _pow_base(t, x, y), _pow_exponent)

# ---- elementary functions ------------------------------------------------------------------------------------

jvp.partials_of_result(e.exp_p, lambda t, y, x: mul(t, y))
jvp.partials_of_result(e.exp2_p, lambda t, y, x: mul(t, mul(math.log(2.0), y)))
jvp.partials_of_result(e.expm1_p, lambda t, y, x: mul(t, add(y, 1.0)))
jvp.partials(e.log_p, lambda t, x: div(t, x))
jvp.partials(e.log1p_p, lambda t, x: div(t, add(x, 1.0)))
jvp.partials(e.log_plus_one_p, lambda t, x: div(t, add(x, 1.0)))
jvp.partials_of_result(e.logistic_p, lambda t, y, x: mul(t, mul(y, sub(1.0, y))))

jvp.partials(e.sin_p, lambda t, x: mul(t, cos(x)))
jvp.partials(e.cos_p, lambda t, x: mul(t, neg(sin(x))))
jvp.partials_of_result(e.tan_p, lambda t, y, x: mul(t, add(square(y), 1.0)))
jvp.partials(e.sinh_p, lambda t, x: mul(t, cosh(x)))
jvp.partials(e.cosh_p, lambda t, x: mul(t, sinh(x)))
jvp.partials_of_result(e.tanh_p, lambda t, y, x: mul(t, _one_less_square(y)))


def _one_less_square(x: Any) -> Any:
    """Compute 1 - x^2 as (1 + x) (1 - x): without cancellation near 1, and always with the same bits.

    A compiler may contract 1 - x x to one operation (FMA) in some of the places where it is computed.
    """
    return mul(add(1.0, x), sub(1.0, x))


def _inverse_root_of_one_plus_square(x: Any) -> Any:
    """Compute 1 / sqrt(1 + x^2), by 1 / |x| where that is the same and the square may overflow."""
    finfo = dtypes.finfo(aval_of(x).dtype)
    large = gt(e.abs(x), min(1 / float(finfo.eps), math.sqrt(float(finfo.max)) / 2))
    one = constant(1, aval_of(x))
    far = div(1.0, select_n(large, one, x))
    left = lt(real(x) if _is_complex(x) else x, 0.0)
    return select_n(large, rsqrt(add(square(select_n(large, x, one)), 1.0)), select_n(left, far, neg(far)))


jvp.partials(e.asin_p, lambda t, x: mul(t, rsqrt(_one_less_square(x))))
jvp.partials(e.acos_p, lambda t, x: mul(t, neg(rsqrt(_one_less_square(x)))))
jvp.partials(e.atan_p, lambda t, x: div(t, add(square(x), 1.0)))
jvp.partials(e.asinh_p, lambda t, x: mul(t, _inverse_root_of_one_plus_square(x)))
jvp.partials(e.acosh_p, lambda t, x: mul(t, mul(rsqrt(add(x, 1.0)), rsqrt(sub(x, 1.0)))))
jvp.partials(e.atanh_p, lambda t, x: div(t, _one_less_square(x)))


def _atan2_jvp(primals: list[Any], tangents: list[Any]) -> tuple[Any, Any]:
    """Push tangents as (y ẋ - x ẏ) / (x² + y²), by b² (1 + r²) with r = a / b, the lesser of x and y by the greater.

    Only r is squared, so no square overflows. Its operands are chosen where the program runs: compilers change the
    order of products with constants, and these could overflow.
    """
    (x, y), (t, s) = primals, tangents
    out = e.atan2_p.bind(x, y)
    steep = gt(e.abs(x), e.abs(y))
    a, b = select_n(steep, x, y), select_n(steep, y, x)
    r = div(a, b)
    to_a = div(1.0, mul(b, add(square(r), 1.0)))
    to_b = mul(r, to_a)
    terms = [] if type(t) is Zero else [mul(t, select_n(steep, to_a, to_b))]
    terms += [] if type(s) is Zero else [mul(s, neg(select_n(steep, to_b, to_a)))]
    return out, (jvp.total(terms, out[0]),)


jvp.rules[e.atan2_p] = _atan2_jvp

# ---- complex numbers -----------------------------------------------------------------------------------------

jvp.linear(e.conj_p)
transpose.unary(e.conj_p, lambda ct, x: conj(ct))

jvp.linear(e.real_p)
transpose.unary(e.real_p, lambda ct, x: complex(ct, constant(0, aval_of(ct))))

jvp.linear(e.imag_p)
transpose.unary(e.imag_p, lambda ct, x: complex(constant(0, aval_of(ct)), neg(ct)))


def _complex_jvp(primals: Any, tangents: Any) -> Any:
    out = complex(*primals)
    t, u = tangents
    if type(t) is Zero and type(u) is Zero:
        return (out,), (Zero(aval_of(out)),)
    if type(u) is Zero:
        return (out,), (convert_element_type(_spread(t, out), out.dtype),)
    if type(t) is Zero:
        return (out,), (mul(1j, convert_element_type(_spread(u, out), out.dtype)),)
    return (out,), (complex(t, u),)


jvp.rules[e.complex_p] = _complex_jvp
jvp.structurally_linear[e.complex_p] = jvp.All.JOINTLY
transpose.joint(e.complex_p, lambda ct, x, y: _fit(real(ct), x), lambda ct, x, y: _fit(neg(imag(ct)), y))

# ---- selection -----------------------------------------------------------------------------------------------


def _select_n_jvp(primals: Any, tangents: Any) -> Any:
    out = select_n(*primals)
    ts = tangents[1:]
    if all(type(t) is Zero for t in ts):
        return (out,), (zero_of(out),)
    cases = [constant(0, t.aval) if type(t) is Zero else _spread(t, out) for t in ts]
    return (out,), (select_n(primals[0], *cases),)


def _select_n_transpose(cts: Any, which: Any, *cases: Any) -> Any:
    ct, zero = cts[0], constant(0, aval_of(cts[0]))

    def pulled(k: int, case: Any) -> Any:
        if type(case) is not Linear:
            return None
        return _fit(select_n(which, *[ct if i == k else zero for i in range(len(cases))]), case)

    return None, *[pulled(k, case) for k, case in enumerate(cases)]


jvp.rules[e.select_n_p] = _select_n_jvp
jvp.structurally_linear[e.select_n_p] = slice(1, None)
transpose.rules[e.select_n_p] = _select_n_transpose

jvp.partials(
    e.clamp_p,
    lambda t, lower, x, upper: _only_where(bitwise_and(gt(lower, x), lt(lower, upper)), t),
    lambda t, lower, x, upper: _only_where(bitwise_and(gt(x, lower), lt(x, upper)), t),
    lambda t, lower, x, upper: _only_where(bitwise_or(lt(upper, x), lt(upper, lower)), t),
)

# ---- conversion ----------------------------------------------------------------------------------------------


def _convert_jvp(primals: Any, tangents: Any, *, dtype: Any, weak_type: bool) -> Any:
    out = e.convert_element_type_p.bind(*primals, dtype=dtype, weak_type=weak_type)
    zero = zero_of(out[0])
    if type(tangents[0]) is Zero or not dtypes.is_inexact(dtype):
        return out, (zero,)
    return out, e.convert_element_type_p.bind(tangents[0], dtype=dtype, weak_type=weak_type)


jvp.rules[e.convert_element_type_p] = _convert_jvp
jvp.structurally_linear[e.convert_element_type_p] = jvp.All.JOINTLY
transpose.unary(
    e.convert_element_type_p,
    lambda ct, x, **_: convert_element_type(ct, x.aval.dtype, x.aval.weak_type),
)

jvp.linear(e.copy_p)
transpose.unary(e.copy_p, lambda ct, x: ct)

jvp.partials(e.nextafter_p, lambda t, x, y: _spread(t, x, y), None)  # it is x, up to a unit in the last place

# ---- piecewise constant --------------------------------------------------------------------------------------

for _primitive in (e.floor_p, e.ceil_p, e.round_p, e.is_finite_p, e.stop_gradient_p):
    jvp.zero(_primitive)
for _primitive in (e.eq_p, e.ne_p, e.lt_p, e.le_p, e.gt_p, e.ge_p):
    jvp.zero(_primitive)

# ---- vmap ----------------------------------------------------------------------------------------------------

for _primitive in [p for p in vars(e).values() if isinstance(p, Primitive) and p is not e.clamp_p]:
    vmap.elementwise(_primitive)


def _clamp_vmap(size: int, args: Any, dims: Any) -> Any:
    """Batch clamp: the operand always gets the mapped axis; scalar bounds that are not mapped stay scalars."""
    lower, x, upper = args
    shape = vmap.example_shape(x, dims[1])
    low, high = [vmap.align_operand(y, d, size, shape) for y, d in ((lower, dims[0]), (upper, dims[2]))]
    return e.clamp_p.bind(low, vmap.move_mapped_axis_first(x, dims[1], size), high), [0]


vmap.rules[e.clamp_p] = _clamp_vmap

# ---- index rows ----------------------------------------------------------------------------------------------
# Sums and products are terms, selects have brackets, others are pointwise.

rows[e.neg_p] = lambda params, avals: terms([elements(avals, [0], coefficient=-1)])
rows[e.add_p] = lambda params, avals: terms([elements(avals, [0]), elements(avals, [1])])
rows[e.sub_p] = lambda params, avals: terms([elements(avals, [0]), elements(avals, [1], coefficient=-1)])
rows[e.mul_p] = lambda params, avals: terms([elements(avals, [0, 1])])
rows[e.square_p] = lambda params, avals: terms([elements(avals, [0, 0])])
rows[e.conj_p] = lambda params, avals: terms([elements(avals, [0], uses=[Use.CONJUGATED])])
rows[e.copy_p] = rows[e.stop_gradient_p] = same


def _div_row(params: Params, avals: Avals) -> IndexRow:
    """Make the row of a quotient: pointwise for integers, whose division is no product with an inverse."""
    if not dtypes.is_inexact(avals[0].dtype):
        return pointwise(params, avals)
    return terms([elements(avals, [0, 1], uses=[Use.PLAIN, Use.DIVIDED])])


def _select_n_row(params: Params, avals: Avals) -> IndexRow:
    """Make the row of a select: a term for each case, with a bracket, so that only the selected case is read."""
    return terms([_case(avals, k) for k in range(1, len(avals))])


def _case(avals: Avals, k: int) -> Term:
    last = len(avals) - 2

    def chosen(i: tuple[Affine, ...]) -> list[Lookup]:
        return [Lookup(Affine(k - 1), 0, i if avals[0].shape else (), (0, last))] if last else []

    return elements(avals, [k], chosen)


def _convert_element_type_row(params: Params, avals: Avals) -> IndexRow:
    return (same if is_exact(avals[0].dtype, params["dtype"]) else pointwise)(params, avals)


def is_exact(old: dtypes.DType, new: dtypes.DType) -> bool:
    """Tell whether the dtype `new` holds every number of `old` exactly, so that a conversion is an identity."""
    if old == new or dtypes.is_bool(old):
        return True
    if dtypes.is_bool(new) or dtypes.is_key(old) or (dtypes.is_complex(old) and not dtypes.is_complex(new)):
        return False
    if dtypes.is_inexact(old):
        return dtypes.is_inexact(new) and _mantissa(old) <= _mantissa(new) and _exponent(old) <= _exponent(new)
    low, high = dtypes.iinfo(old).min, dtypes.iinfo(old).max
    if dtypes.is_inexact(new):
        return high <= 2 ** (_mantissa(new) + 1)
    return dtypes.iinfo(new).min <= low and high <= dtypes.iinfo(new).max


def _mantissa(dtype: dtypes.DType) -> int:
    return dtypes.finfo(dtype).nmant


def _exponent(dtype: dtypes.DType) -> int:
    return dtypes.finfo(dtype).maxexp


rows[e.div_p], rows[e.select_n_p], rows[e.convert_element_type_p] = _div_row, _select_n_row, _convert_element_type_row

for _primitive in (
    e.rem_p, e.difference_p, e.max_p, e.min_p, e.sign_p, e.abs_p, e.floor_p, e.ceil_p, e.nextafter_p, e.round_p,
    e.sqrt_p, e.rsqrt_p, e.cbrt_p, e.root_of_squares_p, e.integer_pow_p, e.pow_p, e.exp_p, e.exp2_p, e.expm1_p, e.log_p,
    e.log1p_p, e.log_plus_one_p, e.logistic_p, e.sin_p,
    e.cos_p, e.tan_p, e.asin_p, e.acos_p, e.atan_p, e.atan2_p, e.sinh_p, e.cosh_p, e.tanh_p, e.asinh_p, e.acosh_p,
    e.atanh_p, e.real_p, e.imag_p, e.complex_p, e.eq_p, e.ne_p, e.lt_p, e.le_p, e.gt_p, e.ge_p, e.is_finite_p,
    e.clamp_p,
):  # fmt: skip
    rows[_primitive] = pointwise
