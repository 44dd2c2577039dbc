"""Lowering of special functions: chlo's where it has them, else composed here.

bessel_i0e: Chebyshev series on [0, 8] and [8, inf), as in Clenshaw 1962; accurate to 3e-16 of float64, 2e-7 of float32.
igamma: power series below x = a + 1 (A&S 6.5.29), continued fraction above it (A&S 6.5.31) by the modified Lentz method
(Thompson & Barnett 1986), until they converge. Relative error about 1e-13 in float64 and 1e-5 in float32, mostly 1e-15
and 3e-7. For a < 1/2, where igammac is small though x is, too, it has a series of its own below x = 1 (Kummer's
function of -x, A&S 6.5.12), and the fraction above. For a > 1e6 (in float32 1e3) and x near a, where these need many
terms, Temme's uniform expansion (DLMF 8.12).
betainc: continued fraction of Didonato & Morris 1992, eq. 9 (the even part of A&S 26.5.8), by the same method, in 1 - x
where that converges faster. It needs x and 1 - x, as one of them may round to 1. Float32 is computed in float64. If it
is close to 1 by a parameter below 1/2, its complement has a series (A&S 26.5.4), which does not cancel. For
parameters above 1e8 and x near the mean, where the fraction needs too many terms, the uniform expansion of DLMF 8.18.9.
Half precision of the others is computed in float32.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes

from tapeless.lowering import emit, hurwitz_zeta
from tapeless.lowering.emit import compose_rule, in_float32, in_float64, while_loop, write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.rules.elementwise import operation
from tapeless.tracer.primitives import special as s
from tapeless.tracer.primitives.bits import bitwise_and, bitwise_not, bitwise_or
from tapeless.tracer.primitives.chebyshev import chebyshev
from tapeless.tracer.primitives.elementwise import (
    abs,
    add,
    div,
    eq,
    exp,
    expm1,
    ge,
    gt,
    le,
    log,
    log1p,
    lt,
    max,
    min,
    mul,
    neg,
    rsqrt,
    select_n,
    sub,
)
from tapeless.tracer.primitives.reduction import reduce_or
from tapeless.tracer.primitives.shape import full
from tapeless.tracer.types import aval_of

_OPERATIONS = {
    s.erf_p: "chlo.erf",
    s.erfc_p: "chlo.erfc",
    s.erf_inv_p: "chlo.erf_inv",
    s.bessel_i1e_p: "chlo.bessel_i1e",
}
for _primitive, _name in _OPERATIONS.items():
    emit.rules[_primitive] = in_float32(operation(_name))


def _digamma(f: Function, outs: Any, x: Value) -> Any:
    (y,) = operation("chlo.digamma")(f, outs, x)
    return write_out(f, _with_pole_at_zero, [x, y])


def _with_pole_at_zero(x: Any, y: Any) -> Any:
    """Return -1/x at 0 and -0, as SciPy and DLMF 5.7.6, where chlo's digamma is nan; else y."""
    return select_n(eq(x, 0.0), y, div(-1.0, x))


emit.rules[s.digamma_p] = _digamma
emit.rules[s.zeta_p] = in_float32(hurwitz_zeta.zeta)
emit.rules[s.polygamma_p] = in_float32(hurwitz_zeta.polygamma)


def _epsilon(x: Any) -> float:
    return float(ml_dtypes.finfo(aval_of(x).dtype).eps)


# ---- bessel_i0e ----------------------------------------------------------------------------------------------

