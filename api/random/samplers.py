"""Random samplers: functions of a PRNG key, the same on every device, with the names and the bits of jax.random.

A sampler encrypts the positions of its result (counter-based) and computes the sample from these bits; one that needs
several sets of bits splits its key. Samples made by arithmetic alone equal those of jax.random exactly; others as far
as XLA's log, log_plus_one, erf_inv and tan are the same. Rejection samplers need
loops: they are in `api/random/`.
"""

import math
from typing import Any

import numpy as np

from tapeless.random.arguments import (
    KeyLike,
    Shape,
    check_broadcast,
    check_population,
    convert_bound,
    count_of,
    drawn_as,
    gumbel_mode,
    parameter,
    request,
    sampling_mode,
    weights,
)
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.errors import not_supported
from tapeless.tracer.keys.prng_keys import children, one_key, random_bits
from tapeless.tracer.primitives.bits import bitcast_convert_type, clz, shift_left, shift_right_logical
from tapeless.tracer.primitives.elementwise import complex as complex_of
from tapeless.tracer.primitives.elementwise import convert_element_type, log_plus_one, rem, stop_gradient
from tapeless.tracer.primitives.operands import canonical_axis, ndim, shape_of, without
from tapeless.tracer.primitives.shape import iota
from tapeless.tracer.primitives.sorting import sort, top_k
from tapeless.tracer.primitives.special import erf, erf_inv
from tapeless.tracer.types import aval_of, exact

# ---- bits and uniform numbers --------------------------------------------------------------------------------


