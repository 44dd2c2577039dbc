"""Lowering of elementwise operations: most are one operation of StableHLO, or of chlo, which decomposes it."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tapeless.lowering import emit, physical
from tapeless.lowering.emit import in_float32, in_unsigned, while_loop, write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.physical import WordWriter
from tapeless.lowering.rules.reduction import extreme
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.primitives.bits import (
    bitcast_convert_type,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    shift_right_logical,
)
from tapeless.tracer.primitives.reduction import reduce_or
from tapeless.tracer.primitives.shape import full_like
from tapeless.tracer.types import aval_of


def operation(name: str) -> Callable[..., Any]:
    """Return the emit rule of an operation of StableHLO or chlo; operands of rank 0 are broadcast first."""

    def rule(f: Function, outs: Any, *operands: Value) -> Any:
        shape = outs[0].shape
        return (f.op(name, [f.broadcast(x, shape) for x in operands], outs[0]),)

    return rule


def _hiding(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule for the CPU of a function that XLA computes by exponentials: its operand is hidden.

    To LLVM, XLA's 32-bit exponential of the constant nan is undefined memory, and nan is constant in the padding of an
    array, for example; see docs/xla_defects.md.
    """

    def hiding(f: Function, outs: Any, x: Value) -> Any:
        n = dtypes.bits_of(dtypes.real_part_dtype(x.aval.dtype))
        return rule(f, outs, f.hidden(x) if f.platform == "cpu" and 8 <= n <= 32 else x)

    return hiding


def _comparison(direction: str) -> Callable[..., Any]:
    def rule(f: Function, outs: Any, x: Value, y: Value) -> Any:
        shape = outs[0].shape
        return (f.compare(f.broadcast(x, shape), f.broadcast(y, shape), direction),)

    return rule


def _itself(f: Function, outs: Any, x: Value) -> Any:
    return (x,)


_OPERATIONS = {
    e.neg_p: "negate",
    e.add_p: "add",
    e.sub_p: "subtract",
    e.floor_p: "floor",
    e.ceil_p: "ceil",
    e.nextafter_p: "chlo.next_after",
    e.rsqrt_p: "rsqrt",
    e.cbrt_p: "cbrt",
    e.atan2_p: "atan2",
    e.real_p: "real",
    e.imag_p: "imag",
    e.complex_p: "complex",
    e.conj_p: "chlo.conj",
    e.is_finite_p: "is_finite",
}
_COMPARISONS = {e.eq_p: "EQ", e.ne_p: "NE", e.lt_p: "LT", e.le_p: "LE", e.gt_p: "GT", e.ge_p: "GE"}
for _primitive, _name in _OPERATIONS.items():
    emit.rules[_primitive] = operation(_name)
for _primitive, _name in _COMPARISONS.items():
    emit.rules[_primitive] = _comparison(_name)
emit.rules[e.logistic_p] = in_float32(_hiding(operation("logistic")))
emit.rules[e.copy_p] = emit.rules[e.stop_gradient_p] = _itself


# ---- arithmetic ----------------------------------------------------------------------------------------------


def _multiply(f: Function, outs: Any, *factors: Value) -> Any:
    return (f.op("multiply", [f.broadcast(x, outs[0].shape) for x in factors], outs[0]),)


def _mul(f: Function, outs: Any, x: Value, y: Value) -> Any:
    is_square = f.number(x) is None and f.number(y) is None  # it may be
    return (in_unsigned(_multiply) if is_square else _multiply)(f, outs, x, y)


emit.rules[e.mul_p] = _mul


def _sign(f: Function, outs: Any, x: Value) -> Any:
    if dtypes.is_integer(x.aval.dtype) and not dtypes.is_signed(x.aval.dtype):
        return (f.op("minimum", [x, f.constant(1, x.aval)], outs[0]),)
    return (f.op("sign", [x], outs[0]),)


def _extreme(name: str) -> Callable[..., Any]:
    """Return the rule of max or min, as in reductions: StableHLO does not order complex numbers of equal real parts."""
    chosen = extreme(name)

    def rule(f: Function, outs: Any, x: Value, y: Value) -> Any:
        shape = outs[0].shape
        return (chosen(f, f.broadcast(x, shape), f.broadcast(y, shape)),)

    return rule


