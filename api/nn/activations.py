"""Activation functions of neural networks, softmax, and normalization, as in `jax.nn`.

At a kink the derivative is JAX's: most often that of the flat side. Left out: products in block-scaled narrow types.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import (
    apply_inexact,
    array_operand,
    as_weak_as,
    inexact,
    mixing_inside,
    promoted_inexact_dtypes,
)
from tapeless.tracer.numpy.reductions import Axis, checked_axes, least, with_range
from tapeless.tracer.primitives.elementwise import difference, logistic_p, rsqrt, stop_gradient
from tapeless.tracer.primitives.operands import canonical_axis, exact_bool, exact_integer
from tapeless.tracer.primitives.shape import squeeze
from tapeless.tracer.primitives.special import erfc

tanh: Final = tnp.tanh

# ---- elementwise ---------------------------------------------------------------------------------------------


def relu(x: ArrayLike) -> Array:
    """Compute the rectified linear unit, max(x, 0), elementwise; the derivative at 0 is 0."""
    return _relu(array_operand("relu", x))


@compound
def _relu(x: Any) -> Array:
    return tnp.where(x <= 0, 0, x)


def sigmoid(x: ArrayLike) -> Array:
    """Compute the logistic sigmoid 1 / (1 + exp(-x)), elementwise."""
    return apply_inexact("sigmoid", logistic_p, x)


@one_program
def softplus(x: ArrayLike) -> Array:
    """Compute log(1 + exp(x)), elementwise, without overflow."""
    return tnp.logaddexp(x, 0)


@one_program
def log_sigmoid(x: ArrayLike) -> Array:
    """Compute the logarithm of the sigmoid, elementwise, without cancellation."""
    return -softplus(-array_operand("log_sigmoid", x))


def silu(x: ArrayLike) -> Array:
    """Compute the SiLU (swish), x sigmoid(x), elementwise."""
    return _silu(array_operand("silu", x))


@compound
def _silu(x: Any) -> Array:
    return x * sigmoid(x)


swish = silu


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Compute the Gaussian error linear unit: x times the normal distribution function at x, elementwise.

    Args:
      approximate: compute the distribution function by tanh instead of erfc.
    Raises: TypeError if `approximate` is not True or False.
    Source: Hendrycks & Gimpel 2016, "Gaussian error linear units".
    """
    by_tanh = exact_bool(approximate, "gelu: approximate (by tanh)")
    x = inexact("gelu", array_operand("gelu", x))
    return _gelu(tnp.asarray(x, x.dtype), approximate=by_tanh)


