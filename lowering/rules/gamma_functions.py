"""Lowering of the gamma function and its relatives, by Lanczos' approximation.

gamma(x) = L(x) exp(-y) y^(x - 1/2), where y = x + g - 1/2 and L is a quotient of polynomials with positive coefficients
(Lanczos 1964; the coefficients for g = 6.02 and 13 terms, of error below 1e-16, are those of Boost and CPython). Ratios
are taken of its three factors one by one (Boost, `beta`). Negative arguments are reflected, DLMF 5.5.3.
All is computed in float64, as powers lose digits; float32 results are rounded once.
Error: gamma 7 ulp of float64; beta, poch and comb 30 ulp up to arguments of 140, beyond them about as many ulp as the
arguments are large.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from tapeless.lowering import emit
from tapeless.lowering.emit import in_float32, in_float64, write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.primitives import gamma_functions as g
from tapeless.tracer.primitives.bits import bitwise_and, bitwise_not, bitwise_or
from tapeless.tracer.primitives.elementwise import (
    abs,
    add,
    div,
    eq,
    exp,
    floor,
    ge,
    gt,
    le,
    log,
    log1p,
    lt,
    max,
    min,
    mul,
    ne,
    neg,
    pow,
    round,
    rsqrt,
    select_n,
    sin,
    sub,
)
from tapeless.tracer.primitives.shape import full_like
from tapeless.tracer.primitives.special import lgamma

_NUMERATOR = (
    23531376880.410759688572007674451636754734846804940,
    42919803642.649098768957899047001988850926355848959,
    35711959237.355668049440185451547166705960488635843,
    17921034426.037209699919755754458931112671403265390,
    6039542586.3520280050642916443072979210699388420708,
    1439720407.3117216736632230727949123939715485786372,
    248874557.86205415651146038641322942321632125127801,
    31426415.585400194380614231628318205362874684987640,
    2876370.6289353724412254090516208496135991145378768,
    186056.26539522349504029498971604569928220784236328,
    8071.6720023658162106380029022722506138218516325024,
    210.82427775157934587250973392071336271166969580291,
    2.5066282746310002701649081771338373386264310793408,
)
_DENOMINATOR = (0, 39916800, 120543840, 150917976, 105258076, 45995730, 13339535, 2637558, 357423, 32670, 1925, 66, 1)
_SHIFT = 6.024680040776729583740234375 - 0.5
_LAST_EXACT = 18  # gamma is rounded to an integer for integers up to this one: 17! < 2^49


def _elementwise(function: Callable[..., Any]) -> Any:
    def rule(f: Function, outs: Any, *operands: Value) -> Any:
        return write_out(f, function, [f.broadcast(x, outs[0].shape) for x in operands])

    return rule


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Compute the sum of c_k x^k by Horner's rule."""
    total: Any = add(mul(x, coefficients[-1]), coefficients[-2])
    for c in reversed(coefficients[:-2]):
        total = add(mul(total, x), c)
    return total


def _lanczos(x: Any) -> Any:
    """Compute L(x) for x >= 0, beyond 5 by powers of 1/x."""
    far = gt(x, 5.0)
    power = select_n(far, x, div(1.0, x))
    near = div(_polynomial(power, _NUMERATOR), _polynomial(power, _DENOMINATOR))
    return select_n(far, near, div(_polynomial(power, _NUMERATOR[::-1]), _polynomial(power, _DENOMINATOR[::-1])))


def _is_integer(x: Any) -> Any:
    return eq(x, floor(x))


def _is_pole(x: Any) -> Any:
    return bitwise_and(le(x, 0.0), _is_integer(x))


def _is_odd(x: Any) -> Any:
    """Tell whether an integer is odd."""
    half = mul(x, 0.5)
    return ne(half, floor(half))


def _sign_by_parity(n: Any) -> Any:
    return select_n(_is_odd(n), *[mul(n, 0.0) + one for one in (1.0, -1.0)])