_ROUNDING = {
    e.RoundingMethod.AWAY_FROM_ZERO: "round_nearest_afz",
    e.RoundingMethod.TO_NEAREST_EVEN: "round_nearest_even",
}


def _round(f: Function, outs: Any, x: Value, *, rounding_method: e.RoundingMethod) -> Any:
    return (f.op(_ROUNDING[rounding_method], [x], outs[0]),)


def _difference(x: Any, y: Any) -> Any:
    difference = e.sub(x, y)
    return e.select_n(e.eq(x, y), difference, full_like(difference, 0))


emit.rules[e.difference_p] = lambda f, outs, x, y: write_out(f, _difference, [x, y])
emit.rules[e.sign_p] = _sign
emit.rules[e.max_p] = _extreme("maximum")
emit.rules[e.min_p] = _extreme("minimum")
emit.rules[e.round_p] = _round


def _divided(name: str, by_zero: Callable[[Function, Value], Value]) -> Callable[..., Any]:
    """Return the rule of an integer division with `by_zero(x)` for x / 0: XLA ends the process where it folds that.

    See docs/xla_defects.md. Other divisions are StableHLO's.
    """
    divide = operation(name)

    def rule(f: Function, outs: Any, x: Value, y: Value) -> Any:
        out = outs[0]
        if not dtypes.is_integer(out.dtype) or f.number(y):
            return divide(f, outs, x, y)
        x, y = f.broadcast(x, out.shape), f.broadcast(y, out.shape)
        is_zero = f.compare(y, f.constant(0, out), "EQ")
        divisor = f.op("select", [is_zero, f.constant(1, out), y], out)
        return (f.op("select", [is_zero, by_zero(f, x), f.op(name, [x, divisor], out)], out),)

    return rule


def _all_bits(f: Function, x: Value) -> Value:
    return f.constant(-1 if dtypes.is_signed(x.aval.dtype) else dtypes.iinfo(x.aval.dtype).max, x.aval)


# XLA multiplies by the reciprocals of what is broadcast; those of large and small numbers do not exist in float16.
emit.rules[e.div_p] = in_float32(_divided("divide", _all_bits))
emit.rules[e.rem_p] = _divided("remainder", lambda f, x: x)

# ---- powers --------------------------------------------------------------------------------------------------


def _integer_pow(f: Function, outs: Any, x: Value, *, y: int) -> Any:
    """Emit a static power by repeated squaring, so that x**2 is x*x exactly."""
    aval = outs[0]
    result, square, n = None, x, abs(y)
    while n:
        if n % 2:
            result = square if result is None else f.op("multiply", [result, square], aval)
        n //= 2
        square = f.op("multiply", [square, square], aval) if n else square
    if result is None:
        return (f.constant(1, aval),)
    return (f.op("divide", [f.constant(1, aval), result], aval) if y < 0 else result,)


def _pow(f: Function, outs: Any, x: Value, y: Value) -> Any:
    if dtypes.is_integer(x.aval.dtype):
        return _integer_power(f, *[f.broadcast(v, outs[0].shape) for v in (x, y)])
    y = f.convert(y, x.aval.dtype)
    if dtypes.is_complex(x.aval.dtype):
        return write_out(f, _without_zeros, [x, y, *_power(f, outs, x, y)])
    return (_opaque(f, *_power(f, outs, _opaque(f, x), y)),)


_power = operation("power")


def _opaque(f: Function, x: Value) -> Value:
    """Hide from XLA how a real number is computed: it rewrites exp(a)**b to exp(ab), and log(x**b) to b log|x|.

    Rounding to the precision that the number has already takes no measurable time. XLA cannot round 64 bits for TPUs.
    """
    if f.platform == "tpu" and x.aval.dtype == np.float64:
        return f.op("optimization_barrier", [x], x.aval)
    info = dtypes.finfo(x.aval.dtype)
    attributes = f"exponent_bits = {info.nexp} : i32, mantissa_bits = {info.nmant} : i32"
    return f.op("reduce_precision", [x], x.aval, attributes)


