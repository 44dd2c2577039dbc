"""Confluent and Gauss's hypergeometric functions of real numbers, by series and by Taylor steps.

Everything is computed in float64. A sum gives nan if it loses more than half of its digits to cancellation, or is not
over after 5000 terms. Derivatives, of any order and by every argument, are those of the sums: forward
mode goes through their loops, and a custom rule makes of it what reverse mode needs.
Source: DLMF chapters 13 and 15; Johansson 2019, "Computing hypergeometric functions rigorously". Left out: complex
numbers, asymptotic series of Gauss's function.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.control_flow.branches_and_loops import fori_loop, while_loop
from tapeless.custom.jvp import custom_jvp
from tapeless.differentiate.autodiff import jvp
from tapeless.scipy.special_functions.gamma_relatives import check_real, gammasgn
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import promoted_all, promoted_inexact_dtypes
from tapeless.tracer.primitives.special import lgamma

_EPS = float(np.finfo(np.float64).eps)
_LARGE = 1e250  # from which a sum is scaled down
_MOST_TERMS = 5000
_FAR = 3000.0  # beyond it the confluent function has an asymptotic series, before the other has too many terms


@one_program
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute Kummer's confluent hypergeometric function, the sum of (a)_k / (b)_k x^k / k!, elementwise.

    To 1e-12 of its value, 2e-7 in float32, for 0 < a, b <= 50 and -500 <= x <= 500 where b >= a or x >= 0, and to
    4e-12 for |x| > 3000; elsewhere nan where the sum has less than half of the digits of float64.

    Returns: floating point; infinite where b is a whole number that is not positive, unless a is one, and not smaller.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    Source: DLMF 13.2.2, 13.2.39, 13.7.1.
    """
    operands = promoted_all("hyp1f1", *promoted_inexact_dtypes("hyp1f1", a, b, x))
    return _in_double("hyp1f1", _hyp1f1, operands)


