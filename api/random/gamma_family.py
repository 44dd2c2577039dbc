"""Gamma numbers, by rejection, and the distributions that are functions of these: names of `jax.random`, and its bits.

Samples are differentiable by their parameters, for a fixed key: a gamma number by its shape parameter as the quantile
that it is (Figurnov et al. 2018, "Implicit reparameterization gradients"). Under `jit` a sample is drawn for all
elements at once, until the last of them is accepted.
"""

import math
from typing import TYPE_CHECKING, Any

from tapeless.batch.vmap import vmap
from tapeless.control_flow.branches_and_loops import while_loop
from tapeless.custom.jvp import custom_jvp
from tapeless.random.arguments import KeyLike, Shape, check_broadcast, count_of, parameter, request
from tapeless.random.samplers import exponential, normal, rademacher, uniform
from tapeless.random.transforms import broadcast_parameter, request_with, two
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.keys.prng_keys import children
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.primitives.operands import ndim, shape_of
from tapeless.tracer.primitives.special import digamma, random_gamma_grad
from tapeless.tracer.types import exact

if TYPE_CHECKING:
    from tapeless.nn import activations
else:  # which imports this package
    activations = LateModule("tapeless.nn.activations")


def gamma(key: KeyLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draw from the gamma distribution of scale 1, with density x**(a - 1) exp(-x) / Gamma(a).

    Args:
      key: one key.
      a: a positive number or an array that broadcasts to `shape`.
      shape: shape of the result; that of a if None.
      dtype: floating point; of the default width if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    Source: Marsaglia & Tsang 2000, "A simple method for generating gamma variables".
    """
    key, sizes, dtype = request_with("gamma", key, shape, dtype, a=a)
    return _gamma(broadcast_parameter(a, sizes, dtype), key)


def loggamma(key: KeyLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draw logarithms of gamma numbers, which are finite also for a small `a`, where `gamma` would be 0.

    Args:
      key: one key.
      a: a positive number or an array that broadcasts to `shape`.
      shape: shape of the result; that of a if None.
      dtype: floating point; of the default width if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("loggamma", key, shape, dtype, a=a)
    return _loggamma(broadcast_parameter(a, sizes, dtype), key)


@custom_jvp
def _gamma(a: Any, key: Any) -> Array:
    return _sample(key, a, logarithm=False)


@_gamma.defjvp
def _gamma_jvp(primals: Any, tangents: Any) -> Any:
    y = _gamma(*primals)
    return y, tangents[0] * random_gamma_grad(primals[0], y)


@custom_jvp
def _loggamma(a: Any, key: Any) -> Array:
    return _sample(key, a, logarithm=True)


@_loggamma.defjvp
def _loggamma_jvp(primals: Any, tangents: Any) -> Any:
    y = _loggamma(*primals)
    return y, tangents[0] * _loggamma_slope(primals[0], y)


def _loggamma_slope(a: Any, y: Any) -> Array:
    """Compute dy/da of a logarithm y for fixed probability, which is x^a / Gamma(a + 1) where x = e^y is small.

    It is finite, so that the derivative of e^y is 0 where that is.
    """
    finfo = dtypes.finfo(y.dtype)
    small = y < math.log(float(finfo.eps)) - 1
    x = tnp.exp(tnp.where(small, 0, y))
    of_small = (digamma(a + 1) - y) / a
    slope = tnp.where(small, of_small, random_gamma_grad(a, x) / x)
    return tnp.minimum(slope, exact(float(finfo.max) / 1024, y.dtype))


@compound
def _sample(key: Any, a: Any, *, logarithm: bool) -> Array:
    def one(key: Any, a: Any) -> Array:
        return _one(key, a, logarithm)

    keys = children(key, (math.prod(a.shape),))
    return vmap(one)(keys, a.reshape(-1)).reshape(a.shape) if a.size else a


def _one(key: Any, a: Any, logarithm: bool) -> Array:
    """Draw one number: d v of shape a + 1 if a < 1, times the a-th root of a uniform number."""
    d = tnp.where(a >= 1, a, a + 1) - exact(1 / 3, a.dtype)
    key, for_root = two(key)
    v = _accepted(key, d)
    if logarithm:
        exponent = -exponential(for_root, (), a.dtype)
        return tnp.log(d) + tnp.log(v) + tnp.where((a >= 1) | (exponent == 0), 0, exponent * (1 / a))
    return d * v * tnp.where(a >= 1, 1, (1 - uniform(for_root, (), a.dtype)) ** (1 / a))


def _accepted(key: Any, d: Any) -> Array:
    """Draw the cube of 1 + c x, for normal x, accepted as often as makes d times it a gamma number of shape d + 1/3."""
    dtype = d.dtype
    zero, one = exact(0, dtype), exact(1, dtype)
    c = exact(1 / 3, dtype) / tnp.sqrt(d)

    def rejected(state: Any) -> Any:
        _, x2, v, u = state
        unlikely = u >= 1 - exact(0.0331, dtype) * (x2 * x2)
        return unlikely & (tnp.log(u) >= x2 * exact(0.5, dtype) + d * (1 - v + tnp.log(v)))

    def draw(state: Any) -> Any:
        keys = children(state[0], (3,))
        _, x, v = while_loop(lambda s: s[2] <= 0, positive, (keys[1], zero, -one))
        return keys[0], x * x, v * v * v, uniform(keys[2], (), dtype)

    def positive(state: Any) -> Any:
        key, for_x = two(state[0])
        x = normal(for_x, (), dtype)
        return key, x, 1 + x * c

    return while_loop(rejected, draw, (key, zero, one, exact(2, dtype)))[2]


# ---- functions of gamma numbers ------------------------------------------------------------------------------


def beta(key: KeyLike, a: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draw from the beta distribution, with density proportional to x**(a - 1) (1 - x)**(b - 1) between 0 and 1.

    Args:
      key: one key.
      a, b: positive numbers or arrays that broadcast to `shape`.
      shape: shape of the result; that of a and b together if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("beta", key, shape, dtype, a=a, b=b)
    for_a, for_b = two(key)
    log_a, log_b = loggamma(for_a, a, sizes, dtype), loggamma(for_b, b, sizes, dtype)
    most = tnp.maximum(log_a, log_b)
    share_a, share_b = tnp.exp(log_a - most), tnp.exp(log_b - most)
    return share_a / (share_a + share_b)


def dirichlet(key: KeyLike, alpha: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draw from the Dirichlet distribution with concentrations `alpha`.

    Args:
      key: one key.
      alpha: [batch.., n], positive.
      shape: shape of the result without its last axis, to which the batch broadcasts; the batch if None.
    Returns: [*shape, n].
    Raises: TypeError if `key` is not one key or `dtype` not floating point; ValueError if alpha has no axis, or shapes
      do not broadcast.
    """
    if not ndim(alpha):
        raise ValueError("dirichlet: alpha must have an axis for the numbers of a vector, not be a scalar.")
    batch, n = shape_of(alpha)[:-1], shape_of(alpha)[-1]
    key, sizes, dtype = request("dirichlet", key, batch if shape is None else shape, dtype, "f")
    check_broadcast("dirichlet", sizes, **{"alpha without its last axis": batch})
    return activations.softmax(loggamma(key, alpha, (*sizes, n), dtype), -1)


def chisquare(key: KeyLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draw from the chi-squared distribution with `df` degrees of freedom, which need not be an integer.

    Args:
      key: one key.
      df: a positive number or an array that broadcasts to `shape`.
      shape: shape of the result; that of df if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("chisquare", key, shape, dtype, df=df)
    return tnp.exp(loggamma(key, broadcast_parameter(df, sizes, dtype) / 2, sizes, dtype)) * 2


def f(
    key: KeyLike, dfnum: ArrayLike, dfden: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draw from the F distribution: ratios of chi-squared numbers, each divided by its degrees of freedom.

    Args:
      key: one key.
      dfnum, dfden: positive numbers or arrays that broadcast to `shape`.
      shape: shape of the result; that of both together if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("f", key, shape, dtype, dfnum=dfnum, dfden=dfden)
    for_den, for_num = two(key)
    above, below = broadcast_parameter(dfnum, sizes, dtype), broadcast_parameter(dfden, sizes, dtype)
    return (chisquare(for_num, above, None, dtype) / above) / (chisquare(for_den, below, None, dtype) / below)


def t(key: KeyLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draw from Student's t distribution with `df` degrees of freedom.

    Args:
      key: one key.
      df: a positive number or an array that broadcasts to `shape`.
      shape: shape of the result; that of df if None.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("t", key, shape, dtype, df=df)
    for_normal, for_gamma = two(key)
    half = broadcast_parameter(df, sizes, dtype) / 2
    return normal(for_normal, sizes, dtype) * tnp.sqrt(half / gamma(for_gamma, half, sizes, dtype))


def generalized_normal(key: KeyLike, p: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draw from the generalized normal distribution, with density proportional to exp(-|x|**p).

    Args:
      key: one key.
      p: a positive number.
      shape: shape of the result.
    Raises: TypeError if `key` is not one key or `dtype` not floating point, ValueError if shapes do not broadcast.
    """
    key, sizes, dtype = request_with("generalized_normal", key, shape, dtype, p=p)
    for_length, for_sign = two(key)
    inverse = 1 / broadcast_parameter(p, (), dtype) if not ndim(p) else 1 / broadcast_parameter(p, sizes, dtype)
    return rademacher(for_sign, sizes, dtype) * gamma(for_length, inverse, sizes, dtype) ** inverse


def ball(key: KeyLike, d: int, p: float = 2, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Draw points uniformly from the unit ball of the p-norm, of `d` dimensions.

    Args:
      key: one key.
      d: the number of dimensions.
      p: at least 1.
      shape: batch dimensions.
    Returns: [*shape, d].
    Raises: TypeError if `key` is not one key, `d` no integer or `dtype` not floating point.
    Source: Barthe et al. 2005, "A probabilistic approach to the geometry of the l_p^n ball".
    """
    key, sizes, dtype = request("ball", key, shape, dtype, "f")
    for_direction, for_length = two(key)
    g = generalized_normal(for_direction, p, (*sizes, count_of("ball", d)), dtype)
    power = parameter(p, dtype)
    total = tnp.sum(tnp.abs(g) ** power, -1) + exponential(for_length, sizes, dtype)
    return g / tnp.expand_dims(total ** (1 / power), -1)