def _sin_pi(x: Any) -> Any:
    """Compute sin(pi x), exactly at the integers."""
    nearest = round(x)
    return mul(sin(mul(math.pi, sub(x, nearest))), _sign_by_parity(nearest))


# ---- gamma ---------------------------------------------------------------------------------------------------


def _gamma(x: Any) -> Any:
    size = abs(x)
    a = min(size, 200.0)  # gamma is infinite far below that
    y = add(a, _SHIFT)
    root = pow(y, sub(mul(0.5, a), 0.25))  # the root, as its square may overflow though the product does not
    positive = mul(mul(div(_lanczos(a), exp(y)), root), root)
    integer = bitwise_and(_is_integer(x), bitwise_and(ge(x, 1.0), le(x, float(_LAST_EXACT))))
    positive = select_n(integer, positive, round(positive))
    negative = div(-math.pi, mul(mul(_sin_pi(size), size), positive))
    out = select_n(lt(x, 0.0), positive, select_n(_is_integer(x), negative, math.nan))
    return select_n(lt(size, 1e-20), out, div(1.0, x))


# ---- beta ----------------------------------------------------------------------------------------------------


def _beta_factors(a: Any, b: Any) -> tuple[Any, Any]:
    """Compute a factor of beta(a, b) and the logarithm of the other factor, for positive numbers."""
    a, b = max(a, b), min(a, b)
    c = add(a, b)
    a_shifted, b_shifted, c_shifted = (add(x, _SHIFT) for x in (a, b, c))
    lanczos = mul(_lanczos(a), div(_lanczos(b), _lanczos(c)))
    factor = mul(mul(lanczos, math.exp(-_SHIFT)), rsqrt(b_shifted))
    small = lt(b, mul(0.25, c))  # there log1p keeps digits that the quotient of a and c rounds away
    logarithm = select_n(small, log(div(a_shifted, c_shifted)), log1p(neg(div(b, c_shifted))))
    first = mul(sub(sub(a, 0.5), b), logarithm)
    return factor, add(first, mul(b, log(mul(div(a_shifted, c_shifted), div(b_shifted, c_shifted)))))


def _reflected(a: Any, b: Any) -> tuple[Any, Any]:
    """Reflect where beta is finite though a is a pole, to (-1)^b beta(1 - a - b, b): return the new a, and the sign."""
    other = sub(sub(1.0, a), b)
    there = bitwise_and(bitwise_and(_is_pole(a), _is_integer(b)), bitwise_and(gt(b, 0.0), gt(other, 0.0)))
    return select_n(there, a, other), select_n(there, mul(b, 0.0) + 1.0, _sign_by_parity(b))


def _sign_of_gamma(x: Any) -> Any:
    one = mul(x, 0.0) + 1.0
    return select_n(lt(x, 0.0), one, _sign_by_parity(floor(x)))


def _by_beta(combine: Callable[[Any, Any, Any], Any], at_infinity: float) -> Callable[..., Any]:
    """Return the function `combine(sign, factor, logarithm)` of a and b, where beta = sign factor exp(logarithm)."""

    def function(a: Any, b: Any) -> Any:
        infinite = bitwise_and(gt(min(a, b), 0.0), ne(eq(a, math.inf), eq(b, math.inf)))
        a, sign = _reflected(a, b)
        b, other_sign = _reflected(b, a)
        pole = bitwise_and(bitwise_or(_is_pole(a), _is_pole(b)), eq(add(a, b), add(a, b)))
        a, b = max(a, b), min(a, b)
        out = combine(mul(sign, other_sign), *_beta_parts(a, b))
        return select_n(pole, select_n(infinite, out, at_infinity), math.inf)

    return function