@one_program
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Compute Gauss's hypergeometric function, the sum of (a)_k (b)_k / (c)_k x^k / k!, continued to x < -1.

    To 1e-10 of its value, 3e-7 in float32, for 0 < a, b, c <= 10 and x < 1; elsewhere nan where a sum has less than
    half of the digits of float64.

    Returns: floating point; nan where x > 1 and the sum is infinite; infinite where c is a whole number of at most
      0, unless a or b is one of at least c.
    Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
    Source: DLMF 15.2.1, 15.8.1, 15.10.1.
    """
    operands = promoted_all("hyp2f1", *promoted_inexact_dtypes("hyp2f1", a, b, c, x))
    return _in_double("hyp2f1", _hyp2f1, operands)


def _in_double(name: str, f: Callable[..., Any], operands: Any) -> Array:
    for x in operands:
        check_real(name, x)
    dtype = operands[0].dtype
    return f(*tnp.broadcast_arrays(*[tnp.asarray(x).astype(np.float64) for x in operands])).astype(dtype)


def _smooth(f: Callable[..., Any]) -> Callable[..., Any]:
    """Give `f` the derivatives that forward mode finds, as numbers: reverse mode does not go through its loops."""
    g = custom_jvp(f)

    def rule(primals: Any, tangents: Any) -> Any:
        slopes = [_smooth(_partial(f, k))(*primals) * t for k, t in enumerate(tangents)]
        return g(*primals), sum(slopes[1:], slopes[0])

    g.defjvp(rule)
    return g


def _partial(f: Callable[..., Any], k: int) -> Callable[..., Any]:
    """Make the derivative of an elementwise function by argument k."""

    def slope(*args: Any) -> Any:
        return jvp(f, args, [tnp.ones_like(x) if i == k else tnp.zeros_like(x) for i, x in enumerate(args)])[1]

    return slope


@custom_jvp
def _without_slope(x: Any) -> Any:
    """Return x, by which nothing is differentiated: its tangents are nan."""
    return x


_without_slope.defjvp(lambda primals, tangents: (primals[0], tangents[0] * np.nan))


# ---- sums ----------------------------------------------------------------------------------------------------


def _series(above: Any, below: Any, x: Any, polynomial: Any = False, least: float = 1 / 16) -> tuple[Any, Any]:
    """Sum the terms (above)_k / (below)_k x^k / k!, where (v)_k stands for a product over all v.

    Args:
      polynomial: where all terms from one on are 0, and the others need not become small.
      least: a bound of |x| from below for how small the terms are, as x may be 0, and derivatives by it are not.
    Returns: the sum, and the logarithm of what it is to be multiplied by, so that no number is too large.
    """

    def ratio(k: Any, term: Any) -> Any:
        numerator, denominator = _product(v + k for v in above), _product(v + k for v in below)
        pole = denominator == 0
        past = tnp.where(term == 0, 0, np.inf)
        return tnp.where(pole, past, numerator / tnp.where(pole, 1, denominator) * x / (k + 1))

    def bound(k: Any) -> Any:
        """Bound |ratio| from above, but not by 0, where x or one of `above` may be 0: their derivatives are not."""
        largest = _product(abs(v) + 1 + k for v in above) / _product(tnp.maximum(abs(v + k), 1e-3) for v in below)
        return largest * tnp.maximum(abs(x), least) / (k + 1)

    one = tnp.ones_like(x)

    def step(state: Any) -> Any:
        k, term, total, largest, rest, scale, running = state
        term = tnp.where(running, term * ratio(k, term), 0)
        rest, total, largest = rest * bound(k), total + term, tnp.maximum(largest, abs(term))
        down = tnp.where(tnp.maximum(abs(total), rest) > _LARGE, one / _LARGE, one)
        over = (rest < _EPS / 64 * abs(total)) & (bound(k) < 0.99) | polynomial & (term == 0) | ~tnp.isfinite(total)
        return k + 1, term * down, total * down, largest * down, rest * down, scale - tnp.log(down), running & ~over

    begin = 0.0, one, one, one, one, tnp.zeros_like(x), ~tnp.isnan(_product(above) * _product(below) * x)
    end = while_loop(lambda state: tnp.any(state[6]) & (state[0] < _MOST_TERMS), step, begin)
    _, _, total, largest, _, scale, running = end
    lost = largest * np.sqrt(_EPS) > abs(total)
    known = (begin[6] & ~running & ~(lost & tnp.isfinite(total))) | tnp.isinf(total)
    return tnp.where(known, total, np.nan), scale


def _product(factors: Any) -> Any:
    return functools.reduce(operator.mul, factors, 1.0)


def _ends(v: Any) -> Any:
    """Tell where (v)_k is 0 from some k on."""
    return (v <= 0) & (v == tnp.floor(v))


@compound
def _confluent(a: Any, b: Any, x: Any) -> Any:
    """Sum terms of one sign, where there are such: M(a, b, x) = exp(x) M(b - a, b, -x)."""
    turned = (x < 0) & ~_ends(a)
    a, y = tnp.where(turned, b - a, a), tnp.where(turned, -x, x)
    far = (y > _FAR) & ((abs(a) + 2) * (abs(b - a) + 2) < y) & ~_ends(a) & ~_ends(b)
    total, scale = _series((tnp.where(far, 1, a),), (b,), tnp.where(far, 1, y))
    near = total * tnp.exp(scale + tnp.where(turned & ~far, x, 0))
    a, b, y = (tnp.where(far, v, _FAR) for v in (a, b, y))
    return tnp.where(far, _far_confluent(a, b, y, turned), near)


def _far_confluent(a: Any, b: Any, x: Any, scaled: Any) -> Any:
    """Compute M(a, b, x) for a large x by its asymptotic series; `scaled` by exp(-x). Source: DLMF 13.7.1."""
    total, scale = _series((1 - a, b - a), (), 1 / x, least=0.0)
    sign = gammasgn(a) * gammasgn(b)
    return sign * total * tnp.exp(scale + lgamma(b) - lgamma(a) + (a - b) * tnp.log(x) + tnp.where(scaled, 0, x))


_hyp1f1 = _smooth(_confluent)

# ---- Gauss's function ----------------------------------------------------------------------------------------


@compound
def _gauss(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Compute F(a, b; c; x), x < 1, by F(a, c - b; c; x / (x - 1)) / (1 - x)^a if x < 0; polynomials beyond 1."""
    a, b = tnp.maximum(a, b), tnp.minimum(a, b)
    beyond = (x > 1) | (x == 1) & (c <= a + b)  # where the sum is infinite, unless it has an end
    polynomial, negative, inside = beyond & (_ends(a) | _ends(b)), x < 0, x < 1
    total, scale = _series(
        tuple(tnp.where(polynomial, _without_slope(v), 0) for v in (a, b)),
        (tnp.where(polynomial, c, 1),),
        x,
        polynomial,
    )
    y = tnp.where(inside, x, 0.25)
    rest = tnp.where(negative, 1 / (1 - y), 1 - y)
    found = _continued(a, tnp.where(negative, c - b, b), c, tnp.where(negative, -y * rest, y), rest)
    found = found * tnp.where(negative, rest, 1) ** a
    at_one = tnp.where(x == 1, _at_one(a, b, c), np.nan) + 0 * _without_slope(x)
    return tnp.where(inside, found, tnp.where(polynomial, total * tnp.exp(scale), at_one))