# Interpolants of i0e(x) in x/4 - 1, and of sqrt(x) i0e(x) in 16/x - 1.
_I0E_SMALL = (
    0.33839763720473803,
    -0.3046826723431984,
    0.17162090152220877,
    -0.09490109704804764,
    0.04930528423967071,
    -0.02373741480589947,
    0.010546460394594998,
    -0.004324309995050576,
    0.0016394756169413357,
    -0.0005763755745385824,
    0.00018850288509584165,
    -5.754195010082104e-05,
    1.6448448070728896e-05,
    -4.4167383584587505e-06,
    1.1173875391201037e-06,
    -2.670793853940612e-07,
    6.046995022541919e-08,
    -1.300025009986248e-08,
    2.6598237246823866e-09,
    -5.189795601635263e-10,
    9.675809035373237e-11,
    -1.726826291441556e-11,
    2.95505266312964e-12,
    -4.856446783111929e-13,
    7.676185498604936e-14,
    -1.1685332877993437e-14,
    1.7153912855555052e-15,
    -2.4312798465763997e-16,
    3.330794494579337e-17,
    -4.415341915237135e-18,
)
_I0E_LARGE = (
    0.4022452055070544,
    0.0033691164782556943,
    6.889758346916825e-05,
    2.8913705208347567e-06,
    2.0489185894690638e-07,
    2.266668990498178e-08,
    3.3962320257083865e-09,
    4.94060238822497e-10,
    1.1889147107846439e-11,
    -3.1499165279632416e-11,
    -1.3215811840447713e-11,
    -1.7941785315068062e-12,
    7.180124451383666e-13,
    3.8527783827421426e-13,
    1.54008621752141e-14,
    -4.150569347287222e-14,
    -9.554846698828307e-15,
    3.8116806693526224e-15,
    1.7725601330565263e-15,
    -3.425485619677219e-16,
    -2.8276239805165836e-16,
    3.461222867697461e-17,
    4.46562142029676e-17,
    -4.830504485944183e-18,
    -7.23318048787411e-18,
)


def _bessel_i0e(x: Any) -> Any:
    x = abs(x)
    small = chebyshev(sub(mul(0.25, x), 1.0), _I0E_SMALL)
    far = max(x, 8.0)
    large = mul(chebyshev(sub(div(16.0, far), 1.0), _I0E_LARGE), rsqrt(far))
    return select_n(lt(x, 8.0), large, small)


def _bessel_i0(x: Any) -> Any:
    return select_n(eq(abs(x), math.inf), _unscaled(x, s.bessel_i0e(x)), math.inf)


def _bessel_i1(x: Any) -> Any:
    return select_n(eq(abs(x), math.inf), _unscaled(x, s.bessel_i1e(x)), x)


def _unscaled(x: Any, scaled: Any) -> Any:
    """Multiply `scaled` by exp(|x|), in two factors, as exp(|x|) may overflow before the product does."""
    root = exp(mul(0.5, abs(x)))
    return mul(mul(scaled, root), root)


emit.rules[s.bessel_i0_p] = in_float32(compose_rule(_bessel_i0))
emit.rules[s.bessel_i1_p] = in_float32(compose_rule(_bessel_i1))
emit.rules[s.bessel_i0e_p] = in_float32(compose_rule(_bessel_i0e))

# ---- igamma --------------------------------------------------------------------------------------------------

_LIMIT = 20000  # terms; x = a = 1e6 needs about 6000
_SMALL_ORDER = 0.5
_EULER = 0.5772156649015329
_ZETA = (
    0.6449340668482264,
    0.2020569031595943,
    0.08232323371113819,
    0.03692775514336993,
    0.01734306198444914,
    0.008349277381922827,
    0.00407735619794434,
    0.0020083928260822143,
    0.0009945751278180853,
    0.0004941886041194645,
    0.0002460865533080483,
    0.00012271334757848915,
    6.124813505870483e-05,
    3.058823630702049e-05,
    1.528225940865187e-05,
    7.637197637899763e-06,
    3.81729326499984e-06,
    1.908212716553939e-06,
    9.539620338727962e-07,
    4.769329867878064e-07,
    2.38450502727733e-07,
    1.1921992596531106e-07,
    5.960818905125948e-08,
    2.980350351465228e-08,
    1.4901554828365043e-08,
)  # zeta(k) - 1 for k = 2, 3, ...


