"""Optimizers: chains of gradient transformations, under the names, defaults and numbers of optax."""

from typing import Any

from tapeless.optimizers.lbfgs import scale_by_lbfgs
from tapeless.optimizers.scaling import (
    add_decayed_weights,
    scale_by_adam,
    scale_by_learning_rate,
    scale_by_lion,
    scale_by_rms,
    scale_by_rss,
    scale_by_stddev,
    trace,
)
from tapeless.optimizers.scaling import scale as scale_by_number
from tapeless.optimizers.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    ScalarOrSchedule,
    chain,
    identity,
)
from tapeless.optimizers.zoom import scale_by_zoom_linesearch
from tapeless.tracer.advice.keyword_advice import advise_keywords
from tapeless.tracer.array import ArrayLike
from tapeless.tracer.dtypes import DTypeLike


@advise_keywords
def sgd(
    learning_rate: ScalarOrSchedule,
    momentum: ArrayLike | None = None,
    nesterov: bool = False,
    accumulator_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Descend along the gradient, with momentum if it is given.

    Args:
      learning_rate: a number, or a function of the number of steps before.
      momentum: the share of the sum of gradients that a step keeps.
      nesterov: look ahead along the momentum.
      accumulator_dtype: dtype of the sum of gradients; that of the parameters if None.
    Source: Sutskever et al. 2013, "On the importance of initialization and momentum in deep learning".

    >>> import tapeless as tl
    >>> from tapeless import optimizers
    >>> x, optimizer = tl.numpy.ones(2), optimizers.sgd(0.25)
    >>> updates, state = optimizer.update(tl.grad(lambda x: (x * x).sum())(x), optimizer.init(x))
    >>> optimizers.apply_updates(x, updates)
    Array([0.5, 0.5], dtype=float32)
    """
    accumulated = identity() if momentum is None else trace(momentum, nesterov, accumulator_dtype)
    return chain(accumulated, scale_by_learning_rate(learning_rate))


@advise_keywords
def adam(
    learning_rate: ScalarOrSchedule,
    b1: ArrayLike = 0.9,
    b2: ArrayLike = 0.999,
    eps: ArrayLike = 1e-8,
    eps_root: ArrayLike = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Descend along the mean gradient, divided by the root of the mean square. See `scale_by_adam`."""
    scaled = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    return chain(scaled, scale_by_learning_rate(learning_rate))


@advise_keywords
def adamw(
    learning_rate: ScalarOrSchedule,
    b1: ArrayLike = 0.9,
    b2: ArrayLike = 0.999,
    eps: ArrayLike = 1e-8,
    eps_root: ArrayLike = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Descend as `adam`, with decoupled weight decay. See `scale_by_adam`, `add_decayed_weights`."""
    scaled = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    return chain(scaled, add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate))


@advise_keywords
def lion(
    learning_rate: ScalarOrSchedule,
    b1: ArrayLike = 0.9,
    b2: ArrayLike = 0.99,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-3,
    mask: Any = None,
) -> GradientTransformationExtraArgs:
    """Descend along the sign of the momentum, with weight decay. See `scale_by_lion`."""
    decayed = add_decayed_weights(weight_decay, mask)
    return chain(scale_by_lion(b1, b2, mu_dtype), decayed, scale_by_learning_rate(learning_rate))


@advise_keywords
def rmsprop(
    learning_rate: ScalarOrSchedule,
    decay: ArrayLike = 0.9,
    eps: ArrayLike = 1e-8,
    initial_scale: ArrayLike = 0.0,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: ArrayLike | None = None,
    nesterov: bool = False,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """Descend along the gradient, divided by its root mean square, or by its standard deviation if `centered`.

    See `scale_by_rms` and `scale_by_stddev`; `momentum` and `nesterov` are those of `trace`, which sums the steps.
    """
    scaling = scale_by_stddev if centered else scale_by_rms
    scaled = scaling(decay, eps, initial_scale, eps_in_sqrt, bias_correction)
    accumulated = identity() if momentum is None else trace(momentum, nesterov)
    return chain(scaled, scale_by_learning_rate(learning_rate), accumulated)


@advise_keywords
def adagrad(
    learning_rate: ScalarOrSchedule, initial_accumulator_value: ArrayLike = 0.1, eps: ArrayLike = 1e-7
) -> GradientTransformationExtraArgs:
    """Descend along the gradient, divided by the root of the sum of all squared gradients. See `scale_by_rss`."""
    return chain(scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate))


_ZOOM = scale_by_zoom_linesearch(max_linesearch_steps=20, initial_guess_strategy="one")


@advise_keywords
def lbfgs(
    learning_rate: ScalarOrSchedule | None = None,
    memory_size: int = 10,
    scale_init_precond: bool = True,
    linesearch: GradientTransformation | None = _ZOOM,
) -> GradientTransformationExtraArgs:
    """Descend along limited-memory quasi-Newton directions, with step sizes from a line search.

    Args:
      learning_rate: factor of the direction before the search; 1 if None.
      memory_size, scale_init_precond: those of `scale_by_lbfgs`.
      linesearch: `scale_by_zoom_linesearch`, `scale_by_backtracking_linesearch`, or None.
    Returns: a transformation; the line search asks its `update` for `value`, `grad` and `value_fn`, too.

    >>> import tapeless as tl
    >>> from tapeless import optimizers
    >>> def loss(x): return ((x - tl.numpy.array([1.0, 2.0])) ** 2 * tl.numpy.array([1.0, 10.0])).sum()
    >>> optimizer, x = optimizers.lbfgs(), tl.numpy.zeros(2)
    >>> state = optimizer.init(x)
    >>> for _ in range(8):
    ...     value, grad = optimizers.value_and_grad_from_state(loss)(x, state=state)
    ...     updates, state = optimizer.update(grad, state, x, value=value, grad=grad, value_fn=loss)
    ...     x = optimizers.apply_updates(x, updates)
    >>> x
    Array([1., 2.], dtype=float32)
    """
    scaled = scale_by_number(-1.0) if learning_rate is None else scale_by_learning_rate(learning_rate)
    searched = identity() if linesearch is None else linesearch
    return chain(scale_by_lbfgs(memory_size, scale_init_precond), scaled, searched)