def _without_zeros(x: Any, y: Any, power: Any) -> Any:
    """Return 0 for powers of 0 with a positive real part, which XLA does only for real numbers; else `power`."""
    return e.select_n(bitwise_and(e.eq(x, 0), e.gt(e.real(y), 0)), power, full_like(power, 0))


def _integer_power(f: Function, x: Value, y: Value) -> Any:
    """Emit an integer power by squaring, for as long as an exponent has bits: StableHLO's reads only six bits on CPU.

    Negative powers are 0, except those of 1 and -1.
    """
    state = write_out(f, lambda x, y: (full_like(x, 1), x, e.max(y, 0)), [x, y])
    power = while_loop(f, _has_bits, _next_bit, state)[0]
    return write_out(f, _or_inverse, [x, y, power])


def _has_bits(power: Any, square: Any, rest: Any) -> Any:
    return reduce_or(e.ne(rest, 0), range(aval_of(rest).ndim))


def _next_bit(power: Any, square: Any, rest: Any) -> Any:
    is_set = e.ne(bitwise_and(rest, 1), 0)
    return e.select_n(is_set, power, e.mul(power, square)), e.mul(square, square), shift_right_logical(rest, 1)


def _or_inverse(x: Any, y: Any, power: Any) -> Any:
    if not dtypes.is_signed(aval_of(y).dtype):
        return power
    odd = e.select_n(e.eq(bitwise_and(y, 1), 0), x, full_like(x, 1))
    is_unit = bitwise_or(e.eq(x, 1), e.eq(x, -1))
    return e.select_n(e.lt(y, 0), power, e.select_n(is_unit, full_like(x, 0), odd))


def _exp2(f: Function, outs: Any, x: Value) -> Any:
    """Emit 2^x, exact for integers x, unlike exp(x log 2)."""
    return (f.op("power", [f.constant(2, x.aval), x], outs[0]),)


emit.rules[e.integer_pow_p] = in_unsigned(_integer_pow)
emit.rules[e.square_p] = in_unsigned(lambda f, outs, x: _multiply(f, outs, x, x))
emit.rules[e.pow_p] = in_float32(_pow)
emit.rules[e.exp2_p] = _exp2

# ---- functions of complex numbers that XLA has, except for special values -------------------------------------

_INF, _NAN = float("inf"), float("nan")


def _is_infinite(x: Any) -> Any:
    return e.eq(e.abs(x), _INF)


def _is_nan(x: Any) -> Any:
    return e.ne(x, x)