@compound
def _gelu(x: Any, *, approximate: bool) -> Array:
    if approximate:
        return x * (0.5 * (1.0 + tnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return 0.5 * x * erfc(-x * math.sqrt(0.5))


def identity(x: ArrayLike) -> Array:
    """Return x, as an array."""
    return array_operand("identity", x)


def relu6(x: ArrayLike) -> Array:
    """Limit x to the range from 0 to 6, elementwise; the derivative at 0 and 6 is 0."""
    return _relu6(array_operand("relu6", x))


@compound
def _relu6(x: Any) -> Array:
    return tnp.where(x <= 0, 0.0, tnp.where(x >= 6, 6.0, x))


@one_program
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Compute the exponential linear unit: x if positive, else alpha (exp(x) - 1), elementwise."""
    x = array_operand("elu", x)
    return tnp.where(x > 0, x, alpha * tnp.expm1(tnp.where(x > 0, 0.0, x)))


@one_program
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Compute x if positive, else alpha (exp(x/alpha) - 1), elementwise, with a continuous derivative."""
    x = array_operand("celu", x)
    return tnp.maximum(x, 0.0) + alpha * tnp.expm1(tnp.minimum(x, 0.0) / alpha)


@one_program
def selu(x: ArrayLike) -> Array:
    """Compute the scaled exponential linear unit, elementwise, which keeps mean 0 and variance 1 from layer to layer.

    Source: Klambauer et al. 2017, "Self-normalizing neural networks".
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


@one_program
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Compute x if not negative, else `negative_slope` times x, elementwise."""
    x = array_operand("leaky_relu", x)
    return tnp.where(x >= 0, x, negative_slope * x)


@one_program
def hard_tanh(x: ArrayLike) -> Array:
    """Limit x to the range from -1 to 1, elementwise."""
    x = array_operand("hard_tanh", x)
    if dtypes.kind(x.dtype) == "u":
        return tnp.minimum(x, 1)
    return tnp.where(x > 1, 1, tnp.where(x < -1, -1, x))


@one_program
def hard_sigmoid(x: ArrayLike) -> Array:
    """Compute relu6(x + 3) / 6, elementwise: a piecewise linear sigmoid."""
    return relu6(array_operand("hard_sigmoid", x) + 3.0) / 6.0


@one_program
def hard_silu(x: ArrayLike) -> Array:
    """Multiply x by its `hard_sigmoid`, elementwise."""
    x = array_operand("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@one_program
def mish(x: ArrayLike) -> Array:
    """Compute x tanh(softplus(x)), elementwise."""
    x = array_operand("mish", x)
    return x * tnp.tanh(softplus(x))


@one_program
@mixing_inside
def soft_sign(x: ArrayLike) -> Array:
    """Compute x / (|x| + 1), elementwise."""
    x = array_operand("soft_sign", x)
    size = tnp.abs(x) + 1
    return tnp.where(size > 2, tnp.sign(x) * (1 - 1 / size), x / size)  # of which no derivative is a difference


@one_program
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Compute (x + sqrt(x² + b)) / 2, elementwise."""
    given = promoted_inexact_dtypes("squareplus", x, b)
    x, b = (array_operand("squareplus", v) for v in given)
    result, x, b = x.dtype, with_range(x), with_range(b)
    large = tnp.abs(x) > math.sqrt(float(dtypes.finfo(x.dtype).max)) / 2  # of which the square may overflow
    of_square = tnp.where(tnp.real(x) < 0, -x, x) if dtypes.issubdtype(x.dtype, np.complexfloating) else tnp.abs(x)
    root = tnp.where(large, of_square, tnp.sqrt(tnp.square(tnp.where(large, 1, x)) + b))
    return as_weak_as(((x + root) / 2).astype(result), *given)


def log1mexp(x: ArrayLike) -> Array:
    """Compute log(1 - exp(-x)), elementwise, without cancellation; nan for a negative x.

    Source: Mächler 2012, "Accurately computing log(1 - exp(-|a|))".
    """
    return _log1mexp(inexact("log1mexp", array_operand("log1mexp", x)))


@compound
def _log1mexp(x: Any) -> Array:
    return tnp.where(x < math.log(2), tnp.log(-tnp.expm1(-x)), tnp.log1p(-tnp.exp(-x)))


@one_program
def sparse_sigmoid(x: ArrayLike) -> Array:
    """Compute 0 for x <= -1, 1 for x >= 1 and (x + 1)/2 between, elementwise: the derivative of `sparse_plus`."""
    return 0.5 * tnp.clip(array_operand("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


def sparse_plus(x: ArrayLike) -> Array:
    """Compute 0 for x <= -1, x for x >= 1 and (x + 1)²/4 between, elementwise: the softplus of the sparsemax family."""
    return _sparse_plus(inexact("sparse_plus", array_operand("sparse_plus", x)))


@compound
def _sparse_plus(x: Any) -> Array:
    return tnp.where(x <= -1, 0, tnp.where(x >= 1, x, (x + 1) ** 2 / 4))


# ---- reductions and normalization along axes -----------------------------------------------------------------


@one_program
@mixing_inside
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """Compute the logarithm of the sum of b exp(a) along axes, without overflow.

    Args:
      axis: one or several; all if None.
      b: factors that broadcast with a; 1 if None.
      keepdims: keep the axes, with size 1.
      where: which elements count, booleans broadcasting with a; all if None.
      return_sign: also return the sign of the sum, with the logarithm of its modulus; else a negative sum gives nan.
    Returns: the logarithm, -inf for no elements, of complex numbers the principal one; or with `return_sign` a pair of
      the logarithm of the modulus, which is real, and the sign.
    """
    a = inexact("logsumexp", array_operand("logsumexp", a))
    result, a = a.dtype, with_range(a)
    keepdims = exact_bool(keepdims, "logsumexp: keepdims")
    signed = exact_bool(return_sign, "logsumexp: return_sign")
    top, total, log = _plain_total(a, axis, where) if b is None else _weighted_total(a, axis, b, where)
    found = log(tnp.abs(total) if signed else total) + top
    axes = () if keepdims else checked_axes("logsumexp", total, axis)
    zeros = 0 * stop_gradient(total)  # what it sums there, though derivatives tell the terms apart
    sign = tnp.where(top == -math.inf, zeros, tnp.sign(total))
    found, sign = (squeeze(_narrowed(each, result, b), axes) for each in (found, sign))
    return (found, sign) if signed else found


def _narrowed(found: Array, dtype: Any, b: ArrayLike | None) -> Array:
    """Convert a result that was computed in float32 to what `dtype`, narrower, and the dtype of b promote to."""
    if dtypes.is_complex(dtype) or dtypes.bits_of(dtype) >= 32:
        return found
    return found.astype(dtype if b is None else tnp.result_type(dtype, b))


_Total = tuple[Array, Array, Callable[[Array], Array]]  # m, a sum of terms exp(a - m), and the logarithm of such sums


def _plain_total(a: Array, axis: Axis, where: ArrayLike | None) -> _Total:
    """Sum exp(a - m), m the maximum of a, which is not differentiated: equal infinities share the derivative."""
    a = a if where is None else tnp.where(where, a, least(dtypes.real_part_dtype(a.dtype)))
    top = _greatest(a, axis)
    terms = tnp.exp(_difference(a, top))
    return top, _total(terms if where is None else tnp.where(where, terms, 0), axis, where), tnp.log


def _weighted_total(a: Array, axis: Axis, b: ArrayLike, where: ArrayLike | None) -> _Total:
    """Sum b exp(a - m), m the maximum of a where b is not 0. The derivative by b is exp(a - m), also where b is 0.

    Where all b are 0, the logarithm depends on b only.
    """
    a, b = tnp.broadcast_arrays(a, b if where is None else tnp.where(where, b, 0))
    some = tnp.any(b != 0, axis, keepdims=True)
    top = tnp.where(some, _greatest(tnp.where(b != 0, a, least(dtypes.real_part_dtype(a.dtype))), axis), 0)
    lowered = _difference(a, top)
    most = math.floor(math.log(float(dtypes.finfo(a.dtype).max)))  # so that 0 times its exponential is 0
    bounded = tnp.where(tnp.real(lowered) <= most, lowered, most)
    terms = b * tnp.exp(tnp.where(b != 0, lowered, bounded))
    total = tnp.sum(terms, axis, keepdims=True)
    if not dtypes.is_complex(terms.dtype):
        total = tnp.where(top == -math.inf, tnp.abs(total), total)  # a sum of zeros, which is not negative
        signs = [tnp.any((a == math.inf) & each, axis, keepdims=True) for each in (b > 0, b < 0)]
        total = tnp.where(signs[0] & signs[1], math.nan, total)
    of_none = tnp.log(tnp.sum(b, axis, keepdims=True))

    def log(total: Array) -> Array:
        alone = of_none if dtypes.is_complex(total.dtype) else tnp.real(of_none)
        return tnp.where(some, tnp.log(tnp.where(some, total, 1)), alone)

    return top, total, log


def _greatest(a: Array, axis: Axis) -> Array:
    """Compute the maximum of real parts along axes, which are kept, without derivative; finite for complex numbers."""
    top = tnp.max(stop_gradient(tnp.real(a)), axis, keepdims=True, initial=least(dtypes.real_part_dtype(a.dtype)))
    return tnp.where(tnp.isfinite(top), top, 0) if dtypes.is_complex(a.dtype) else top


def _difference(a: Array, top: Array) -> Array:
    return a - top if dtypes.is_complex(a.dtype) else difference(a, tnp.broadcast_to(top, a.shape))


@one_program
@mixing_inside
def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """Compute the logarithm of the mean of exp(x) along axes, of the elements where `where` is true, without overflow.

    Args:
      axis, keepdims: as for `logsumexp`.
    """
    x = inexact("logmeanexp", array_operand("logmeanexp", x))
    result, x = x.dtype, with_range(x)
    counted = tnp.ones_like(x) if where is None else tnp.where(where, tnp.ones_like(x), 0)
    count = tnp.sum(counted, axis, keepdims=keepdims)
    return (logsumexp(x, axis, where=where, keepdims=keepdims) - tnp.log(count)).astype(result)


@one_program
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Compute the softmax, exp(x) divided by its sum along axes.

    Args:
      axis: one or several; all if None.
      where: which elements count, booleans broadcasting with x; the others are 0.
    Returns: floating point, the shape of x; zeros where no element counts.
    """
    lowered, result = _lowered("softmax", x, axis, where)
    terms = tnp.exp(lowered)
    terms = terms if where is None else tnp.where(where, terms, 0)
    return (terms / _total(terms, axis, where)).astype(result)


@one_program
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Compute the logarithm of `softmax`, without underflow; -inf where `where` is false. Args: as for `softmax`."""
    lowered, result = _lowered("log_softmax", x, axis, where)
    terms = tnp.exp(lowered)
    terms = terms if where is None else tnp.where(where, terms, 0)
    found = (lowered - tnp.log(_total(terms, axis, where))).astype(result)
    return found if where is None else tnp.where(where, found, least(found.dtype))


def _lowered(name: str, x: ArrayLike, axis: Axis, where: ArrayLike | None) -> tuple[Array, Any]:
    """Subtract from x its maximum along axes, which is not differentiated; return the dtype of the result, too."""
    x = inexact(name, array_operand(name, x))
    result, x = x.dtype, with_range(x)
    none = least(x.dtype)
    known = x if where is None else tnp.where(where, x, none)
    top = tnp.max(stop_gradient(known), axis, keepdims=True, initial=none)
    if where is not None:
        top = tnp.where(top == none, 0, top)
        x = tnp.where(where, x, top)  # masked elements must not overflow, and may be nan
    return x - top, result


def _total(terms: Array, axis: Axis, where: ArrayLike | None) -> Array:
    """Sum along axes; 1 where no element counts, so that quotients are 0 and derivatives finite."""
    total = tnp.sum(terms, axis, keepdims=True)
    if where is None:
        return total
    return tnp.where(tnp.any(tnp.broadcast_to(where, terms.shape), axis, keepdims=True), total, 1)


@one_program
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Compute the gated linear unit: the first half of x along an axis times the sigmoid of the second half.

    Args:
      x: [.., 2 n, ..].
    Returns: [.., n, ..].
    Raises: ValueError if the axis is out of range or has an odd size.
    """
    x = array_operand("glu", x)
    axis = canonical_axis(axis, x.ndim)
    if x.shape[axis] % 2:
        raise ValueError(f"glu: axis {axis} of {x.aval} has an odd size.")
    first, second = tnp.split(x, 2, axis)
    return first * sigmoid(second)


@one_program
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
    """Normalize x along axes: (x - mean) / sqrt(variance + epsilon), computed in float32 at least.

    With "fast", as in JAX, digits cancel if the mean is large beside the standard deviation: in float32 the error at a
    ratio of 100 is about 1e-3 of the result, at 4000 more than the result. Use "stable" unless means are near 0.

    Args:
      x: numbers of any dtype; integers and booleans are converted to floating point.
      axis: one or several; all if None.
      mean, variance: arrays that broadcast with x; those of x along the axes if None.
      where: which elements count in mean and variance, booleans broadcasting with x; all if None.
      algorithm: "fast" computes the variance as the mean of squares less the square of the mean, "stable" from
        differences to the mean, as PyTorch's layers do.
    Returns: floating point or complex, the shape of x, the dtype to which x and the other numbers promote.
    Raises: ValueError for another algorithm.
    """
    x = inexact("standardize", array_operand("standardize", x))
    if x.dtype.itemsize < 4:
        given = (number for number in (mean, variance, epsilon) if number is not None)
        wide = standardize(x.astype(np.float32), axis, mean, variance, epsilon, where, algorithm=algorithm)
        return wide.astype(tnp.result_type(x, *given))
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


@one_program
def one_hot(x: ArrayLike | Sequence[Any], num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """Make one-hot vectors of length `num_classes` along a new axis: 1 at position x, else 0.

    A position out of range gives only zeros.

    Args:
      x: [k..], integers, also in lists.
      dtype: the default float if None.
      axis: the position of the new axis in the result.
    Returns: [k.., num_classes] for axis -1.
    Raises: TypeError if `num_classes` is no integer, ValueError if it is negative or `axis` out of range.
    """
    count = exact_integer(num_classes, "one_hot: num_classes")
    if count < 0:
        raise ValueError(f"one_hot: there are no {count} classes.")
    positions = tnp.expand_dims(tnp.asarray(x) if isinstance(x, list | tuple) else array_operand("one_hot", x), axis)
    shape = [count if n == axis % positions.ndim else 1 for n in range(positions.ndim)]
    classes = tnp.reshape(tnp.arange(count, dtype=positions.dtype), shape)
    return (positions == classes).astype(dtypes.default_dtype("f") if dtype is None else dtype)
