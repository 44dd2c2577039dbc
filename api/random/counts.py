"""Counts: Poisson, binomial and multinomial numbers, by inversion or rejection; names of `jax.random`, and its bits.

All elements of a sample are drawn again until the last of them is accepted. Derivatives of counts by their parameters
are 0.
Source: Hoermann 1993, "The transformed rejection method for generating Poisson random variables" and "The generation of
binomial random variates".
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.control_flow.branches_and_loops import while_loop
from tapeless.control_flow.scan import scan
from tapeless.random.arguments import KeyLike, Shape, check_broadcast, parameter, request
from tapeless.random.samplers import uniform
from tapeless.random.transforms import broadcast_parameter, request_with, two
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.keys.prng_keys import children, clone
from tapeless.tracer.primitives.elementwise import convert_element_type, log_plus_one, stop_gradient
from tapeless.tracer.primitives.operands import ndim, shape_of
from tapeless.tracer.primitives.special import lgamma
from tapeless.tracer.types import aval_of, exact

# Stirling's approximation of log k! is off by that, at k = 0 to 9.
_BEYOND_STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def poisson(key: KeyLike, lam: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draw from the Poisson distribution of mean `lam`.

    Args:
      key: one key.
      lam: a number, not negative, or an array that broadcasts to `shape`; taken as float32.
      shape: shape of the result; that of lam if None.
      dtype: an integer type; of the default width if None.
    Raises: TypeError if `key` is not one key or `dtype` no integer, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("poisson", key, shape, dtype, "iu", lam=lam)
    return _poisson(key, stop_gradient(broadcast_parameter(lam, sizes, np.dtype("float32"))), dtype=dtype)


@compound
def _poisson(key: Any, lam: Any, *, dtype: Any) -> Array:
    few = (lam < 10) | (lam != lam)
    by_products = _products_of_uniforms(key, tnp.where(few, lam, 0), dtype)
    by_rejection = convert_element_type(_transformed_rejection(clone(key), tnp.where(few, 1e5, lam)), dtype)
    return tnp.where(lam == 0, 0, tnp.where(few, by_products, by_rejection))


def _products_of_uniforms(key: Any, lam: Any, dtype: Any) -> Array:
    """Count the uniform numbers whose product is still above exp(-lam), less one. Source: Knuth, TAOCP 3.4.1."""

    def goes_on(state: Any) -> Any:
        return tnp.any(state[1] > -lam)

    def draw(state: Any) -> Any:
        k, logarithm, key = state
        key, for_u = two(key)
        k = tnp.where(logarithm > -lam, k + 1, k)
        return k, logarithm + tnp.log(uniform(for_u, lam.shape, lam.dtype)), key

    return while_loop(goes_on, draw, (tnp.zeros(lam.shape, dtype), tnp.zeros_like(lam), key))[0] - 1


def _until_accepted(key: Any, like: Any, attempt: Callable[[Any, Any], tuple[Any, Any]]) -> Array:
    """Draw numbers k, accepted or not, from u uniform about 0 and v uniform on [0, 1), until all are accepted."""

    def draw(state: Any) -> Any:
        found, accepted, key = state
        keys = children(key, (3,))
        u, v = (
            uniform(keys[1], like.shape, like.dtype) - exact(0.5, like.dtype),
            uniform(keys[2], like.shape, like.dtype),
        )
        k, accept = attempt(u, v)
        return tnp.where(accept, k, found), accepted | accept, keys[0]

    begin = tnp.full_like(like, -1), tnp.zeros(like.shape, bool), key
    return while_loop(lambda state: ~tnp.all(state[1]), draw, begin)[0]


def _transformed_rejection(key: Any, lam: Any) -> Array:
    """Draw Poisson numbers where at least 10 events are expected."""
    b = 0.931 + 2.53 * tnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    scale, sure = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)

    def attempt(u: Any, v: Any) -> tuple[Any, Any]:
        inner = 0.5 - tnp.abs(u)
        k = tnp.floor((2 * a / inner + b) * u + lam + 0.43)
        height = tnp.log(v * scale / (a / (inner * inner) + b))
        refused = (k < 0) | ((inner < 0.013) & (v > inner))
        below = height <= -lam + k * tnp.log(lam) - lgamma(k + 1)
        return k, ((inner >= 0.07) & (v <= sure)) | (~refused & below)

    return _until_accepted(key, lam, attempt)


def binomial(
    key: KeyLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draw from the binomial distribution: numbers of successes among n trials, each with probability p.

    Args:
      key: one key.
      n: a number, rounded down, or an array that broadcasts to `shape`; nan where it is negative, inf where it is inf.
      p: probabilities, numbers or arrays that broadcast to `shape`; nan where they are negative or nan.
      shape: shape of the result; that of n and p together if None.
      dtype: floating point; of the default width if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("binomial", key, shape, dtype, n=n, p=p)
    by, _ = dtypes.result_type(aval_of(p), 0.0)
    return _binomial(
        key,
        stop_gradient(broadcast_parameter(n, sizes, by)),
        stop_gradient(broadcast_parameter(p, sizes, by)),
        dtype=dtype,
    )


@compound
def _binomial(key: Any, n: Any, p: Any, *, dtype: Any) -> Array:
    rare = tnp.where(p < 0.5, p, 1 - p)
    wrong, unbounded = (n != n) | (n < 0) | (rare != rare) | (rare < 0), tnp.isinf(n)
    safe = tnp.where((rare != rare) | (rare < 0), exact(0.01, p.dtype), rare)
    few = (n != n) | (n < 0) | (n * safe <= 10)
    whole = tnp.floor(n)
    by_gaps = _sums_of_gaps(key, tnp.where(few, whole, 0), safe)
    by_rejection = _binomial_rejection(clone(key), tnp.where(few, 1e4, whole), tnp.where(few, 0.5, safe))
    found = tnp.where(few, by_gaps, by_rejection)
    found = tnp.where(wrong, np.nan, tnp.where(unbounded, np.inf, found))
    mirrored = ~((p < 0.5) | (n != n) | (n < 0) | (rare != rare) | unbounded)
    return convert_element_type(tnp.where(mirrored, whole - found, found), dtype)


def _sums_of_gaps(key: Any, n: Any, p: Any) -> Array:
    """Count the geometric gaps between successes that fit into n trials."""
    scale = log_plus_one(-p)

    def draw(state: Any) -> Any:
        k, total, key = state
        for_u, key = two(key)
        gap = tnp.ceil(tnp.log(uniform(for_u, n.shape, n.dtype)) / scale)
        return tnp.where(total <= n, k + 1, k), total + gap, key

    begin = tnp.zeros_like(n), tnp.zeros_like(n), key
    return while_loop(lambda state: tnp.any(state[1] <= n), draw, begin)[0] - 1


def _binomial_rejection(key: Any, n: Any, p: Any) -> Array:
    """Draw binomial numbers where at least 10 successes are expected, and p is at most 1/2."""
    deviation = tnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    scale, sure, odds = (2.83 + 5.1 / b) * deviation, 0.92 - 4.2 / b, p / (1 - p)
    mode = tnp.floor((n + 1) * p)

    def attempt(u: Any, v: Any) -> tuple[Any, Any]:
        inner = 0.5 - tnp.abs(u)
        k = tnp.floor((2 * a / inner + b) * u + (n * p + 0.5))
        height = tnp.log(v * scale / (a / (inner * inner) + b))
        bound = (
            (mode + 0.5) * tnp.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * tnp.log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * tnp.log(odds * (n - k + 1) / (k + 1))
            + _beyond_stirling(mode)
            + _beyond_stirling(n - mode)
            - _beyond_stirling(k)
            - _beyond_stirling(n - k)
        )
        return k, ((inner >= 0.07) & (v <= sure)) | (~((k < 0) | (k > n)) & (height <= bound))

    return _until_accepted(key, n, attempt)


def _beyond_stirling(k: Any) -> Array:
    """Compute the excess of log k! over Stirling's approximation."""
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    place = convert_element_type(tnp.floor(tnp.clip(k, 0, 9)), np.dtype("int32"))
    return tnp.where(k <= 9, tnp.asarray(_BEYOND_STIRLING, k.dtype)[place], series)


