"""Activation functions of networks, and the normalized exponentials that classifiers end in: names of `jax.nn`.

At a kink the derivative is JAX's: most often that of the flat side. Left out: products in block-scaled narrow types.
"""

import math
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.numpy.promotion import apply_inexact, array_operand, inexact
from tapeless.tracer.numpy.reductions import Axis
from tapeless.tracer.primitives.elementwise import logistic_p, rsqrt, stop_gradient
from tapeless.tracer.primitives.operands import canonical_axis
from tapeless.tracer.primitives.special import erfc

tanh: Final = tnp.tanh

# ---- elementwise ---------------------------------------------------------------------------------------------


def relu(x: ArrayLike) -> Array:
    """x where it is positive, else 0, elementwise; the derivative at 0 is 0."""
    return _relu(array_operand("relu", x))


@compound
def _relu(x: Any) -> Array:
    return tnp.where(x <= 0, 0, x)


def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), elementwise."""
    return apply_inexact("sigmoid", logistic_p, x)


def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), elementwise."""
    return tnp.logaddexp(x, 0)


def log_sigmoid(x: ArrayLike) -> Array:
    """The logarithm of the sigmoid, elementwise, without cancellation."""
    return -softplus(-array_operand("log_sigmoid", x))


def silu(x: ArrayLike) -> Array:
    """x times its sigmoid, elementwise."""
    return _silu(array_operand("silu", x))


@compound
def _silu(x: Any) -> Array:
    return x * sigmoid(x)


swish = silu


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the probability that a standard normal number is below it, elementwise; `approximate` by tanh."""
    return _gelu(inexact("gelu", array_operand("gelu", x)), approximate=bool(approximate))


@compound
def _gelu(x: Any, *, approximate: bool) -> Array:
    if approximate:
        return x * (0.5 * (1.0 + tnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return 0.5 * x * erfc(-x * math.sqrt(0.5))


def identity(x: ArrayLike) -> Array:
    """x as an array."""
    return array_operand("identity", x)


def relu6(x: ArrayLike) -> Array:
    """x cut off below 0 and above 6, elementwise; the derivative at 0 and 6 is 0."""
    return _relu6(array_operand("relu6", x))


@compound
def _relu6(x: Any) -> Array:
    return tnp.where(x <= 0, 0.0, tnp.where(x >= 6, 6.0, x))


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, else alpha (exp(x) - 1), elementwise."""
    x = array_operand("elu", x)
    return tnp.where(x > 0, x, alpha * tnp.expm1(tnp.where(x > 0, 0.0, x)))


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, else alpha (exp(x/alpha) - 1), elementwise, whose derivative has no jump."""
    x = array_operand("celu", x)
    return tnp.maximum(x, 0.0) + alpha * tnp.expm1(tnp.minimum(x, 0.0) / alpha)


def selu(x: ArrayLike) -> Array:
    """`elu` scaled, elementwise, to keep mean 0 and variance 1 from layer to layer.

    Source: Klambauer et al. 2017, "Self-normalizing neural networks".
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x where it is not negative, else `negative_slope` times x, elementwise."""
    x = array_operand("leaky_relu", x)
    return tnp.where(x >= 0, x, negative_slope * x)


def hard_tanh(x: ArrayLike) -> Array:
    """x cut off below -1 and above 1, elementwise."""
    x = array_operand("hard_tanh", x)
    return tnp.where(x > 1, 1, tnp.where(x < -1, -1, x))


def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6, elementwise: straight lines in the place of the sigmoid."""
    return relu6(array_operand("hard_sigmoid", x) + 3.0) / 6.0


def hard_silu(x: ArrayLike) -> Array:
    """x times its `hard_sigmoid`, elementwise."""
    x = array_operand("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def mish(x: ArrayLike) -> Array:
    """x tanh(softplus(x)), elementwise."""
    x = array_operand("mish", x)
    return x * tnp.tanh(softplus(x))


def soft_sign(x: ArrayLike) -> Array:
    """x / (|x| + 1), elementwise."""
    x = array_operand("soft_sign", x)
    return x / (tnp.abs(x) + 1)


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x² + b)) / 2, elementwise."""
    x = array_operand("squareplus", x)
    return (x + tnp.sqrt(tnp.square(x) + b)) / 2


def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)), elementwise, without cancellation; nan for a negative x.

    Source: Mächler 2012, "Accurately computing log(1 - exp(-|a|))".
    """
    return _log1mexp(inexact("log1mexp", array_operand("log1mexp", x)))


@compound
def _log1mexp(x: Any) -> Array:
    return tnp.where(x < math.log(2), tnp.log(-tnp.expm1(-x)), tnp.log1p(-tnp.exp(-x)))


def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 up to -1, 1 from 1 on, (x + 1)/2 between, elementwise: the derivative of `sparse_plus`."""
    return 0.5 * tnp.clip(array_operand("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, x from 1 on, (x + 1)²/4 between, elementwise: what softplus is to softmax, for sparsemax."""
    return _sparse_plus(inexact("sparse_plus", array_operand("sparse_plus", x)))