def _beta_parts(a: Any, b: Any) -> tuple[Any, Any]:
    """Split beta(a, b), a >= b, into a factor and the logarithm of another: by gamma itself unless arguments are large.

    Source: DLMF 5.12.1; beta(a, b) beta(a + b, -b) = -pi / (b sin(pi b)) by 5.5.3, for a negative b.
    """
    c = add(a, b)
    small = lt(max(max(a, abs(b)), abs(c)), 140.0)  # there no product of the three gammas overflows
    positive, rising = gt(b, 0.0), bitwise_and(lt(b, 0.0), gt(c, 0.0))
    by_gamma = mul(_gamma(a), div(_gamma(b), _gamma(c)))
    safe = bitwise_or(positive, rising)
    factor, logarithm = _beta_factors(select_n(rising, select_n(safe, 1.0, a), c), select_n(safe, 1.0, abs(b)))
    reflection = div(-math.pi, mul(mul(b, _sin_pi(b)), factor))
    factor, logarithm = select_n(rising, factor, reflection), select_n(rising, logarithm, neg(logarithm))
    signs = mul(mul(_sign_of_gamma(a), _sign_of_gamma(b)), _sign_of_gamma(c))
    factor = select_n(safe, signs, factor)
    logarithm = select_n(safe, sub(add(lgamma(a), lgamma(b)), lgamma(c)), logarithm)
    by_gamma = select_n(_is_pole(c), by_gamma, 0.0)
    tiny = bitwise_and(gt(b, 0.0), lt(b, 1e-20))  # L(b) is infinite at 1e-306, where beta is 1/b - O(log a), DLMF 5.7.3
    factor, logarithm = select_n(tiny, factor, div(1.0, b)), select_n(tiny, logarithm, 0.0)
    return select_n(small, factor, by_gamma), select_n(small, logarithm, 0.0)


_beta = _by_beta(lambda sign, factor, logarithm: mul(mul(sign, factor), exp(logarithm)), 0.0)
_betaln = _by_beta(lambda sign, factor, logarithm: add(log(abs(factor)), logarithm), -math.inf)


def _comb(n: Any, k: Any) -> Any:
    """Compute binomial coefficients, 0 <= k <= n, DLMF 1.2.6; of integers, rounded where the error is below 1/2."""
    a, b = add(sub(n, k), 1.0), add(k, 1.0)
    factor, logarithm = _beta_parts(max(a, b), min(a, b))
    root = exp(mul(logarithm, -0.5))  # the beta function may underflow though its inverse over n + 1 does not overflow
    count = mul(mul(div(1.0, mul(add(n, 1.0), factor)), root), root)
    count = select_n(bitwise_and(eq(n, math.inf), lt(k, n)), count, select_n(eq(k, 0.0), n, 1.0))
    whole = bitwise_and(bitwise_and(_is_integer(n), _is_integer(k)), lt(count, 2.0**47))
    return select_n(whole, count, round(count))


# ---- Pochhammer's symbol -------------------------------------------------------------------------------------


def _positive_poch(z: Any, m: Any) -> Any:
    """Compute gamma(z + m) / gamma(z) for positive z and z + m, as gamma(m) / beta(z, m); inverted for negative m."""
    size = select_n(eq(m, 0.0), abs(m), 1.0)
    rising = div(_gamma(size), _beta(min(z, add(z, m)), size))
    return select_n(eq(m, 0.0), select_n(lt(m, 0.0), rising, div(1.0, rising)), 1.0)


