"""Samplers that transform uniform, normal and exponential numbers, with the names and the bits of `jax.random`.

Each is differentiable with respect to its parameters, for a fixed key (reparametrization). Samples are those of
jax.random as far as XLA's log, pow and erf_inv are the same.
"""

from typing import Any

import numpy as np

from tapeless.random.arguments import KeyLike, Shape, check_broadcast, parameter, request
from tapeless.random.samplers import exponential, normal, rademacher, uniform
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.keys.prng_keys import children
from tapeless.tracer.numpy.decompositions import cholesky, eigh, svd
from tapeless.tracer.primitives.elementwise import convert_element_type, integer_pow, log_plus_one
from tapeless.tracer.primitives.operands import shape_of
from tapeless.tracer.types import aval_of


def request_with(
    name: str, key: KeyLike, shape: Shape | None, dtype: Any, kinds: str = "f", **parameters: Any
) -> tuple[Any, tuple[int, ...], Any]:
    """Check and canonicalise the key, shape and dtype of a sample whose parameters broadcast to its shape.

    Args:
      shape: the broadcast shape of the parameters if None.
      parameters: numbers or arrays, by name.
    Raises: TypeError if the key is not one key or the dtype not of `kinds`, ValueError if shapes do not broadcast.
    """
    shapes = {operand: shape_of(x) for operand, x in parameters.items()}
    key, sizes, dtype = request(
        name, key, np.broadcast_shapes(*shapes.values()) if shape is None else shape, dtype, kinds
    )
    check_broadcast(name, sizes, **shapes)
    return key, sizes, dtype


def broadcast_parameter(x: Any, shape: Shape, dtype: Any) -> Array:
    """Convert a parameter to the dtype and broadcast it to the shape of the sample."""
    return tnp.broadcast_to(convert_element_type(parameter(x, dtype), dtype), tuple(shape))


def two(key: Any) -> tuple[Any, Any]:
    """Split a key into two keys."""
    pair = children(key, (2,))
    return pair[0], pair[1]


# ---- functions of normal numbers -----------------------------------------------------------------------------


