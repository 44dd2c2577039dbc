"""Elementwise operations. What has no function for complex numbers in NumPy has its slope for complex steps here."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from tests.fuzzing.oracle.interpreter import NotHolomorphicError, Run, is_stepped, meaning, meanings, plain
from tests.fuzzing.oracle.values import Values, kind_of, limits, rounded

# ---- functions of complex numbers that are also functions of real ones -----------------------------------------


def holomorphic(real: Callable[..., Any], on_complex: Callable[..., Any] | None = None) -> Any:
    """A meaning whose complex step is the function of complex numbers; its real part is that of the real function."""
    wide = on_complex or real

    def rule(run: Run, eqn: Any, *xs: Values) -> Any:
        if kind_of(eqn.outvars[0].aval.dtype) == "c":
            return wide(*xs)
        if not is_stepped(*xs):
            return real(*xs)
        value = real(*[x.real for x in xs])
        return with_tangent(value, wide(*xs).imag)

    return rule


def sloped(real: Callable[..., Any], *slopes: Callable[..., Any]) -> Any:
    """A meaning for real numbers whose complex step has partial derivatives, functions of all operands."""

    def rule(run: Run, eqn: Any, *xs: Values) -> Any:
        if not is_stepped(*xs):
            return real(*xs)
        parts = [x.real for x in xs]
        tangent = sum(slope(*parts) * x.imag for x, slope in zip(xs, slopes, strict=True) if np.iscomplexobj(x))
        return with_tangent(real(*parts), tangent)

    return rule


def with_tangent(value: Any, tangent: Any) -> Any:
    """A value with its tangent as imaginary part; neither is known where the value is not."""
    value, tangent = np.broadcast_arrays(np.asarray(value, float), np.asarray(tangent, float))
    out = np.empty(value.shape, complex)
    out.real, out.imag = value, np.where(np.isnan(value), np.nan, tangent)
    return out


def real_only(real: Callable[..., Any]) -> Any:
    """A meaning for real numbers that complex steps do not pass."""

    def rule(run: Run, eqn: Any, *xs: Values) -> Any:
        if is_stepped(*xs):
            raise NotHolomorphicError(eqn.primitive.name)
        return real(*xs, **eqn.params)

    return rule


def _logistic(z: Any) -> Any:
    """Of complex numbers by the exponential that does not overflow."""
    if not np.iscomplexobj(z):
        return scipy.special.expit(z)
    small = np.exp(np.where(z.real < 0, z, -z))
    return np.where(z.real < 0, small, 1) / (1 + small)


def _log1p(z: Any) -> Any:
    """Of complex numbers with a modulus that does not cancel, as NumPy's does."""
    if not np.iscomplexobj(z):
        return np.log1p(z)
    modulus = np.log1p(z.real * (2 + z.real) + z.imag**2) / 2
    return np.where(np.abs(z) < 0.5, modulus + 1j * np.angle(1 + z), np.log1p(z))


def _exp2(z: Any) -> Any:
    return np.exp2(z) if not np.iscomplexobj(z) else np.exp(z * np.log(2.0))


_HOLOMORPHIC: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "square": np.square,
    "sqrt": np.sqrt,
    "root_of_squares": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "exp": np.exp,
    "exp2": _exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": _log1p,
    "log_plus_one": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
meanings.update({name: holomorphic(f) for name, f in _HOLOMORPHIC.items()})
meanings["cbrt"] = sloped(np.cbrt, lambda x: 1 / (3 * np.cbrt(x) ** 2))
meanings["atan2"] = sloped(np.arctan2, lambda y, x: x / (x * x + y * y), lambda y, x: -y / (x * x + y * y))


@meaning("logistic")
def _logistic_meaning(run: Run, eqn: Any, x: Values) -> Any:
    """1 / (1 + exp(-x)), whose slope is its own product with that of -x: without overflow."""
    if kind_of(eqn.outvars[0].aval.dtype) == "c" or not is_stepped(x):
        return _logistic(x)
    p, q = _logistic(x.real), _logistic(-x.real)
    return with_tangent(p, p * q * x.imag)


# ---- division and powers ---------------------------------------------------------------------------------------


