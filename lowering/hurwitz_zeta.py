"""Hurwitz's zeta function and the polygamma functions, by Euler and Maclaurin's summation formula (DLMF 25.11.7).

zeta(x, q) is the sum over k >= 0 of (q + k)^-x. Ten terms are summed, the others are an integral and ten corrections.
All is relative to q^-x, which may underflow though the result does not. Error of float64: a few ulp, and as many as
the exponent x log(q) is large; float32 likewise, and half precision is computed in float32.
For negative q and integers x it is zeta(x, f) + (-1)^x zeta(x, 1 - f) - (-1)^x zeta(x, 1 - q), f = q - floor(q), as
powers of negative numbers have that sign; for other x it is nan. Where x is odd and f near 1/2 the sum loses digits.
"""

import math
from typing import Any

import ml_dtypes

from tapeless.lowering.emit import while_loop, write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.primitives.bits import bitwise_and, bitwise_not, bitwise_or
from tapeless.tracer.primitives.elementwise import (
    add,
    ceil,
    div,
    eq,
    exp,
    floor,
    gt,
    le,
    log1p,
    lt,
    min,
    mul,
    ne,
    neg,
    pow,
    select_n,
    sqrt,
    sub,
)
from tapeless.tracer.primitives.reduction import reduce_or
from tapeless.tracer.primitives.shape import full
from tapeless.tracer.primitives.special import digamma, stirling_remainder
from tapeless.tracer.types import aval_of

_SUMMED = 10
# B_2k / (2k)! for k = 1, 2, ...
_BERNOULLI = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)
_FACTORIALS = 20  # n! is a product up to this n, beyond by Stirling's series


def zeta(f: Function, outs: Any, x: Value, q: Value) -> list[Value]:
    """Emit zeta(x, q); infinite at x = 1 and at poles, nan for x < 1."""
    x, q = (f.broadcast(v, outs[0].shape) for v in (x, q))
    (one,) = write_out(f, _one_as, [x])
    return write_out(f, _with_poles, [_scaled(f, one, one, x, q), x, q])


def polygamma(f: Function, outs: Any, n: Value, x: Value) -> list[Value]:
    """Emit (-1)^(n+1) n! zeta(n + 1, x), digamma for n = 0; nan for other numbers than integers, and below 0."""
    n, x = (f.broadcast(v, outs[0].shape) for v in (n, x))
    exponent, root, unit = write_out(f, _factorial, [n])
    return write_out(f, _polygamma_result, [_scaled(f, root, unit, exponent, x), n, exponent, x])


def _scaled(f: Function, root: Value, unit: Value, x: Value, q: Value) -> Value:
    """Emit root^2 unit^x zeta(x, q); sums for negative q in a loop of one step, skipped if there is none."""
    state = write_out(f, _of_positive, [root, unit, x, q])
    return while_loop(f, lambda going, *_: going, _of_negative, state)[1]


def _one_as(x: Any) -> Any:
    return full(aval_of(x).shape, 1, aval_of(x).dtype)


def _of_positive(root: Any, unit: Any, x: Any, q: Any) -> Any:
    positive = select_n(gt(q, 0.0), _one_as(x), q)
    below = _is_between_poles(q)
    return reduce_or(below, range(aval_of(q).ndim)), _product(root, unit, x, positive), root, unit, x, q


def _of_negative(going: Any, found: Any, root: Any, unit: Any, x: Any, q: Any) -> Any:
    below = _is_between_poles(q)
    q = select_n(below, -0.5, q)
    sign = select_n(_is_even(x), neg(_one_as(x)), _one_as(x))
    both = add(_product(root, unit, x, sub(q, floor(q))), mul(sign, _product(root, unit, x, sub(ceil(q), q))))
    total = sub(both, mul(sign, _product(root, unit, x, sub(1.0, q))))
    return bitwise_and(going, ne(going, going)), select_n(below, found, total), root, unit, x, q


def _is_between_poles(q: Any) -> Any:
    return bitwise_and(lt(q, 0.0), bitwise_not(_is_integer(q)))