@compound
def _sparse_plus(x: Any) -> Array:
    return tnp.where(x <= -1, 0, tnp.where(x >= 1, x, (x + 1) ** 2 / 4))


# ---- along axes ----------------------------------------------------------------------------------------------


def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """The logarithm of the sum of b exp(a) along axes, with no overflow on the way.

    Args:
      b: factors that broadcast with a; 1 if None.
      where: which elements count, booleans that broadcast with a; all if None.
      return_sign: give the sign of the sum, too, and the logarithm of its modulus; else that of a negative sum is nan.
    Returns: the logarithm, or with `return_sign` a pair of it and the sign.
    """
    a = inexact("logsumexp", array_operand("logsumexp", a))
    counts = tnp.asarray(True) if where is None else tnp.asarray(where)
    counts = counts if b is None else counts & (tnp.asarray(b) != 0)
    a = tnp.where(counts, a, -np.inf)
    top = tnp.max(stop_gradient(a), axis, keepdims=True, initial=-np.inf)
    top = tnp.where(tnp.isfinite(top), top, 0)
    terms = tnp.exp(a - top) if b is None else b * tnp.exp(a - top)
    total = tnp.sum(terms, axis, keepdims=keepdims)
    top = top if keepdims else tnp.reshape(top, total.shape)
    if return_sign:
        return tnp.log(tnp.abs(total)) + top, tnp.sign(total)
    return tnp.log(total) + top


def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """The logarithm of the mean of exp(x) along axes, of the elements where `where` is true."""
    x = inexact("logmeanexp", array_operand("logmeanexp", x))
    counted = tnp.ones_like(x) if where is None else tnp.where(where, tnp.ones_like(x), 0)
    return logsumexp(x, axis, where=where, keepdims=keepdims) - tnp.log(tnp.sum(counted, axis, keepdims=keepdims))


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) over its sum along axes; 0 where `where` is false, and no part of the sum."""
    terms = tnp.exp(_lowered("softmax", x, axis, where))
    terms = terms if where is None else tnp.where(where, terms, 0)
    return terms / tnp.sum(terms, axis, keepdims=True)


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of `softmax`; -inf where `where` is false."""
    lowered = _lowered("log_softmax", x, axis, where)
    terms = tnp.exp(lowered)
    terms = terms if where is None else tnp.where(where, terms, 0)
    found = lowered - tnp.log(tnp.sum(terms, axis, keepdims=True))
    return found if where is None else tnp.where(where, found, -np.inf)


def _lowered(name: str, x: ArrayLike, axis: Axis, where: ArrayLike | None) -> Array:
    """x less its maximum along axes, which no derivative is taken of."""
    x = inexact(name, array_operand(name, x))
    x = x if where is None else tnp.where(where, x, tnp.min(x))  # what does not count must not overflow
    return x - tnp.max(stop_gradient(x), axis, keepdims=True, where=where, initial=-np.inf)


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of x along an axis times the sigmoid of the second.

    Raises: ValueError if the axis is not there or has an odd size.
    """
    x = array_operand("glu", x)
    axis = canonical_axis(axis, x.ndim)
    if x.shape[axis] % 2:
        raise ValueError(f"glu: axis {axis} of {x.aval} has an odd size.")
    first, second = tnp.split(x, 2, axis)
    return first * sigmoid(second)


def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) along axes.

    Args:
      mean, variance: arrays that broadcast with x; those of x along the axes if None.
      where: which elements mean and variance are taken of, booleans that broadcast with x; all if None.
      algorithm: variance as the mean of squares less the square of the mean, "fast", or by differences, "stable".
    Raises: ValueError for another algorithm.
    """
    x = inexact("standardize", array_operand("standardize", x))
    center: Any = tnp.mean(x, axis, keepdims=True, where=where) if mean is None else mean
    spread: Any = _variance(x, axis, center, where, algorithm) if variance is None else variance
    return (x - center) * rsqrt(tnp.asarray(spread + epsilon))


def _variance(x: Any, axis: Axis, mean: Any, where: Any, algorithm: str) -> Array:
    if algorithm == "stable":
        return tnp.mean(tnp.square(x - mean), axis, keepdims=True, where=where)
    if algorithm == "fast":
        squares = tnp.mean(tnp.square(x), axis, keepdims=True, where=where)
        return tnp.clip(squares - tnp.square(mean), 0)  # rounding may make it negative
    raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', not {algorithm!r}.")


def one_hot(x: ArrayLike, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """Vectors of `num_classes` zeros, along the new axis `axis`, with a one at position x; zeros alone if x is outside.

    The dtype is the default float if None.
    """
    positions = tnp.expand_dims(array_operand("one_hot", x), axis)
    shape = [num_classes if n == axis % positions.ndim else 1 for n in range(positions.ndim)]
    classes = tnp.reshape(tnp.arange(num_classes, dtype=positions.dtype), shape)
    return (positions == classes).astype(dtypes.default_dtype("f") if dtype is None else dtype)
