"""Activation functions of networks, and the normalized exponentials that classifiers end in: names of `jax.nn`.

At a kink the derivative is that of the flat side, as in JAX. Left out: `initializers`, `dot_product_attention`, and the
activations that are not listed here.
"""

import math
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.numpy.promotion import apply_inexact, array_operand, inexact
from tapeless.tracer.numpy.reductions import Axis
from tapeless.tracer.primitives.elementwise import logistic_p, stop_gradient
from tapeless.tracer.primitives.special import erfc

tanh = tnp.tanh

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
    top = tnp.max(a, axis, keepdims=True, initial=-np.inf)
    top = stop_gradient(tnp.where(tnp.isfinite(top), top, 0))
    terms = tnp.exp(a - top) if b is None else b * tnp.exp(a - top)
    total = tnp.sum(terms, axis, keepdims=keepdims)
    top = top if keepdims else tnp.reshape(top, total.shape)
    if return_sign:
        return tnp.log(tnp.abs(total)) + top, tnp.sign(total)
    return tnp.log(total) + top


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
    return x - stop_gradient(tnp.max(x, axis, keepdims=True, where=where, initial=-np.inf))


def one_hot(x: ArrayLike, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """Vectors of `num_classes` zeros, along the new axis `axis`, with a one at position x; zeros alone if x is outside.

    The dtype is the default float if None.
    """
    positions = tnp.expand_dims(array_operand("one_hot", x), axis)
    shape = [num_classes if n == axis % positions.ndim else 1 for n in range(positions.ndim)]
    classes = tnp.reshape(tnp.arange(num_classes, dtype=positions.dtype), shape)
    return (positions == classes).astype(dtypes.default_dtype("f") if dtype is None else dtype)