def bits(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draw random bits [*shape], as unsigned integers of `dtype`; of the default width if None.

    Raises: TypeError if `key` is not one key or `dtype` not unsigned.
    """
    key, sizes, dtype = request("bits", key, shape, dtype, "u")
    return _bits(key, shape=sizes, dtype=dtype)


@compound
def _bits(key: Any, *, shape: Shape, dtype: Any) -> Array:
    return random_bits(key, tuple(shape), dtype)


def uniform(
    key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0
) -> Array:
    """Draw numbers uniformly from `minval` up to, but not including, `maxval`.

    Args:
      key: one PRNG key.
      shape: shape of the result.
      dtype: floating point; of the default width if None.
      minval, maxval: numbers or arrays that broadcast to `shape`. If that is (), axes of length 1 may be left over, and
        the result has those of `minval`, as in JAX.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request("uniform", key, shape, dtype, "f")
    if not sizes and {*shape_of(minval), *shape_of(maxval)} == {1}:
        low, high = (tnp.squeeze(x) if shape_of(x) else x for x in (minval, maxval))
        return tnp.reshape(uniform(key, (), dtype, low, high), shape_of(minval))
    check_broadcast("uniform", sizes, minval=shape_of(minval), maxval=shape_of(maxval))
    return _uniform(key, parameter(minval, dtype), parameter(maxval, dtype), shape=sizes, dtype=dtype)


@compound
def _uniform(key: Any, minval: Any, maxval: Any, *, shape: Shape, dtype: Any) -> Array:
    low, high = convert_element_type(minval, dtype), convert_element_type(maxval, dtype)
    return tnp.maximum(low, _unit(key, shape, dtype) * (high - low) + low)


def _unit(key: Any, shape: Shape, dtype: Any) -> Array:
    """Draw uniformly from [0, 1): random bits as the mantissa of a number in [1, 2), less 1."""
    mantissa, width = dtypes.finfo(dtype).nmant, 8 * dtype.itemsize
    drawn = 8 if mantissa < 8 else width
    unsigned = _unsigned(width)
    random = convert_element_type(_bits(key, shape=shape, dtype=_unsigned(drawn)), unsigned)
    number = random >> (drawn - mantissa) | exact(np.ones((), dtype).view(unsigned))
    return bitcast_convert_type(number, dtype) - 1


# ---- integers, choices, permutations -------------------------------------------------------------------------


def randint(key: KeyLike, shape: Shape, minval: ArrayLike, maxval: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Draw integers from `minval` up to, but not including, `maxval`; `minval` if the range is empty.

    Args:
      key: one PRNG key.
      shape: shape of the result.
      minval, maxval: integers or integer arrays that broadcast to `shape`; clipped to the range of `dtype`. Floats that
        are whole numbers stand for them if they are known.
      dtype: an integer type; of the default width if None.
    Raises: TypeError if `key` is not one key, or a bound or `dtype` no integer; ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request("randint", key, shape, dtype, "iu")
    low, high = (convert_bound(name, x, dtype) for name, x in (("minval", minval), ("maxval", maxval)))
    check_broadcast("randint", sizes, minval=shape_of(low), maxval=shape_of(high))
    return _randint(key, low, high, shape=sizes, dtype=dtype)


@compound
def _randint(key: Any, minval: Any, maxval: Any, *, shape: Shape, dtype: Any) -> Array:
    """Draw minval + (random bits, twice the width of the dtype, modulo the number n of integers), nearly unbiased.

    With w bits, (high 2**w + low) mod n needs no wider type if 2**w = (2**(w/2))**2 is taken modulo n on the way.
    If all 2**w integers are in the range, n is 0 here, and the remainder by 0 is the number itself.
    """
    wide = drawn_as(dtype)
    unsigned = _unsigned(8 * wide.itemsize)
    first = _clipped(minval, dtype)
    last = tnp.maximum(first, _clipped(_predecessor(maxval), dtype))
    n = convert_element_type(last - first, unsigned) + 1
    half = rem(exact(2 ** (4 * wide.itemsize), unsigned), n)
    n, power = tnp.broadcast_to(n, shape), tnp.broadcast_to(rem(half * half, n), shape)
    high, low = (_bits(key, shape=shape, dtype=unsigned) for key in _two(children(key, (2,))))
    offset = rem(rem(high, n) * power + rem(low, n), n)
    return convert_element_type(first + convert_element_type(offset, wide), dtype)


def _clipped(x: Any, dtype: Any) -> Array:
    """Clip integers to the range of `dtype`, and convert them to the dtype in which `dtype` is drawn."""
    own, out = dtypes.iinfo(x.dtype), dtypes.iinfo(dtype)
    if own.min < out.min or own.max > out.max:
        x = tnp.clip(x, max(int(own.min), int(out.min)), min(int(own.max), int(out.max)))
    return convert_element_type(x, drawn_as(dtype))


def _predecessor(x: Any) -> Array:
    """Return x - 1; the least integer of the dtype stays."""
    return tnp.maximum(x, int(dtypes.iinfo(x.dtype).min) + 1) - 1


def bernoulli(
    key: KeyLike, p: ArrayLike = 0.5, shape: Shape | None = None, mode: str = "low", *, out_sharding: None = None
) -> Array:
    """Draw booleans that are true with probability p.

    Args:
      key: one PRNG key.
      p: a floating-point number, or an array that broadcasts to `shape`.
      shape: shape of the result; that of p if None.
      mode: "high" draws twice the bits, for a p that is small against the spacing of numbers below 1.
    Raises: TypeError if `key` is not one key or p not floating point, ValueError for another mode or if shapes do not
      broadcast, NotImplementedError for an `out_sharding`.
    """
    if out_sharding is not None:
        raise not_supported("bernoulli", "out_sharding", out_sharding)
    sizes = shape_of(p) if shape is None else shape
    key, sizes, dtype = request("bernoulli", key, sizes, aval_of(p).dtype, "f", "p")
    check_broadcast("bernoulli", sizes, p=shape_of(p))
    return _bernoulli(key, parameter(p, dtype), shape=sizes, dtype=dtype, mode=sampling_mode("bernoulli", mode))


@compound
def _bernoulli(key: Any, p: Any, *, shape: Shape, dtype: Any, mode: str) -> Array:
    if mode == "low":
        return _unit(key, shape, dtype) < p
    coarse, fine = _two(_unit(key, (2, *shape), dtype))
    return fine * 2.0 ** -dtypes.finfo(dtype).nmant < p - coarse


def rademacher(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draw -1 or 1 with equal probability, [*shape]; default integers if `dtype` is None.

    Raises: TypeError if `key` is not one key.
    """
    key, sizes, by = request("rademacher", key, shape, None, "f")
    dtype = dtypes.canonical(int if dtype is None else dtype)
    return _rademacher(key, shape=sizes, by=by, dtype=dtype)


@compound
def _rademacher(key: Any, *, shape: Shape, by: Any, dtype: Any) -> Array:
    return convert_element_type(tnp.where(_unit(key, shape, by) < 0.5, 1, -1), dtype)


def permutation(key: KeyLike, x: int | ArrayLike, axis: int = 0, independent: bool = False) -> Array:
    """Permute x randomly along an axis, or the integers below x.

    Args:
      key: one PRNG key.
      x: an array, whose slices along `axis` are permuted, or an integer n for 0, 1, ..., n - 1.
      independent: permute every line along `axis` independently.
    Raises: TypeError if `key` is not one key, or x a scalar but no integer; ValueError if `axis` is out of range.
    """
    key = one_key("permutation", key)
    parts = x if ndim(x) else iota(dtypes.default_dtype("i"), count_of("permutation", x))
    return _permutation(
        key, parts, axis=canonical_axis(axis, ndim(parts), "permutation: axis"), independent=bool(independent)
    )


@compound
def _permutation(key: Any, x: Any, *, axis: int, independent: bool) -> Array:
    if independent or ndim(x) == 1:
        return _shuffled(key, x, axis)
    return tnp.take(x, _shuffled(key, iota(np.int32, shape_of(x)[axis]), 0), axis=axis)


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """Sort x by random keys, in as many rounds as make it improbable that two elements tie in all of them."""
    rounds = math.ceil(3 * math.log(math.prod(shape_of(x)) or 1) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, drawn = _two(children(key, (2,)))
        x = sort((_bits(drawn, shape=shape_of(x), dtype=_unsigned(32)), x), dimension=axis)[1]
    return x


def choice(
    key: KeyLike,
    a: int | ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Draw slices of an array along an axis, or integers below a.

    Args:
      key: one PRNG key.
      a: an array, or an integer n, which means 0, 1, ..., n - 1.
      shape: shape of the draws, which replaces `axis` in the result.
      replace: whether a slice may be drawn again.
      p: probabilities [n]; equal ones if None.
      mode: as for `gumbel`, which draws if p is given and `replace` is false.
    Raises: TypeError if `key` is not one key; ValueError if p is not of shape [n], or there are too few slices.
    """
    key, sizes, out = request("choice", key, shape, None, "i")
    axis = canonical_axis(axis, ndim(a), "choice: axis") if ndim(a) else 0
    count = shape_of(a)[axis] if ndim(a) else count_of("choice", a)
    check_population("choice", count, math.prod(sizes), replace)
    sample: dict[str, Any] = {"shape": sizes, "count": count, "replace": bool(replace), "dtype": out}
    if p is None:
        positions = _choice(key, **sample)
    else:
        positions = _weighted_choice(key, weights(p, count), mode=gumbel_mode("choice", mode), **sample)
    return tnp.take(a, positions, axis=axis) if ndim(a) else positions


@compound
def _choice(key: Any, *, shape: Shape, count: int, replace: bool, dtype: Any) -> Array:
    if replace:
        return _randint(key, tnp.zeros((), dtype), tnp.full((), count, dtype), shape=shape, dtype=dtype)
    return _shuffled(key, iota(dtype, count), 0)[: math.prod(shape)].reshape(shape)


@compound
def _weighted_choice(key: Any, p: Any, *, shape: Shape, count: int, replace: bool, dtype: Any, mode: str) -> Array:
    if not replace:
        scores = _gumbel(key, shape=(count,), dtype=p.dtype, mode=mode) + tnp.log(p)
        return convert_element_type(top_k(scores, math.prod(shape))[1], dtype).reshape(shape)
    cumulative = tnp.cumsum(p)
    draws = cumulative[-1] * (1 - _unit(key, shape, p.dtype))
    return convert_element_type(tnp.searchsorted(cumulative, draws), dtype)


def categorical(
    key: KeyLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array:
    """Draw positions along an axis, with probabilities proportional to the exponentials of `logits`.

    Args:
      key: one PRNG key.
      logits: [batch.., n, batch..], floating point.
      axis: the axis of n.
      shape: [draws.., batch..], to which the batch of `logits` broadcasts; [batch..] if None.
      replace: whether two draws may give the same position.
      mode: as for `gumbel`.
    Returns: positions of shape `shape`, default integers; int32 without replacement.
    Raises: TypeError if `key` is not one key or `logits` not floating point; ValueError if shapes do not fit.
    Source: the Gumbel-max trick; without replacement Kool et al. 2019, "Stochastic beams and where to find them".
    """
    axis = canonical_axis(axis, ndim(logits), "categorical: axis")
    batch = without(shape_of(logits), (axis,))
    key, sizes, dtype = request(
        "categorical", key, batch if shape is None else shape, aval_of(logits).dtype, "f", "logits"
    )
    check_broadcast("categorical", sizes, **{"logits without their axis": batch})
    count, draws = shape_of(logits)[axis], math.prod(sizes[: len(sizes) - len(batch)])
    check_population("categorical", count, draws, replace)
    settings: dict[str, Any] = {"axis": axis, "shape": sizes, "mode": gumbel_mode("categorical", mode)}
    if replace:
        return _categorical(key, parameter(logits, dtype), dtype=dtypes.default_dtype("i"), **settings)
    return _distinct_categorical(key, parameter(logits, dtype), **settings)


@compound
def _categorical(key: Any, logits: Any, *, axis: int, shape: Shape, mode: str, dtype: Any) -> Array:
    draws = len(shape) - (logits.ndim - 1)
    whole = (*shape[: draws + axis], logits.shape[axis], *shape[draws + axis :])
    noise = _gumbel(key, shape=whole, dtype=logits.dtype, mode=mode)
    return convert_element_type(tnp.argmax(noise + logits, axis=draws + axis), dtype)


@compound
def _distinct_categorical(key: Any, logits: Any, *, axis: int, shape: Shape, mode: str) -> Array:
    scores = logits + _gumbel(key, shape=logits.shape, dtype=logits.dtype, mode=mode)
    draws = math.prod(shape[: len(shape) - (logits.ndim - 1)])
    positions = top_k(tnp.moveaxis(scores, axis, -1), draws)[1]
    return tnp.moveaxis(positions, -1, 0).reshape(shape)


# ---- distributions on the line -------------------------------------------------------------------------------


def normal(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draw standard normal numbers [*shape]; complex ones have independent parts of variance 1/2.

    Raises: TypeError if `key` is not one key or `dtype` not floating point or complex.
    """
    key, sizes, dtype = request("normal", key, shape, dtype, "fc")
    return _normal(key, shape=sizes, dtype=dtype)


@compound
def _normal(key: Any, *, shape: Shape, dtype: Any) -> Array:
    """Apply the inverse of the distribution function to numbers that are uniform on (-1, 1)."""
    if dtypes.is_complex(dtype):
        part = dtypes.real_part_dtype(dtype)
        parts = (_normal(key, shape=shape, dtype=part) for key in _two(children(key, (2,))))
        return complex_of(*parts) / exact(np.sqrt(2), dtype)
    lowest = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)
    return erf_inv(_uniform(key, lowest, exact(1, dtype), shape=shape, dtype=dtype)) * _sqrt2(dtype)


def truncated_normal(
    key: KeyLike, lower: ArrayLike, upper: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draw standard normal numbers conditioned to lie between `lower` and `upper`.

    Args:
      key: one PRNG key.
      lower, upper: numbers or arrays that broadcast to `shape`.
      shape: shape of the result; the broadcast shape of `lower` and `upper` if None.
      dtype: floating point; of the default width if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    sizes = np.broadcast_shapes(shape_of(lower), shape_of(upper)) if shape is None else shape
    key, sizes, dtype = request("truncated_normal", key, sizes, dtype, "f")
    check_broadcast("truncated_normal", sizes, lower=shape_of(lower), upper=shape_of(upper))
    return _truncated_normal(key, parameter(lower, dtype), parameter(upper, dtype), shape=sizes, dtype=dtype)


@compound
def _truncated_normal(key: Any, lower: Any, upper: Any, *, shape: Shape, dtype: Any) -> Array:
    """Apply the inverse of the distribution function; clip to the open interval, which rounding could leave."""
    lower, upper = convert_element_type(lower, dtype), convert_element_type(upper, dtype)
    u = _uniform(key, erf(lower / _sqrt2(dtype)), erf(upper / _sqrt2(dtype)), shape=shape, dtype=dtype)
    first = tnp.nextafter(stop_gradient(lower), exact(np.inf, dtype))
    last = tnp.nextafter(stop_gradient(upper), exact(-np.inf, dtype))
    return tnp.clip(_sqrt2(dtype) * erf_inv(u), first, last)


def exponential(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draw exponential numbers of mean 1, [*shape].

    Raises: TypeError if `key` is not one key or `dtype` not floating point.
    """
    key, sizes, dtype = request("exponential", key, shape, dtype, "f")
    return _exponential(key, shape=sizes, dtype=dtype)


@compound
def _exponential(key: Any, *, shape: Shape, dtype: Any) -> Array:
    return -log_plus_one(-_unit(key, shape, dtype))


def gumbel(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None, mode: str | None = None) -> Array:
    """Draw standard Gumbel numbers, -log(-log u).

    Args:
      key: one PRNG key.
      shape: shape of the result.
      dtype: floating point; of the default width if None.
      mode: "high" draws twice the bits, so that events with probabilities below the spacing of numbers below 1 occur
        as often as they should; "highest" is that for float32 at both ends, from uniform numbers of 64 bits; "low"
        otherwise; `config.high_dynamic_range_gumbel` decides between "low" and "high" if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError for another mode.
    """
    key, sizes, dtype = request("gumbel", key, shape, dtype, "f")
    return _gumbel(key, shape=sizes, dtype=dtype, mode=gumbel_mode("gumbel", mode))


@compound
def _gumbel(key: Any, *, shape: Shape, dtype: Any, mode: str) -> Array:
    info = dtypes.finfo(dtype)
    if mode == "low":
        return -tnp.log(-tnp.log(_from(info.tiny, key, shape, dtype)))
    if mode == "highest" and dtype == np.float32:
        return _gumbel_of_64_bits(_bits(key, shape=(2, *shape), dtype=_unsigned(32)))
    coarse, fine = _two(_unit(key, (2, *shape), dtype))
    u = tnp.where(coarse >= 0.5, coarse, coarse + 2.0**-info.nmant * fine + exact(info.tiny, dtype))
    return -tnp.log(-log_plus_one(-u))


def _gumbel_of_64_bits(words: Any) -> Array:
    """Transform uniform numbers of 64 bits; those in the upper half by their distance from 1."""
    high, low = _two(words)
    small = high < exact(2**31, high.dtype)
    opposite_high, opposite_low = ~high + convert_element_type(low == 0, high.dtype), ~low + exact(1, low.dtype)
    u = _fraction(tnp.where(small, high, opposite_high), tnp.where(small, low, opposite_low))
    return -tnp.log(-tnp.where(small, log_plus_one(-u), tnp.log(u)))


def _fraction(high: Any, low: Any) -> Array:
    """Compute the float32 number in (0, 1) with the binary digits of two words, of which 24 are kept."""
    zeros = clz(high)
    both = shift_left(high, zeros) | shift_right_logical(low, exact(32, low.dtype) - zeros)
    leading = tnp.where(high == 0, shift_left(low, clz(low)), both)
    places = zeros + tnp.where(high == 0, clz(low), exact(0, low.dtype))
    exponent = bitcast_convert_type(shift_left(exact(127 - 24, low.dtype) - places, exact(23, low.dtype)), np.float32)
    digits = convert_element_type(leading >> exact(8, low.dtype), np.float32)
    return tnp.maximum(digits * exponent, exact(2.0**-65, np.dtype(np.float32)))


def laplace(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draw Laplace numbers of location 0 and scale 1, [*shape].

    Raises: TypeError if `key` is not one key or `dtype` not floating point.
    """
    key, sizes, dtype = request("laplace", key, shape, dtype, "f")
    return _laplace(key, shape=sizes, dtype=dtype)


@compound
def _laplace(key: Any, *, shape: Shape, dtype: Any) -> Array:
    u = _from(-1.0 + dtypes.finfo(dtype).epsneg, key, shape, dtype)
    return tnp.sign(u) * log_plus_one(-tnp.abs(u))


def logistic(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draw logistic numbers of location 0 and scale 1, [*shape].

    Raises: TypeError if `key` is not one key or `dtype` not floating point.
    """
    key, sizes, dtype = request("logistic", key, shape, dtype, "f")
    return _logistic(key, shape=sizes, dtype=dtype)


@compound
def _logistic(key: Any, *, shape: Shape, dtype: Any) -> Array:
    u = _from(dtypes.finfo(dtype).tiny, key, shape, dtype)
    return tnp.log(u) - log_plus_one(-u)


def cauchy(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draw Cauchy numbers of location 0 and scale 1, [*shape].

    Raises: TypeError if `key` is not one key or `dtype` not floating point.
    """
    key, sizes, dtype = request("cauchy", key, shape, dtype, "f")
    return _cauchy(key, shape=sizes, dtype=dtype)


@compound
def _cauchy(key: Any, *, shape: Shape, dtype: Any) -> Array:
    return tnp.tan(exact(np.pi, dtype) * (_from(dtypes.finfo(dtype).eps, key, shape, dtype) - 0.5))


def _from(low: Any, key: Any, shape: Shape, dtype: Any) -> Array:
    """Draw uniformly from `low` up to 1; at `low` a logarithm or a tangent is finite."""
    return _uniform(key, exact(low, dtype), exact(1, dtype), shape=shape, dtype=dtype)


# ---- parts of samplers --------------------------------------------------------------------------------------------


def _two(x: Any) -> tuple[Any, Any]:
    return x[0], x[1]


def _unsigned(width: int) -> Any:
    return np.dtype(f"uint{width}")


def _sqrt2(dtype: Any) -> Any:
    return exact(np.sqrt(2), dtype)