def _series_start(a: Any, x: Any) -> Any:
    one, zero = (full(aval_of(a).shape, v, aval_of(a).dtype) for v in (1, 0))
    return full((), 0, aval_of(a).dtype), gt(x, 0.0), one, zero, one, zero, a, x


def _series_step(n: Any, going: Any, term: Any, slope: Any, total: Any, total_slope: Any, a: Any, x: Any) -> Any:
    """Add the next term of x^n / ((a+1) ... (a+n)), and of its derivative by a, which is term * slope."""
    n = add(n, 1.0)
    r = div(1.0, add(a, n))
    term, slope = mul(term, mul(x, r)), sub(slope, r)
    total, total_slope = add(total, term), add(total_slope, mul(term, slope))
    going = gt(mul(term, sub(1.0, slope)), mul(_epsilon(x), total))
    return n, going, term, slope, total, total_slope, a, x


def _fraction_start(a: Any, x: Any) -> Any:
    b = sub(add(x, 1.0), a)
    d = div(1.0, b)
    slope = mul(d, d)
    shape, dtype = aval_of(a).shape, aval_of(a).dtype
    going = full(shape, True, bool)
    return full((), 0, dtype), going, b, full(shape, 1e30, dtype), full(shape, 0, dtype), d, slope, d, slope, a


def _fraction_step(
    n: Any, going: Any, b: Any, c: Any, c_slope: Any, d: Any, d_slope: Any, h: Any, h_slope: Any, a: Any
) -> Any:
    """Add a level of 1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - ...))), and of its derivative by a.

    With p = n (a - n), p' = n, b' = -1:  d <- 1/(p d + b), c <- b + p/c, h <- h c d; slopes by the chain rule.
    """
    n = add(n, 1.0)
    p, b = mul(n, sub(a, n)), add(b, 2.0)
    inverse = div(1.0, add(mul(p, d), b))
    d_slope = mul(neg(mul(inverse, inverse)), sub(add(mul(n, d), mul(p, d_slope)), 1.0))
    c_slope = sub(div(sub(n, mul(p, div(c_slope, c))), c), 1.0)
    c, d = add(b, div(p, c)), inverse
    factor, factor_slope = mul(c, d), add(mul(c_slope, d), mul(c, d_slope))
    # Elements that have converged stay as they are while others go on: each factor would add its rounding to them.
    h_slope = select_n(going, h_slope, add(mul(h_slope, factor), mul(h, factor_slope)))
    h = select_n(going, h, mul(h, factor))
    tolerance = 4 * _epsilon(a)
    change = mul(abs(h), abs(factor_slope))
    moved = bitwise_or(gt(abs(sub(factor, 1.0)), tolerance), gt(change, mul(tolerance, add(abs(h), abs(h_slope)))))
    return n, bitwise_and(going, moved), b, c, c_slope, d, d_slope, h, h_slope, a


def _unfinished(n: Any, going: Any, *state: Any) -> Any:
    return bitwise_and(lt(n, float(_LIMIT)), reduce_or(going, range(aval_of(going).ndim)))


def _igamma_regions(a: Any, x: Any) -> Any:
    """Tell where to use the series; return operands of series and fraction, harmless where these are not used."""
    proper = bitwise_and(bitwise_and(gt(a, 0.0), ge(x, 0.0)), lt(x, math.inf))
    proper = bitwise_and(proper, bitwise_not(_is_of_large_order(a, x)))
    a = select_n(proper, 1.0, a)
    far = ge(x, select_n(lt(a, _SMALL_ORDER), add(a, 1.0), 1.0))
    return (
        bitwise_not(far),
        a,
        select_n(bitwise_or(bitwise_not(proper), far), x, 0.0),
        select_n(bitwise_and(proper, far), add(a, 2.0), x),
    )