def lognormal(
    key: KeyLike, sigma: ArrayLike = 1.0, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draw log-normal numbers: exponentials of normal numbers of mean 0 and standard deviation `sigma`.

    Args:
      key: one PRNG key.
      sigma: a number or an array that broadcasts to `shape`.
      shape: shape of the result; that of sigma if None.
      dtype: floating point; of the default width if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("lognormal", key, shape, dtype, sigma=sigma)
    return _lognormal(key, parameter(sigma, dtype), shape=sizes, dtype=dtype)


@compound
def _lognormal(key: Any, sigma: Any, *, shape: Shape, dtype: Any) -> Array:
    return tnp.exp(normal(key, shape, dtype) * broadcast_parameter(sigma, shape, dtype))


def maxwell(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draw from the Maxwell distribution: lengths of vectors of three independent standard normal numbers.

    Raises: TypeError if `key` is not one key or `dtype` not floating point.
    """
    key, sizes, dtype = request("maxwell", key, shape, dtype, "f")
    return _maxwell(key, shape=sizes, dtype=dtype)


@compound
def _maxwell(key: Any, *, shape: Shape, dtype: Any) -> Array:
    x = normal(key, (*shape, 3), dtype)
    return tnp.sqrt(tnp.sum(x * x, -1))


def double_sided_maxwell(
    key: KeyLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Draw from the double-sided Maxwell distribution: loc + scale x, for Maxwell numbers x with a random sign.

    Args:
      key: one PRNG key.
      loc, scale: numbers or arrays that broadcast with one another, to a shape S.
      shape: the shape of the draws for each pair; S if empty, as in JAX.
    Returns: [*shape, *S].
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    pairs = np.broadcast_shapes(shape_of(loc), shape_of(scale))
    key, sizes, dtype = request("double_sided_maxwell", key, shape, dtype, "f")
    sizes = (*(sizes or pairs), *pairs)
    settings: dict[str, Any] = {"shape": sizes, "dtype": dtype}
    return _double_sided_maxwell(key, parameter(loc, dtype), parameter(scale, dtype), **settings)


@compound
def _double_sided_maxwell(key: Any, loc: Any, scale: Any, *, shape: Shape, dtype: Any) -> Array:
    for_length, for_sign = two(key)
    signed = rademacher(for_sign, shape, dtype) * maxwell(for_length, shape, dtype)
    return signed * broadcast_parameter(scale, shape, dtype) + broadcast_parameter(loc, shape, dtype)


def wald(key: KeyLike, mean: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draw from the Wald (inverse Gaussian) distribution of scale 1.

    Args:
      key: one PRNG key.
      mean: a positive number or an array that broadcasts to `shape`.
      shape: shape of the result; that of mean if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    Source: Michael, Schucany & Haas 1976, "Generating random variates using transformations with multiple roots".
    """
    key, sizes, dtype = request_with("wald", key, shape, dtype, mean=mean)
    return _wald(key, parameter(mean, dtype), shape=sizes, dtype=dtype)


@compound
def _wald(key: Any, mean: Any, *, shape: Shape, dtype: Any) -> Array:
    mean = broadcast_parameter(mean, shape, dtype)
    for_square, for_root = two(key)
    y = integer_pow(normal(for_square, shape, dtype), 2)
    root = tnp.sqrt(4 * mean * y + mean * mean * integer_pow(y, 2))
    smaller = mean + mean * mean * y / 2 - mean / 2 * root
    return tnp.where(uniform(for_root, shape, dtype) <= mean / (mean + smaller), smaller, mean * mean / smaller)


def multivariate_normal(
    key: KeyLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Draw normal vectors with mean `mean` and covariance matrix `cov`.

    Args:
      key: one PRNG key.
      mean: [batch.., n].
      cov: [batch.., n, n], symmetric and positive semidefinite; "cholesky" needs it positive definite.
      shape: shape of the result without its last axis, to which both batches broadcast; their broadcast shape if None.
      dtype: floating point; that of mean and cov if None.
      method: the factorization of cov: "cholesky", "eigh" or "svd".
    Returns: [*shape, n].
    Raises: TypeError if `key` is not one key or `dtype` not floating point; ValueError for another method, or shapes
      that do not fit.
    """
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError(f'multivariate_normal: the method must be "cholesky", "eigh" or "svd", not {method!r}.')
    n = shape_of(mean)[-1:]
    if not n or shape_of(cov)[-2:] != (*n, *n):
        raise ValueError(
            "multivariate_normal: mean must be [.., n] and cov [.., n, n], "
            f"not of shapes {shape_of(mean)} and {shape_of(cov)}."
        )
    batches = {"mean without its axis": shape_of(mean)[:-1], "cov without its axes": shape_of(cov)[:-2]}
    given = np.broadcast_shapes(*batches.values()) if shape is None else shape
    dtype = dtypes.result_type(aval_of(mean), aval_of(cov), 0.0)[0] if dtype is None else dtype
    key, sizes, dtype = request("multivariate_normal", key, given, dtype, "f")
    check_broadcast("multivariate_normal", sizes, **batches)
    settings: dict[str, Any] = {"shape": sizes, "dtype": dtype, "method": method}
    return _multivariate_normal(key, parameter(mean, dtype), parameter(cov, dtype), **settings)


@compound
def _multivariate_normal(key: Any, mean: Any, cov: Any, *, shape: Shape, dtype: Any, method: str) -> Array:
    mean, cov = convert_element_type(mean, dtype), convert_element_type(cov, dtype)
    z = normal(key, (*shape, shape_of(mean)[-1]), dtype)
    return mean + tnp.einsum("...ij,...j->...i", _root(cov, method), z)


def _root(cov: Array, method: str) -> Array:
    """Return a matrix whose product with its transpose is `cov`."""
    if method == "cholesky":
        return cholesky(cov)
    if method == "eigh":
        values, vectors = eigh(cov)
        return vectors * tnp.expand_dims(tnp.sqrt(values), -2)
    u, s, _ = svd(cov)
    return u * tnp.expand_dims(tnp.sqrt(s), -2)


# ---- functions of uniform and exponential numbers ------------------------------------------------------------


def pareto(key: KeyLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draw Pareto numbers, at least 1, of density b x**(-b - 1).

    Args:
      key: one PRNG key.
      b: a positive number or an array that broadcasts to `shape`.
      shape: shape of the result; that of b if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("pareto", key, shape, dtype, b=b)
    return _pareto(key, parameter(b, dtype), shape=sizes, dtype=dtype)


@compound
def _pareto(key: Any, b: Any, *, shape: Shape, dtype: Any) -> Array:
    return tnp.exp(exponential(key, shape, dtype) / broadcast_parameter(b, shape, dtype))


def rayleigh(key: KeyLike, scale: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draw from the Rayleigh distribution: lengths of pairs of normal numbers of standard deviation `scale`.

    Args:
      key: one PRNG key.
      scale: a number or an array that broadcasts to `shape`.
      shape: shape of the result; that of scale if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("rayleigh", key, shape, dtype, scale=scale)
    return _rayleigh(key, parameter(scale, dtype), shape=sizes, dtype=dtype)


@compound
def _rayleigh(key: Any, scale: Any, *, shape: Shape, dtype: Any) -> Array:
    return broadcast_parameter(scale, shape, dtype) * tnp.sqrt(tnp.log(uniform(key, shape, dtype)) * -2)


def triangular(
    key: KeyLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw from the triangular distribution between `left` and `right`, with its peak at `mode`.

    Args:
      key: one PRNG key.
      left, mode, right: numbers or arrays that broadcast to `shape`, left <= mode <= right.
      shape: shape of the result; the broadcast shape of the three if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("triangular", key, shape, dtype, left=left, mode=mode, right=right)
    places = [parameter(x, dtype) for x in (left, mode, right)]
    return _triangular(key, *places, shape=sizes, dtype=dtype)


@compound
def _triangular(key: Any, left: Any, mode: Any, right: Any, *, shape: Shape, dtype: Any) -> Array:
    left, mode, right = [broadcast_parameter(x, shape, dtype) for x in (left, mode, right)]
    u, width = uniform(key, shape, dtype), right - left
    rising = left + tnp.sqrt(u * width * (mode - left))
    return tnp.where(u < (mode - left) / width, rising, right - tnp.sqrt((1 - u) * width * (right - mode)))


def weibull_min(
    key: KeyLike, scale: ArrayLike, concentration: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draw Weibull numbers x: (x / scale) ** concentration is exponential.

    Args:
      key: one PRNG key.
      scale, concentration: numbers or arrays that broadcast to `shape`.
      shape: shape of the result; the broadcast shape of both if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("weibull_min", key, shape, dtype, scale=scale, concentration=concentration)
    return _weibull_min(key, parameter(scale, dtype), parameter(concentration, dtype), shape=sizes, dtype=dtype)


@compound
def _weibull_min(key: Any, scale: Any, concentration: Any, *, shape: Shape, dtype: Any) -> Array:
    power = 1 / broadcast_parameter(concentration, shape, dtype)
    return (-log_plus_one(-uniform(key, shape, dtype))) ** power * broadcast_parameter(scale, shape, dtype)


def geometric(key: KeyLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draw from the geometric distribution: the number of trials up to the first success, each with probability p.

    Args:
      key: one PRNG key.
      p: a number, 0 < p <= 1, or an array that broadcasts to `shape`.
      shape: shape of the result; that of p if None.
      dtype: an integer type; of the default width if None.
    Raises: TypeError if `key` is not one key or `dtype` no integer, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("geometric", key, shape, dtype, "iu", p=p)
    by, _ = dtypes.result_type(aval_of(p), 0.0)
    return _geometric(key, parameter(p, by), shape=sizes, by=by, dtype=dtype)


@compound
def _geometric(key: Any, p: Any, *, shape: Shape, by: Any, dtype: Any) -> Array:
    u = uniform(key, shape, by)
    u = tnp.where(u == 0, 1, u)
    return convert_element_type(tnp.floor(tnp.log(u) / log_plus_one(-broadcast_parameter(p, shape, by))) + 1, dtype)