def _is_integer(x: Any) -> Any:
    return eq(x, floor(x))


def _is_even(x: Any) -> Any:
    return _is_integer(mul(x, 0.5))


def _product(root: Any, unit: Any, x: Any, q: Any) -> Any:
    """Compute root^2 unit^x zeta(x, q) for x > 1 and q > 0, by factors that are numbers if it is."""
    infinite, x = eq(q, math.inf), min(x, _largest(x))
    q = select_n(infinite, q, _one_as(q))
    power = mul(root, pow(div(q, unit), mul(x, -0.5)))
    return select_n(infinite, mul(mul(_relative(x, q), power), power), 0.0)


def _largest(x: Any) -> float:
    return float(ml_dtypes.finfo(aval_of(x).dtype).max)


def _relative(x: Any, q: Any) -> Any:
    """Compute q^x zeta(x, q) for x > 1 and q > 0.

    Where x is large beside w = q + 10 the corrections would grow, but their factor (w/q)^-x is zero; `rate` is bounded
    there, so that they are no nan.
    """
    total = _one_as(x)
    for k in range(1, _SUMMED):
        total = add(total, _decay(x, q, k))
    last, w = _decay(x, q, _SUMMED), add(q, float(_SUMMED))
    total = add(total, mul(last, add(div(w, sub(x, 1.0)), 0.5)))
    rate = min(div(x, w), 1e3)
    term = mul(last, rate)
    for k, coefficient in enumerate(_BERNOULLI):
        total = add(total, mul(term, coefficient))
        term = mul(mul(term, add(rate, div(2.0 * k + 1, w))), add(rate, div(2.0 * k + 2, w)))
    return total


def _decay(x: Any, q: Any, k: int) -> Any:
    """Compute (1 + k/q)^-x."""
    return exp(neg(mul(x, log1p(div(float(k), q)))))


def _with_poles(found: Any, x: Any, q: Any) -> Any:
    pole = bitwise_and(bitwise_and(le(q, 0.0), gt(q, -math.inf)), _is_integer(q))
    undefined = bitwise_and(lt(q, 0.0), bitwise_not(bitwise_and(_is_integer(x), gt(q, -math.inf))))
    found = select_n(pole, select_n(undefined, found, math.nan), math.inf)
    found = select_n(bitwise_or(ne(x, x), ne(q, q)), found, math.nan)
    return select_n(lt(x, 1.0), select_n(eq(x, 1.0), found, math.inf), math.nan)


def _factorial(n: Any) -> Any:
    """Return x = n + 1, and root and unit, with n! = root^2 unit^x, for n that has a zeta function; else 2, 1 and 1.

    For a large n the unit is n/e, by Stirling's series, as neither n! nor the power of zeta's q need be numbers.
    """
    proper = bitwise_and(bitwise_and(gt(n, 0.0), lt(n, math.inf)), _is_integer(n))
    n = select_n(proper, _one_as(n), n)
    product = _one_as(n)
    for k in range(2, _FACTORIALS + 1):
        product = select_n(lt(n, float(k)), mul(product, float(k)), product)
    large = gt(n, float(_FACTORIALS))
    safe = select_n(large, mul(_one_as(n), float(_FACTORIALS)), n)
    by_series = mul(sqrt(sqrt(div(2 * math.pi * math.e**2, safe))), exp(mul(stirling_remainder(safe), 0.5)))
    unit = select_n(large, _one_as(n), mul(safe, 1 / math.e))
    return add(n, 1.0), select_n(large, pow(product, 0.5), by_series), unit


def _polygamma_result(found: Any, n: Any, exponent: Any, x: Any) -> Any:
    found = _with_poles(found, exponent, x)
    higher = select_n(_is_even(exponent), neg(found), found)
    proper = bitwise_and(bitwise_and(gt(n, 0.0), lt(n, math.inf)), _is_integer(n))
    return select_n(eq(n, 0.0), select_n(proper, math.nan, higher), digamma(x))