def multinomial(
    key: KeyLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Draw from the multinomial distribution: counts of each of m outcomes among n trials.

    Args:
      key: one key.
      n: a number of trials, or an array that broadcasts to shape[:-1].
      p: [.., m], the probabilities of the outcomes, which sum to 1 along the last axis.
      shape: shape of the result, [.., m]; that of p if None.
      dtype: of the result; floating point, of the default width if None.
      unroll: how many outcomes a step of the loop over them draws.
    Raises: TypeError if `key` is not one key; ValueError if p has no axis, or shapes do not broadcast.
    """
    if not ndim(p):
        raise ValueError("multinomial: p must have an axis for the outcomes, not be a scalar.")
    key, sizes, dtype = request("multinomial", key, shape_of(p) if shape is None else shape, dtype, "f")
    check_broadcast("multinomial", sizes, p=shape_of(p))
    check_broadcast("multinomial", sizes[:-1], n=shape_of(n))
    by, _ = dtypes.result_type(aval_of(n), aval_of(p), 0.0)
    rates = tnp.moveaxis(stop_gradient(broadcast_parameter(p, sizes, by)), -1, 0)
    left = tnp.cumsum(rates[::-1], 0)[::-1]
    shares = tnp.clip(rates / tnp.where(left == 0, 1, left), 0, 1)

    def draw(remaining: Any, outcome: Any) -> Any:
        share, key = outcome
        count = binomial(key, remaining, share, dtype=by)
        return remaining - count, count

    keys = children(key, (shares.shape[0],))
    counts = scan(
        draw, stop_gradient(broadcast_parameter(parameter(n, by), sizes[:-1], by)), (shares, keys), unroll=unroll
    )[1]
    return convert_element_type(tnp.moveaxis(counts, 0, -1), dtype)