def _mended(name: str, mend: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return the rule of a StableHLO operation; complex results are corrected by `mend(operand, result)`."""
    plain = operation(name)

    def rule(f: Function, outs: Any, x: Value) -> Any:
        found = plain(f, outs, x)
        return write_out(f, mend, [x, *found]) if dtypes.is_complex(x.aval.dtype) else found

    return rule


def _keeps_zero(z: Any, found: Any, *, real: bool) -> Any:
    """Correct a complex result: where a part of z (the real one only if `real`) is 0 or -0, so is the result's."""
    parts = [e.select_n(e.eq(x, 0), y, x) for x, y in ((e.real(z), e.real(found)), (e.imag(z), e.imag(found)))]
    return e.complex(parts[0] if real else e.real(found), parts[1])


def _exponential(z: Any, found: Any, *, limit: float) -> Any:
    """Put what is known beside an infinite real part if the other is not finite: the modulus, infinite or `limit`."""
    x, y = e.real(z), e.imag(z)
    unknown = bitwise_and(_is_infinite(x), bitwise_not(e.is_finite(y)))
    left = e.lt(x, 0)
    real = e.select_n(left, full_like(x, _INF), full_like(x, limit))
    imaginary = e.select_n(left, full_like(y, _NAN), full_like(y, 0))
    found = e.complex(e.select_n(unknown, e.real(found), real), e.select_n(unknown, e.imag(found), imaginary))
    return _keeps_zero(z, found, real=False)


def _modulus(z: Any, found: Any) -> Any:
    """Make the modulus infinite if a part is, beside a nan, too."""
    infinite = bitwise_or(*map(_is_infinite, (e.real(z), e.imag(z))))
    return e.select_n(infinite, found, full_like(found, _INF))


def _logarithm(z: Any, found: Any) -> Any:
    return e.complex(_modulus(z, e.real(found)), e.imag(found))


def _log1p(f: Function, outs: Any, x: Value) -> Any:
    """Compute log(1 + x); XLA's of float64 has an error of 120 ulp from -1/2 to -1/4, log of the sum has 1."""
    found = _mended("log_plus_one", _logarithm)(f, outs, x)
    if x.aval.dtype != np.float64:
        return found
    return write_out(f, lambda x, y: e.select_n(e.lt(x, -0.15), y, e.log(e.add(x, 1.0))), [x, *found])


def _abs(f: Function, outs: Any, x: Value) -> Any:
    """Emit the modulus; of a signed integer as the larger of x and -x, as XLA takes `abs` of the least for positive."""
    if not dtypes.is_signed(x.aval.dtype):
        return (x,)
    if dtypes.is_integer(x.aval.dtype):
        return (f.op("maximum", [x, f.op("negate", [x], outs[0])], outs[0]),)
    return _mended("abs", _modulus)(f, outs, x)


emit.rules[e.tan_p] = _mended("tan", partial(_keeps_zero, real=True))
emit.rules[e.tanh_p] = _mended("tanh", partial(_keeps_zero, real=True))

emit.rules[e.abs_p] = _abs
emit.rules[e.exp_p] = _hiding(_mended("exponential", partial(_exponential, limit=0.0)))
emit.rules[e.expm1_p] = in_float32(_hiding(_mended("exponential_minus_one", partial(_exponential, limit=-1.0))))
emit.rules[e.log_p] = _mended("log", _logarithm)
emit.rules[e.log1p_p] = _log1p
emit.rules[e.log_plus_one_p] = _mended("log_plus_one", _logarithm)

# ---- circular and hyperbolic functions -----------------------------------------------------------------------


def _by_parts(name: str, of_complex: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule of an operation; complex results have the parts `of_complex(real part, imaginary part)`.

    XLA's complex functions compute sinh of a part as a difference of exponentials, which cancels for small numbers.
    """
    real_rule = operation(name)

    def rule(f: Function, outs: Any, x: Value) -> Any:
        if not dtypes.is_complex(x.aval.dtype):
            return real_rule(f, outs, x)
        return write_out(f, lambda z: e.complex(*of_complex(e.real(z), e.imag(z))), [x])

    return rule


def _times(a: Any, b: Any) -> Any:
    """Multiply; 0 where one of the factors is, whatever the other has grown to."""
    product = e.select_n(e.eq(b, 0), e.mul(a, b), _times_sign(b, a))
    return e.select_n(e.eq(a, 0), product, _times_sign(a, b))


def _times_cosine(f: Callable[[Any], Any], x: Any, y: Any) -> Any:
    """Multiply f(x) by cos(y); f(x) where x is infinite and the cosine unknown, which leaves the sign open."""
    grown, cosine = f(x), e.cos(y)
    return e.select_n(bitwise_and(_is_infinite(x), _is_nan(cosine)), _times(grown, cosine), grown)


def _times_sign(a: Any, b: Any, sign: int = 1) -> Any:
    """Multiply a by the sign of b, which zeros have, too, and by another sign."""
    bits = bitcast_convert_type(b, f"int{dtypes.bits_of(aval_of(b).dtype)}")
    cases = (a, e.neg(a)) if sign > 0 else (e.neg(a), a)
    return e.select_n(e.lt(bits, 0), *cases)


emit.rules[e.sin_p] = _by_parts("sine", lambda x, y: (_times(e.sin(x), e.cosh(y)), _times_cosine(e.sinh, y, x)))
emit.rules[e.cos_p] = _by_parts(
    "cosine", lambda x, y: (_times_cosine(e.cosh, y, x), e.neg(_times(e.sin(x), e.sinh(y))))
)
emit.rules[e.sinh_p] = _hiding(
    _by_parts("chlo.sinh", lambda x, y: (_times_cosine(e.sinh, x, y), _times(e.sin(y), e.cosh(x))))
)
emit.rules[e.cosh_p] = _hiding(
    _by_parts("chlo.cosh", lambda x, y: (_times_cosine(e.cosh, x, y), _times(e.sin(y), e.sinh(x))))
)


# ---- roots and inverse functions of complex numbers ----------------------------------------------------------


def _with_signs(z: Any, found: Any, *, signs: tuple[int, int]) -> Any:
    """Give the parts of complex results the signs of the operand's, times these if not 0.

    A 0 instead of a sign leaves a part as it is. XLA ignores signs of zeros, which tell the operand's side of a
    branch cut.
    """
    pairs = ((e.real(z), e.real(found)), (e.imag(z), e.imag(found)))
    return e.complex(*(_times_sign(e.abs(y), x, s) if s else y for (x, y), s in zip(pairs, signs, strict=True)))


def _beside_nan(z: Any, found: Any, known: Sequence[Any]) -> Any:
    """Put parts that are known, or nan, where a part of the operand is nan."""
    unknown = bitwise_or(*map(_is_nan, (e.real(z), e.imag(z))))
    pairs = zip((e.real(found), e.imag(found)), known, strict=True)
    return e.complex(*(e.select_n(unknown, x, y) for x, y in pairs))


def _or_nan(holds: Any, x: Any, value: float) -> Any:
    return e.select_n(holds, full_like(x, _NAN), full_like(x, value))


def _sqrt(z: Any, found: Any) -> Any:
    """Make both parts infinite if the imaginary part is, and one beside a nan if the real part is."""
    x, y = e.real(z), e.imag(z)

    def infinite(limit: float, part: Any) -> Any:
        holds = bitwise_or(_is_infinite(y), bitwise_and(e.eq(x, limit), _is_nan(y)))
        return e.select_n(holds, part, full_like(part, _INF))

    return _with_signs(z, e.complex(infinite(_INF, e.real(found)), infinite(-_INF, e.imag(found))), signs=(0, 1))


def _inverse(name: str, signs: tuple[int, int], *, grows: int, axis: int, at_zero: float) -> Callable[..., Any]:
    """Make the rule of an inverse function, one part of which is a logarithm, infinite if the operand is.

    The other part is an angle, which beside a nan is known where the part `axis` of the operand is 0.
    """

    def mend(z: Any, found: Any) -> Any:
        parts = (e.real(z), e.imag(z))
        known = [_or_nan(e.eq(parts[axis], 0), parts[0], at_zero)]
        known.insert(grows, _or_nan(bitwise_or(*map(_is_infinite, parts)), parts[0], _INF))
        return _with_signs(z, _beside_nan(z, found, known), signs=signs)

    return _mended(name, mend)


def _inverse_tangent(z: Any, found: Any, *, decays: int) -> Any:
    """Put parts that are known beside a nan: 0 where the operand is infinite, and the angle if so along its axis."""
    parts = (e.real(z), e.imag(z))
    decayed = bitwise_or(e.eq(parts[decays], 0), bitwise_or(*map(_is_infinite, parts)))
    known = [_or_nan(_is_infinite(parts[1 - decays]), parts[0], math.pi / 2)]
    known.insert(decays, _or_nan(decayed, parts[0], 0))
    return _with_signs(z, _beside_nan(z, found, known), signs=(1, 1))


emit.rules[e.sqrt_p] = _mended("sqrt", _sqrt)
emit.rules[e.root_of_squares_p] = operation("sqrt")
emit.rules[e.acos_p] = _inverse("chlo.acos", (0, -1), grows=1, axis=0, at_zero=math.pi / 2)
emit.rules[e.acosh_p] = in_float32(_inverse("chlo.acosh", (0, 1), grows=0, axis=0, at_zero=math.pi / 2))
emit.rules[e.asin_p] = _inverse("chlo.asin", (1, 1), grows=1, axis=0, at_zero=0)
emit.rules[e.asinh_p] = _inverse("chlo.asinh", (1, 1), grows=0, axis=1, at_zero=0)
emit.rules[e.atan_p] = _mended("chlo.atan", partial(_inverse_tangent, decays=1))
emit.rules[e.atanh_p] = _mended("chlo.atanh", partial(_inverse_tangent, decays=0))

# ---- selection -----------------------------------------------------------------------------------------------


def _select_n(f: Function, outs: Any, which: Value, *cases: Value) -> Any:
    shape = outs[0].shape
    choices = [f.broadcast(x, shape) for x in cases]
    if len(cases) == 2 and which.aval.dtype == bool:
        return (f.op("select", [which, choices[1], choices[0]], outs[0]),)
    out = choices[-1]
    for k in range(len(choices) - 2, -1, -1):
        before = f.compare(which, f.constant(k + 1, which.aval), "LT")
        out = f.op("select", [before, choices[k], out], outs[0])
    return (out,)


emit.rules[e.select_n_p] = _select_n
emit.rules[e.clamp_p] = lambda f, outs, lower, x, upper: (f.op("clamp", [lower, x, upper], outs[0]),)

# ---- conversion ----------------------------------------------------------------------------------------------


def _convert(f: Function, outs: Any, x: Value, *, dtype: Any, weak_type: bool) -> Any:
    if dtypes.is_bool(dtype):
        return (f.compare(x, f.constant(0, x.aval), "NE"),)
    if dtypes.is_complex(x.aval.dtype) and not dtypes.is_complex(dtype):
        x = f.op("real", [x], x.aval.update(dtype=dtypes.real_part_dtype(x.aval.dtype)))
    if dtypes.is_bool(x.aval.dtype) and dtypes.is_inexact(dtype):
        return (f.op("select", [x, f.constant(1, outs[0]), f.constant(0, outs[0])], outs[0]),)
    if dtypes.is_float(x.aval.dtype) and dtypes.bits_of(x.aval.dtype) < 8:
        x = f.convert(x, np.dtype(np.float32))  # XLA saturates every integer where a float4 is the greatest, 6
    return (f.convert(x, dtype),)


emit.rules[e.convert_element_type_p] = _convert

# ---- keys, as words along a last axis ------------------------------------------------------------------------


def _broadcast_words(w: WordWriter, words: Sequence[Atom]) -> list[Atom]:
    """Broadcast the words of keys of one shape, or of rank 0, to one shape."""
    shape = max([x.aval.shape for x in words], key=len)
    return [w.spread(x, shape, range(len(shape) - x.aval.ndim, len(shape))) for x in words]


def _select_words(w: WordWriter, which: Atom, *cases: Atom) -> Any:
    """Select keys by selecting all of their words; single keys are broadcast to the predicate's shape."""
    shape = which.aval.shape
    if not shape:
        return w.write(e.select_n_p, which, *_broadcast_words(w, cases))
    of_words = (*shape, cases[0].aval.shape[-1])
    spread = [w.spread(x, of_words, range(len(shape) + 1 - x.aval.ndim, len(shape) + 1)) for x in cases]
    return w.write(e.select_n_p, w.spread(which, of_words, range(len(shape))), *spread)


def _compare_words(compare: Primitive, reduce: Primitive) -> Any:
    """Return the rule that compares keys by their words: equal if all words are, different if some word is."""

    def rule(w: WordWriter, x: Atom, y: Atom) -> Any:
        (same,) = w.write(compare, *_broadcast_words(w, [x, y]))
        return w.write(reduce, same, axes=(same.aval.ndim - 1,))

    return rule


physical.rules[e.select_n_p] = _select_words
physical.rules[e.eq_p] = _compare_words(e.eq_p, r.reduce_and_p)
physical.rules[e.ne_p] = _compare_words(e.ne_p, r.reduce_or_p)
physical.moves(e.copy_p)
physical.moves(e.stop_gradient_p)