@meaning("div")
def _div(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    """Integers towards zero. XLA's where there is no quotient: all bits set by zero, the dividend by overflow."""
    if kind_of(eqn.outvars[0].aval.dtype) not in "iu":
        return holomorphic(np.divide)(run, eqn, x, y)
    quotient, _ = _truncated(x, y)
    return np.where(y == 0, _all_ones(x), quotient)


@meaning("difference")
def _difference(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    """Equal infinities have the difference 0."""
    with np.errstate(invalid="ignore"):
        return np.where((x.real == y.real) & np.isinf(x.real), (x.imag - y.imag) * 1j if is_stepped(x, y) else 0, x - y)


@meaning("rem")
def _rem(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    """What division towards zero leaves; the dividend itself by zero."""
    if kind_of(eqn.outvars[0].aval.dtype) in "iu":
        return np.where(y == 0, x, _truncated(x, y)[1])
    dtype = eqn.outvars[0].aval.dtype
    a, b = run.compared(x, dtype), run.compared(y, dtype)
    value = np.fmod(a, b)
    if not is_stepped(x, y):
        return value
    run.kink("rem", (value == 0) & (x.imag != 0))
    return with_tangent(value, x.imag - np.trunc(a / b) * y.imag)


def _truncated(x: Values, y: Values) -> tuple[Values, Values]:
    """Quotient towards zero and remainder of integers, of no meaning where y is 0."""
    divisor = np.where(y == 0, np.ones_like(y), y)
    if x.dtype == np.uint64:
        return x // divisor, x % divisor
    by_minus_one = divisor == -1  # the only one by which a quotient overflows
    safe = np.where(by_minus_one, 1, divisor)
    down, rest = x // safe, x % safe
    up = (rest != 0) & (x < 0) ^ ((rest != 0) & (safe < 0))
    quotient = np.where(up, down + 1, down)
    return np.where(by_minus_one, -x, quotient), np.where(by_minus_one, 0, x - quotient * safe)


def _all_ones(x: Values) -> Any:
    return np.invert(np.zeros_like(x))


@meaning("integer_pow")
def _integer_pow(run: Run, eqn: Any, x: Values) -> Any:
    """Repeated multiplication, which is one of complex numbers too."""
    n = eqn.params["y"]
    out = power(x, abs(n))
    return 1 / out if n < 0 else out


def power(x: Values, n: int) -> Values:
    """x to the power n, n not negative, by squaring."""
    out = np.ones_like(x)
    while n:
        out = out * x if n & 1 else out
        x, n = x * x, n >> 1
    return out


@meaning("pow")
def _pow(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    kind = kind_of(eqn.outvars[0].aval.dtype)
    if kind in "iu":
        return _integer_power(x, y)
    if kind == "c":
        return np.where(y == 0, 1, np.power(x, y.astype(complex)))
    if not is_stepped(x, y):
        return np.power(x, y.astype(float))
    a, b = x.real, y.real.astype(float)
    value = np.power(a, b)
    by_base = np.where(x.imag == 0, 0, b * np.power(a, b - 1) * x.imag)
    by_exponent = np.where(y.imag == 0, 0, np.log(a) * value * y.imag)
    return with_tangent(value, by_base + by_exponent)


def _integer_power(x: Values, y: Values) -> Values:
    """Modulo 2^64; of negative exponents what is left of 1 / x: 1 or -1 of those, nothing of others."""
    x, y = np.broadcast_arrays(x, y)
    out, square, rest = np.ones_like(x), x.copy(), y.astype(np.uint64)
    while np.any(rest):
        out = np.where(rest & np.uint64(1), out * square, out)
        square, rest = square * square, rest >> np.uint64(1)
    if x.dtype == np.uint64:
        return out
    odd = np.where(y % 2 == 0, 1, -1)
    inverse = np.where(x == 1, 1, np.where(x == -1, odd, 0))
    return np.where(y < 0, inverse, out)


# ---- steps and kinks -------------------------------------------------------------------------------------------


def _step_function(name: str, f: Callable[[Values], Any], jumps: Callable[[Values], Any]) -> None:
    """A meaning that is constant between jumps."""

    def rule(run: Run, eqn: Any, x: Values, **_: Any) -> Any:
        seen = run.compared(x, eqn.invars[0].aval.dtype)
        if is_stepped(x):
            run.kink(name, jumps(seen) & (x.imag != 0))
        return f(seen)

    meanings[name] = rule


def _is_integer(x: Values) -> Any:
    return x == np.rint(x)


_step_function("floor", np.floor, _is_integer)
_step_function("ceil", np.ceil, _is_integer)


@meaning("round")
def _round(run: Run, eqn: Any, x: Values) -> Any:
    seen = run.compared(x, eqn.invars[0].aval.dtype)
    whole = np.trunc(seen)
    half = np.abs(seen - whole) == 0.5
    if is_stepped(x):
        run.kink("round", half & (x.imag != 0))
    if int(eqn.params["rounding_method"]) == 1:
        return np.rint(seen)
    away = whole + np.where(np.abs(seen - whole) >= 0.5, np.sign(seen), 0)
    return np.where(np.isfinite(seen), np.copysign(away, seen), seen)


@meaning("sign")
def _sign(run: Run, eqn: Any, x: Values) -> Any:
    if kind_of(eqn.outvars[0].aval.dtype) == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size))
    seen = run.compared(x, eqn.invars[0].aval.dtype)
    if is_stepped(x):
        run.kink("sign", (seen == 0) & (x.imag != 0))
    return np.where(seen == 0, seen, np.sign(seen))


@meaning("abs")
def _abs(run: Run, eqn: Any, x: Values) -> Any:
    if kind_of(eqn.invars[0].aval.dtype) == "f" and is_stepped(x):
        run.kink("abs", (x.real == 0) & (x.imag != 0))
        return with_tangent(np.abs(x.real), np.sign(x.real) * x.imag)
    return np.abs(x)


def better(run: Run, name: str, x: Values, y: Values, *, greater: bool, complex_numbers: bool) -> Values:
    """The greater or lesser of two values; nan if either is, complex numbers by real, then imaginary part."""
    if complex_numbers:
        first = _precedes(y, x) if greater else _precedes(x, y)
        return np.where(np.isnan(x) | (first & ~np.isnan(y)), x, y)
    a, b = x.real, y.real
    if is_stepped(x, y):
        run.kink(name, (a == b) & (x.imag != y.imag))
    chosen = np.where(np.isnan(a) | ((a > b) if greater else (a < b)), x, y)
    both = a == b  # of two zeros max is the positive one
    return np.where(both & (np.signbit(b) == greater), x, chosen) if a.dtype == float else chosen


def _precedes(x: Values, y: Values) -> Any:
    return (x.real < y.real) | ((x.real == y.real) & (x.imag < y.imag))


@meaning("max", "min")
def _extreme(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    name = eqn.primitive.name
    complex_numbers = kind_of(eqn.outvars[0].aval.dtype) == "c"
    return better(run, name, x, y, greater=name == "max", complex_numbers=complex_numbers)


@meaning("clamp")
def _clamp(run: Run, eqn: Any, lower: Values, x: Values, upper: Values) -> Any:
    """min(max(x, lower), upper)."""
    inner = better(run, "clamp", x, lower, greater=True, complex_numbers=False)
    return better(run, "clamp", inner, upper, greater=False, complex_numbers=False)


@meaning("nextafter")
def _nextafter(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    """The neighbour in the declared dtype; its derivative is that of x."""
    dtype = eqn.outvars[0].aval.dtype
    a, b = (np.asarray(run.compared(v, dtype)).astype(dtype) for v in (x, y))
    return run.straight.value(x, np.nextafter(*np.broadcast_arrays(a, b)).astype(float), 1)


# ---- complex numbers -------------------------------------------------------------------------------------------


@meaning("complex")
def _complex(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    refuse_steps(eqn, x, y)
    x, y = np.broadcast_arrays(x, y)
    out = np.empty(x.shape, complex)
    out.real, out.imag = x, y
    return out


def refuse_steps(eqn: Any, *xs: Values) -> None:
    """Raises: NotHolomorphicError if a value declared real carries a tangent."""
    if any(np.iscomplexobj(x) and kind_of(v.aval.dtype) != "c" for x, v in zip(xs, eqn.invars)):
        raise NotHolomorphicError(eqn.primitive.name)


meanings["real"] = plain(lambda x: x.real.copy())
meanings["imag"] = plain(lambda x: x.imag.copy())
meanings["conj"] = plain(np.conj)

# ---- comparison ------------------------------------------------------------------------------------------------

_COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@meaning(*_COMPARISONS)
def _compare(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    dtype = eqn.invars[0].aval.dtype
    a, b = run.compared(x, dtype), run.compared(y, dtype)
    if kind_of(dtype) == "f" and is_stepped(x, y):
        run.kink(eqn.primitive.name, (a == b) & (x.imag != y.imag))
    return _COMPARISONS[eqn.primitive.name](a, b)


@meaning("is_finite")
def _is_finite(run: Run, eqn: Any, x: Values) -> Any:
    return np.isfinite(run.compared(x, eqn.invars[0].aval.dtype))


# ---- choice and conversion -------------------------------------------------------------------------------------


@meaning("select_n")
def _select_n(run: Run, eqn: Any, which: Values, *cases: Values) -> Any:
    """The case of the number; beyond the first and the last, these."""
    number = np.clip(which.astype(int), 0, len(cases) - 1)
    out = cases[0]
    for k, case in enumerate(cases[1:], 1):
        out = np.where(number == k, case, out)
    return np.broadcast_to(out, eqn.outvars[0].aval.shape)


@meaning("copy")
def _copy(run: Run, eqn: Any, x: Values) -> Any:
    return x


@meaning("stop_gradient")
def _stop_gradient(run: Run, eqn: Any, x: Values) -> Any:
    real = x.real if kind_of(eqn.invars[0].aval.dtype) == "f" else x
    return run.straight.value(x, real, 0)


@meaning("convert_element_type")
def _convert(run: Run, eqn: Any, x: Values) -> Any:
    old, new = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    from_kind, to_kind = kind_of(old), kind_of(new)
    if to_kind == "c" and from_kind != "c":
        refuse_steps(eqn, x)
    if from_kind == "c" and to_kind in "fiu":
        x, from_kind = x.real, "f"
    if to_kind == "b":
        return run.compared(x, old) != 0
    if from_kind == "f" and to_kind in "iu":
        seen = run.compared(x, old) if kind_of(old) == "f" else x
        if kind_of(old) == "f" and is_stepped(x):
            run.kink("convert_element_type", _is_integer(seen) & (x.imag != 0))
        return _saturated(seen, new)
    return x


def _saturated(x: Values, dtype: Any) -> Values:
    """Real numbers as integers, towards zero; the nearest there is for those beyond, 0 for nan."""
    low, high = limits(dtype)
    kind = np.int64 if kind_of(dtype) == "i" else np.uint64
    whole = np.trunc(x)
    inside = (whole >= low) & (whole < float(high) + 1)
    beyond = np.where(whole >= float(high) + 1, kind(high), np.where(whole < low, kind(low), kind(0)))
    return np.where(inside, np.where(inside, whole, 0).astype(kind), beyond)


# ---- representation --------------------------------------------------------------------------------------------


@meaning("reduce_precision")
def _reduce_precision(run: Run, eqn: Any, x: Values) -> Any:
    """Rounded to nearest even with fewer bits; infinite or 0 beyond the exponents. Its derivative is the identity's."""
    exponent_bits, mantissa_bits = eqn.params["exponent_bits"], eqn.params["mantissa_bits"]
    seen = rounded(x.real, eqn.invars[0].aval.dtype)
    fraction, exponent = np.frexp(seen)  # |fraction| in [1/2, 1)
    scaled = np.ldexp(np.rint(np.ldexp(fraction, mantissa_bits + 1)), exponent - mantissa_bits - 1)
    if not mantissa_bits:  # the even one of two powers of two is that whose exponent is odd, and even when biased
        power = np.copysign(np.ldexp(1.0, exponent - 1 + exponent % 2), seen)
        scaled = np.where(np.abs(fraction) == 0.75, power, scaled)
    bias = 2 ** (exponent_bits - 1) - 1
    out = np.where(np.abs(scaled) >= np.ldexp(1.0, min(bias + 1, 1024)), np.copysign(np.inf, seen), scaled)
    out = np.where(np.abs(out) < np.ldexp(1.0, max(1 - bias, -1022)), np.copysign(0.0, seen), out)
    return run.straight.value(x, np.where(np.isfinite(seen), out, seen), 1)