def _poch(z: Any, m: Any) -> Any:
    """Compute gamma(z + m) / gamma(z); arguments that are not positive are reflected, DLMF 5.5.3.

    gamma(z) = pi / (sin(pi z) gamma(1 - z)).
    """
    end = add(z, m)
    both = bitwise_and(gt(z, 0.0), gt(end, 0.0))
    neither = bitwise_and(bitwise_and(le(z, 0.0), le(end, 0.0)), ne(m, 0.0))
    start = select_n(neither, select_n(both, 1.0, z), sub(1.0, end))
    ratio = _positive_poch(start, select_n(bitwise_or(both, neither), 0.0, m))
    sines = select_n(_is_integer(m), div(_sin_pi(z), _sin_pi(end)), _sign_by_parity(m))
    from_below = div(mul(mul(_gamma(end), _gamma(sub(1.0, z))), _sin_pi(z)), math.pi)
    from_above = div(math.pi, mul(mul(_sin_pi(end), _gamma(sub(1.0, end))), _gamma(z)))
    across = select_n(le(z, 0.0), from_above, from_below)
    out = select_n(both, select_n(neither, across, mul(sines, ratio)), ratio)
    small = lt(max(abs(z), abs(end)), 140.0)
    direct = bitwise_and(small, bitwise_not(bitwise_or(_is_pole(z), _is_pole(end))))
    out = select_n(direct, out, div(_gamma(end), _gamma(z)))
    out = select_n(bitwise_and(_is_pole(end), bitwise_not(_is_pole(z))), out, math.inf)
    crossed = bitwise_and(_is_pole(z), bitwise_and(bitwise_not(_is_pole(end)), gt(end, -math.inf)))
    out = select_n(crossed, out, mul(select_n(crossed, z, 0.0), 0.0))  # one of the factors is 0
    # If z is so near to 0 that z + m has lost it, and may be a pole: the product has finite factors.
    lost = bitwise_and(bitwise_and(_is_pole(end), bitwise_not(_is_integer(z))), _is_integer(m))
    close = bitwise_and(bitwise_and(small, lt(abs(z), 0.5)), bitwise_and(lt(m, 0.0), _is_integer(m)))
    lost = bitwise_or(lost, bitwise_and(close, ne(z, 0.0)))
    reflected = mul(_sign_by_parity(m), div(_gamma(sub(1.0, z)), _gamma(sub(1.0, end))))
    out = select_n(lost, out, reflected)
    out = select_n(eq(min(z, end), -math.inf), out, math.nan)
    return select_n(eq(m, 0.0), out, 1.0)


# ---- products with logarithms --------------------------------------------------------------------------------


def _vanishing(logarithm: Callable[[Any], Any]) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        return select_n(bitwise_and(eq(x, 0.0), eq(y, y)), mul(x, logarithm(y)), 0.0)

    return function


def _kl_div(p: Any, q: Any) -> Any:
    """Compute p log(p/q) - p + q; for p/q from 1/2 to 2 by a series in s = (p - q) / (p + q), A&S 4.1.27."""
    ratio = div(p, q)
    near = bitwise_and(gt(ratio, 0.5), lt(ratio, 2.0))
    one = full_like(p, 1)
    half = select_n(near, full_like(p, 0), mul(sub(p, q), 0.5))
    mean = select_n(near, one, add(mul(p, 0.5), mul(q, 0.5)))
    s = div(half, mean)
    square = mul(s, s)
    total: Any = mul(square, 1 / 35)
    for k in range(33, 1, -2):
        total = mul(add(total, 1 / k), square)
    close = mul(mul(s, 2.0), add(half, mul(p, total)))
    logarithm = g.log_ratio(select_n(near, p, one), select_n(near, q, one))
    far = add(sub(select_n(eq(p, 0.0), mul(p, logarithm), p), p), q)
    return select_n(near, far, close)


for _primitive, _function in (
    (g.gamma_p, _gamma), (g.beta_p, _beta), (g.betaln_p, _betaln), (g.comb_p, _comb), (g.poch_p, _poch)
):  # fmt: skip
    emit.rules[_primitive] = in_float64(_elementwise(_function))
emit.rules[g.xlogy_p] = in_float32(_elementwise(_vanishing(log)))
emit.rules[g.xlog1py_p] = in_float32(_elementwise(_vanishing(log1p)))
emit.rules[g.kl_div_p] = in_float32(_elementwise(_kl_div))