def _by_series_and_fraction(result: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule that computes `result(a, x, near, sum, its slope, fraction, its slope)`; slopes are by a."""

    def rule(f: Function, outs: Any, a: Value, x: Value) -> Any:
        a, x = (f.broadcast(v, outs[0].shape) for v in (a, x))
        near, safe_a, low, high = write_out(f, _igamma_regions, [a, x])
        series = while_loop(f, _unfinished, _series_step, write_out(f, _series_start, [safe_a, low]))
        fraction = while_loop(f, _unfinished, _fraction_step, write_out(f, _fraction_start, [safe_a, high]))
        return write_out(f, result, [a, x, near, series[4], series[5], fraction[7], fraction[8]])

    return in_float32(rule)


def _within_domain(a: Any, x: Any, inside: Any, ends: tuple[float, float, float, float]) -> Any:
    """Return `inside`; at x = 0, infinite x, a = 0 and infinite a the limits `ends`; nan outside of the domain."""
    at_zero, at_infinity, at_order_zero, at_infinite_order = ends
    out = select_n(eq(x, 0.0), select_n(eq(x, math.inf), inside, at_infinity), at_zero)
    out = select_n(eq(a, 0.0), select_n(eq(a, math.inf), out, at_infinite_order), at_order_zero)
    proper = bitwise_and(bitwise_and(ge(a, 0.0), ge(x, 0.0)), gt(add(a, x), 0.0))
    proper = bitwise_and(proper, lt(min(a, x), math.inf))
    return select_n(proper, math.nan, out)


def _igamma(a: Any, x: Any, near: Any, total: Any, total_slope: Any, h: Any, h_slope: Any) -> Any:
    weight = s.gamma_weight(a, x)
    inside = select_n(near, sub(1.0, mul(weight, mul(a, h))), mul(weight, total))
    inside = select_n(_is_of_large_order(a, x), inside, _tail_of_large_order(a, x, -1.0))
    return _within_domain(a, x, inside, (0.0, 1.0, 1.0, 0.0))


def _igammac(a: Any, x: Any, near: Any, total: Any, total_slope: Any, h: Any, h_slope: Any) -> Any:
    weight = s.gamma_weight(a, x)
    by_series = select_n(lt(a, _SMALL_ORDER), sub(1.0, mul(weight, total)), _igammac_of_small_order(a, x))
    inside = select_n(near, mul(weight, mul(a, h)), by_series)
    inside = select_n(_is_of_large_order(a, x), inside, _tail_of_large_order(a, x, 1.0))
    return _within_domain(a, x, inside, (1.0, 0.0, 0.0, 1.0))


def _igammac_of_small_order(a: Any, x: Any) -> Any:
    """Compute 1 - e^g (1 - a s) without cancellation: g = log(x^a / gamma(a+1)), s = x/(a+1) - x^2/(2! (a+2)) + ..."""
    g, s, power = sub(mul(a, log(x)), _log_gamma_1p(a)), mul(a, 0.0), mul(x, -1.0)
    for n in range(1, 19):
        s, power = sub(s, div(power, add(a, float(n)))), mul(power, mul(x, -1 / (n + 1)))
    return sub(mul(exp(g), mul(a, s)), expm1(g))


def _log_gamma_1p(a: Any) -> Any:
    """Compute log gamma(1 + a) for 0 <= a < 1/2, with full relative precision for small a. Source: A&S 6.1.33."""
    return sub(_log_gamma_2p(a), log1p(a))


def _log_gamma_2p(t: Any) -> Any:
    """Compute log gamma(2 + t) for |t| <= 1/2, with full relative precision for small t. Source: A&S 6.1.33."""
    total = mul(t, 0.0)
    for k in range(len(_ZETA) + 1 if _epsilon(t) < 1e-10 else len(_ZETA) // 2, 1, -1):
        total = mul(add(total, _ZETA[k - 2] * (-1) ** k / k), t)
    return mul(add(total, 1 - _EULER), t)


def _lgamma(f: Function, outs: Any, x: Value) -> Any:
    return write_out(f, _near_its_zeros, [x, *operation("chlo.lgamma")(f, outs, x)])


def _near_its_zeros(x: Any, y: Any) -> Any:
    """Return log gamma by its series from 1/2 to 5/2, where chlo's has digits relative to 1 only; else y."""
    near = bitwise_and(ge(x, 0.5), le(x, 2.5))
    x = select_n(near, 1.0, x)
    low = lt(x, 1.5)
    t = select_n(low, sub(x, 2.0), sub(x, 1.0))
    series = sub(_log_gamma_2p(t), select_n(low, mul(t, 0.0), log1p(t)))
    return select_n(near, y, series)


emit.rules[s.lgamma_p] = in_float32(_lgamma)


def _relative_slope(a: Any, x: Any, near: Any, total: Any, total_slope: Any, h: Any, h_slope: Any) -> Any:
    """Compute (dP/da) / weight. The weight's logarithm has the slope log(x) - digamma(a + 1)."""
    log_x = log(x)
    by_series = add(mul(sub(log_x, s.digamma(add(a, 1.0))), total), total_slope)
    by_fraction = mul(neg(a), add(mul(sub(log_x, s.digamma(a)), h), h_slope))
    found = select_n(near, by_fraction, by_series)
    return select_n(_is_of_large_order(a, x), found, _relative_slope_of_large_order(a, x))


def _is_of_large_order(a: Any, x: Any) -> Any:
    """Tell whether a is so large, and x so near, that the expansion is precise where series and fraction are long."""
    least, distance = (1e6, 0.01) if _epsilon(a) < 1e-10 else (1e3, 0.1)
    large = bitwise_and(gt(a, least), lt(a, math.inf))
    return bitwise_and(large, le(abs(sub(x, a)), mul(a, distance)))


# Coefficients of c0(eta) + c1(eta) / a + ...: DLMF 8.12.12.
_C0 = (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515)
_C1 = (-1 / 540, -1 / 288, 1 / 378, -77 / 77760)
_SQUARED = tuple(2 * (-1) ** k / (k + 2) for k in range(8))  # (eta / mu)^2 in mu = x/a - 1


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    total = mul(x, 0.0)
    for c in reversed(coefficients):
        total = add(mul(total, x), c)
    return total


def _derivative(coefficients: Sequence[float]) -> list[float]:
    return [k * c for k, c in enumerate(coefficients)][1:]


def _eta(a: Any, x: Any) -> tuple[Any, Any, Any]:
    """Compute mu = x/a - 1, eta of the sign of mu with eta^2 / 2 = mu - log(1 + mu), and mu / eta."""
    mu = div(sub(x, a), a)
    squared = _polynomial(mu, _SQUARED)
    ratio = rsqrt(squared)
    return mu, mul(mul(mu, squared), ratio), ratio


def _tail_of_large_order(a: Any, x: Any, sign: float) -> Any:
    """Compute erfc(sign eta sqrt(a/2)) / 2 + sign R: the upper tail; for sign -1, the lower. DLMF 8.12.3 and 8.12.4."""
    _, eta, _ = _eta(a, x)
    scaled = mul(eta, mul(a, rsqrt(mul(a, 2.0))))
    rest = mul(_stirling_weight(a, x), add(_polynomial(eta, _C0), div(_polynomial(eta, _C1), a)))
    return add(mul(s.erfc(mul(scaled, sign)), 0.5), mul(rest, sign))


def _stirling_weight(a: Any, x: Any) -> Any:
    """Compute exp(-a eta^2 / 2) / sqrt(2 pi a): the weight, with the first term of Stirling's series of gamma(a)."""
    return mul(s.gamma_weight(a, x), add(div(1 / 12, a), 1.0))


def _relative_slope_of_large_order(a: Any, x: Any) -> Any:
    """Compute (dP/da) / weight of the lower tail P, term by term: eta has the slope -(mu / eta) / a."""
    mu, eta, ratio = _eta(a, x)
    c = add(_polynomial(eta, _C0), div(_polynomial(eta, _C1), a))
    by_weight = mul(sub(log1p(mu), div(0.5, a)), c)
    by_eta = mul(div(ratio, a), _polynomial(eta, _derivative(_C0)))
    slope = add(sub(sub(mul(eta, 0.5), ratio), by_weight), by_eta)
    return mul(slope, add(div(1 / 12, a), 1.0))


def _igamma_grad_a(a: Any, x: Any, *state: Any) -> Any:
    inside = mul(s.gamma_weight(a, x), _relative_slope(a, x, *state))
    return _within_domain(a, x, inside, (0.0, 0.0, math.nan, math.nan))


def _random_gamma_grad(a: Any, x: Any, *state: Any) -> Any:
    """Compute dx/da at constant P, as -(dP/da) / (dP/dx); dP/dx is the weight times a / x."""
    inside = mul(neg(_relative_slope(a, x, *state)), div(x, a))
    return _within_domain(a, x, inside, (0.0, math.inf, math.nan, math.nan))


emit.rules[s.igamma_p] = _by_series_and_fraction(_igamma)
emit.rules[s.igammac_p] = _by_series_and_fraction(_igammac)
emit.rules[s.igamma_grad_a_p] = _by_series_and_fraction(_igamma_grad_a)
emit.rules[s.random_gamma_grad_p] = _by_series_and_fraction(_random_gamma_grad)

# ---- betainc -------------------------------------------------------------------------------------------------


def _beta_start(a: Any, b: Any, x: Any, y: Any) -> Any:
    shape, dtype = aval_of(a).shape, aval_of(a).dtype
    first = mul(div(a, add(a, 1.0)), _beta_excess(a, b, x, y))
    return full((), 0, dtype), full(shape, True, bool), first, full(shape, 0, dtype), first, a, b, x, y


def _beta_excess(a: Any, b: Any, x: Any, y: Any) -> Any:
    """Compute 1 + a - (a + b) x, from the smaller of x and y = 1 - x, as the other may round to 1."""
    n = add(a, b)
    return add(select_n(gt(a, b), sub(a, mul(n, x)), sub(mul(n, y), b)), 1.0)


def _beta_step(n: Any, going: Any, c: Any, d: Any, h: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """Add a level of beta0 + alpha1/(beta1 + ...): c <- beta + alpha/c, d <- 1/(beta + alpha d), h <- h c d."""
    n = add(n, 1.0)
    below, top, w = add(a, sub(n, 1.0)), add(a, sub(mul(2.0, n), 1.0)), mul(mul(n, sub(b, n)), x)
    alpha = mul(mul(div(below, top), div(add(below, b), top)), mul(w, x))
    level = add(_beta_excess(a, b, x, y), mul(n, add(y, 1.0)))
    beta = add(add(n, div(w, top)), mul(div(add(a, n), add(top, 2.0)), level))
    c, d = add(beta, div(alpha, c)), div(1.0, add(beta, mul(alpha, d)))
    h = select_n(going, h, mul(h, mul(c, d)))
    return n, bitwise_and(going, gt(abs(sub(mul(c, d), 1.0)), 4 * _epsilon(a))), c, d, h, a, b, x, y


def _beta_regions(a: Any, b: Any, x: Any) -> Any:
    """Tell where to exchange x and 1 - x; return operands for that, harmless at the ends and outside of the domain."""
    inside = _beta_domain(a, b, x)
    inside = bitwise_and(inside, bitwise_and(gt(x, 0.0), lt(x, 1.0)))
    inside = bitwise_and(inside, bitwise_not(_are_large_parameters(a, b, x)))
    a, b, x = (select_n(inside, v, y) for v, y in ((1.0, a), (1.0, b), (0.25, x)))
    far, y = gt(x, div(add(a, 1.0), add(add(a, b), 2.0))), sub(1.0, x)
    return far, *(select_n(far, v, w) for v, w in ((a, b), (b, a), (x, y), (y, x)))


def _beta_domain(a: Any, b: Any, x: Any) -> Any:
    positive = bitwise_and(bitwise_and(gt(a, 0.0), lt(a, math.inf)), bitwise_and(gt(b, 0.0), lt(b, math.inf)))
    return bitwise_and(positive, bitwise_and(ge(x, 0.0), ge(1.0, x)))


def _complement_start(a: Any, b: Any, x: Any, y: Any) -> Any:
    """Begin the series of `_complement_of_small_parameter`; no steps unless a is small."""
    one, zero = (full(aval_of(a).shape, v, aval_of(a).dtype) for v in (1, 0))
    small = lt(a, _SMALL_ORDER)
    return full((), 0, aval_of(a).dtype), small, select_n(small, zero, one), zero, a, b, x


def _complement_step(n: Any, going: Any, power: Any, total: Any, a: Any, b: Any, x: Any) -> Any:
    """Add the next term of (1 - b) ... (n - b) x^n / (n! (a + n))."""
    n = add(n, 1.0)
    power = mul(power, mul(div(sub(n, b), n), x))
    total = add(total, div(power, add(a, n)))
    return n, bitwise_and(going, gt(abs(power), mul(_epsilon(a), abs(total)))), power, total, a, b, x


def _complement_of_small_parameter(a: Any, b: Any, x: Any, total: Any) -> Any:
    """Compute 1 - e^g (1 + a total) without cancellation, g = log(x^a / (a B(a, b))): A&S 26.5.4, a < 1/2."""
    g = sub(add(mul(a, log(x)), _log_gamma_ratio(a, b)), _log_gamma_1p(a))
    return neg(add(expm1(g), mul(exp(g), mul(a, total))))


def _log_gamma_ratio(a: Any, b: Any) -> Any:
    """Compute log(gamma(a + b) / gamma(b)) for 0 < a < 1/2, with full precision relative to a.

    By recurrence it is that of b + 16, by Stirling's series, each difference with the factor a: A&S 6.1.15, 6.1.40.
    """
    rise = mul(a, 0.0)  # the product of the 1 + a / (b + k), minus 1
    for k in range(16):
        term = div(a, add(b, float(k)))
        rise = add(rise, add(term, mul(rise, term)))
    b = add(b, 16.0)
    d = div(a, add(a, b))
    power, step, scale = neg(d), mul(d, sub(d, 2.0)), div(1.0, b)  # (b / (a + b))^k - 1, for k = 1 and 2
    series, square = mul(a, 0.0), mul(scale, scale)
    for c in (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188):
        series = add(series, mul(mul(power, scale), c))
        power, scale = add(power, add(step, mul(power, step))), mul(scale, square)
    stirling = add(sub(mul(sub(b, 0.5), log1p(div(a, b))), a), mul(a, log(add(a, b))))
    return sub(add(stirling, series), log1p(rise))


def _incomplete_beta(complement: bool) -> Callable[..., Any]:
    """Return the rule of betainc, or of 1 - betainc."""

    def result(a: Any, b: Any, x: Any, far: Any, *found: Any) -> Any:
        *safe, fraction, total = found
        tail = mul(s.beta_weight(*safe), div(safe[0], fraction))
        by_series = _complement_of_small_parameter(safe[0], safe[1], safe[2], total)
        rest = select_n(lt(safe[0], _SMALL_ORDER), sub(1.0, tail), by_series)
        out = select_n(far, rest, tail) if complement else select_n(far, tail, rest)
        by_expansion = _betainc_of_large_parameters(a, b, x, 1.0 if complement else -1.0)
        out = select_n(_are_large_parameters(a, b, x), out, by_expansion)
        return _with_beta_limits(a, b, x, out, complement)

    def rule(f: Function, outs: Any, *operands: Value) -> Any:
        a, b, x = (f.broadcast(v, outs[0].shape) for v in operands)
        far, *safe = write_out(f, _beta_regions, [a, b, x])
        fraction = while_loop(f, _unfinished, _beta_step, write_out(f, _beta_start, safe))[4]
        total = while_loop(f, _unfinished, _complement_step, write_out(f, _complement_start, safe))[3]
        return write_out(f, result, [a, b, x, far, *safe, fraction, total])

    return in_float64(rule)


def _are_large_parameters(a: Any, b: Any, x: Any) -> Any:
    """Tell whether both parameters are so large, and x so near to the mean, that the fraction needs too many terms."""
    u, v = _distances_from_the_mean(a, b, x)
    large = bitwise_and(gt(min(a, b), 1e8), lt(max(a, b), math.inf))
    return bitwise_and(large, le(max(abs(u), abs(v)), 0.01))


def _distances_from_the_mean(a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    """Compute (x - m) / m and (m - x) / (1 - m) for the mean m = a / (a + b), from the smaller of x and 1 - x."""
    n = add(a, b)
    excess = select_n(gt(a, b), sub(mul(n, x), a), sub(b, mul(n, sub(1.0, x))))
    return div(excess, a), neg(div(excess, b))


def _betainc_of_large_parameters(a: Any, b: Any, x: Any, sign: float) -> Any:
    """Compute erfc(sign z) / 2 - sign exp(-z^2) / sqrt(2 pi n) c0: the upper tail; for sign -1, the lower.

    z = eta sqrt(n / 2) and n = a + b: DLMF 8.18.9, 8.18.10.
    With u and v the distances from the mean m, eta^2 = (x - m)^2 q / (m (1 - m)), where q is near 1.
    """
    u, v = _distances_from_the_mean(a, b, x)
    n = add(a, b)
    mean, rest = div(a, n), div(b, n)
    q = add(mul(rest, _polynomial(u, _SQUARED)), mul(mean, _polynomial(v, _SQUARED)))
    root, inverse_spread = mul(q, rsqrt(q)), rsqrt(mul(mean, rest))
    z = mul(mul(u, mul(div(a, rsqrt(mul(n, 0.5))), div(root, n))), inverse_spread)
    slope = sub(mul(div(rest, mean), _polynomial(u, _SQUARED[1:])), mul(div(mean, rest), _polynomial(v, _SQUARED[1:])))
    c0 = neg(div(slope, mul(inverse_spread, mul(root, add(root, 1.0)))))
    weight = mul(exp(neg(mul(z, z))), rsqrt(mul(n, 2 * math.pi)))
    return sub(mul(s.erfc(mul(z, sign)), 0.5), mul(mul(weight, c0), sign))


def _with_beta_limits(a: Any, b: Any, x: Any, out: Any, complement: bool) -> Any:
    """Replace `out` at the ends, and where one parameter is 0 or infinite and all mass is at 0 or 1, by its limits."""
    zero, one = (full(aval_of(x).shape, v, aval_of(x).dtype) for v in ((1, 0) if complement else (0, 1)))
    out = select_n(eq(x, 0.0), select_n(eq(x, 1.0), out, one), zero)
    out = select_n(_beta_domain(a, b, x), math.nan, out)
    within = bitwise_and(bitwise_and(ge(a, 0.0), ge(b, 0.0)), bitwise_and(ge(x, 0.0), ge(1.0, x)))
    at_0, at_1 = (bitwise_and(within, bitwise_or(eq(v, 0.0), eq(w, math.inf))) for v, w in ((a, b), (b, a)))
    at_0, at_1 = bitwise_and(at_0, bitwise_not(at_1)), bitwise_and(at_1, bitwise_not(at_0))
    out = select_n(at_0, out, select_n(gt(x, 0.0), zero, one))
    return select_n(at_1, out, select_n(ge(x, 1.0), zero, one))


emit.rules[s.betainc_p] = _incomplete_beta(complement=False)
emit.rules[s.betaincc_p] = _incomplete_beta(complement=True)