_hyp2f1 = _smooth(_gauss)


def _continued(a: Any, b: Any, c: Any, z: Any, rest: Any) -> Any:
    """Compute F(a, b; c; z) for 0 <= z < 1, `rest` being 1 - z: by its series up to 1/2, then by halving the rest."""
    near = tnp.where(z <= 0.5, z, 0.5)  # minimum would halve the derivative at 1/2
    value, slope = (
        _unscaled(_series((a, b), (c,), near)),
        a * b / c * _unscaled(_series((a + 1, b + 1), (c + 1,), near)),
    )

    def step(state: Any) -> Any:
        left, y, slope, largest = state
        to = tnp.where(rest > left / 2, tnp.minimum(rest, left), left / 2)
        moving = to < left
        there = _taylor_step(a, b, c, left, tnp.where(moving, left - to, left / 2), y, slope)
        y, slope = (tnp.where(moving, new, old) for new, old in zip(there, (y, slope)))
        return tnp.where(moving, to, left), y, slope, tnp.maximum(largest, abs(y))

    # Of rounding the start follows a part z^(1 - c) of the other solution, DLMF 15.10.3, which grows for a negative c.
    power = tnp.maximum(1 - c, 1)
    begin = tnp.where(z <= 0.5, rest, 0.5), value, slope, abs(value) * tnp.maximum(2 * z, 1) ** power / power
    _, y, _, largest = while_loop(lambda state: tnp.any((state[0] > rest) & (rest > 0)), step, begin)
    return tnp.where((largest * np.sqrt(_EPS) > abs(y)) & tnp.isfinite(y), np.nan, y)


def _unscaled(found: tuple[Any, Any]) -> Any:
    return found[0] * tnp.exp(found[1])


_TAYLOR_TERMS = 120


def _taylor_step(a: Any, b: Any, c: Any, left: Any, h: Any, y: Any, slope: Any) -> tuple[Any, Any]:
    """Compute value and slope at z + h of the solution that has these at z = 1 - left, by Taylor series, h <= left / 2.

    Of y = sum of u_n, z (1 - z) y'' + (c - (a + b + 1) z) y' = a b y gives each u_n of the two before.
    """
    z = 1 - left
    turn, drift, scale = left - z, c - (a + b + 1) * z, z * left

    def step(n: Any, state: Any) -> Any:
        u, v, total, slopes = state
        w = ((n + a) * (n + b) * h * h * u - (n + 1) * (turn * n + drift) * h * v) / (scale * (n + 1) * (n + 2))
        return v, w, total + w, slopes + (n + 2) * w

    first = y, slope * h, y + slope * h, slope * h
    _, last, total, slopes = fori_loop(0, _TAYLOR_TERMS, step, first)
    return tnp.where(abs(last) > _EPS * abs(total), np.nan, total), slopes / h


def _at_one(a: Any, b: Any, c: Any) -> Any:
    """Compute the sum at x = 1, Gauss's formula, DLMF 15.4.20; infinite if c <= a + b."""
    parts = c, c - a - b, c - a, c - b
    size = sum(sign * lgamma(v) for sign, v in zip((1, 1, -1, -1), parts))
    return tnp.where(c > a + b, _product(map(gammasgn, parts)) * tnp.exp(size), np.inf)
