"""Gradient transformations that optimizers are chains of: momentum, adaptive scaling, learning rates, decay of weights.

Moments of arrays of narrow dtypes are kept in these dtypes, unless `mu_dtype` or `accumulator_dtype` says otherwise.
Second moments are real where parameters are complex.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tapeless.optimizers.moments import (
    bias_correction,
    cast_like,
    cast_tree,
    moment,
    real_full_like,
    safe_increment,
    second_moment,
    squared_modulus,
    zero_count,
    zeros_like,
)
from tapeless.optimizers.transformation import (
    UPDATES_AND_STATE,
    GradientTransformation,
    OptState,
    Params,
    ScalarOrSchedule,
    Schedule,
    Updates,
    check_params,
    describe_transformation,
    identity,
    init_empty_state,
    map_updates,
    masked,
    stateless,
)
from tapeless.tracer import dtypes, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.primitives.elementwise import rsqrt
from tapeless.tracer.types import is_arraylike


class TraceState(NamedTuple):
    """The state of `trace`: the running sums."""

    trace: Params


class ScaleByAdamState(NamedTuple):
    """The state of `scale_by_adam`: the number of steps, and the moments."""

    count: Any  # int32[]
    mu: Updates
    nu: Updates


class ScaleByLionState(NamedTuple):
    """The state of `scale_by_lion`: the number of steps, and the first moments."""

    count: Any  # int32[]
    mu: Updates


class ScaleByRmsState(NamedTuple):
    """The state of `scale_by_rms`: the second moments."""

    nu: Updates


class ScaleByRmsWithCountState(NamedTuple):
    """The state of `scale_by_rms` with bias correction: the number of steps, and the second moments."""

    count: Any  # int32[]
    nu: Updates


class ScaleByRStdDevState(NamedTuple):
    """The state of `scale_by_stddev`: the moments."""

    mu: Updates
    nu: Updates


class ScaleByRStdDevWithCountState(NamedTuple):
    """The state of `scale_by_stddev` with bias correction: the number of steps, and the moments."""

    count: Any  # int32[]
    mu: Updates
    nu: Updates


class ScaleByRssState(NamedTuple):
    """The state of `scale_by_rss`: the sums of squares."""

    sum_of_squares: Updates


class ScaleByScheduleState(NamedTuple):
    """The state of `scale_by_schedule`: the number of steps."""

    count: Any  # int32[]


class WeightDecaySchedule(NamedTuple):
    """The state of `add_decayed_weights` with a schedule: the number of steps."""

    count: Any  # int32[]


def trace(
    decay: ArrayLike, nesterov: bool = False, accumulator_dtype: DTypeLike | None = None
) -> GradientTransformation:
    """Accumulate gradients: m = g + decay m, which is momentum.

    Args:
      decay: the share of the sum that a step keeps.
      nesterov: give g + decay m of the new sum in its place: the gradient looked ahead.
      accumulator_dtype: dtype of the sums; that of the parameters if None.
    Source: Sutskever et al. 2013, "On the importance of initialization and momentum in deep learning".
    """
    dtype = _canonical(accumulator_dtype)

    def init(params: Params) -> TraceState:
        return TraceState(zeros_like(params, dtype))

    def add(g: Any, m: Any) -> Any:
        return g + decay * m

    def update(updates: Updates, state: TraceState, params: Params | None = None) -> tuple[Updates, TraceState]:
        sums = map_updates(add, updates, state.trace, trees=UPDATES_AND_STATE)
        return map_updates(add, updates, sums) if nesterov else sums, TraceState(cast_tree(sums, dtype))

    return GradientTransformation(*describe_transformation(init, update))


def scale_by_adam(
    b1: ArrayLike = 0.9,
    b2: ArrayLike = 0.999,
    eps: ArrayLike = 1e-8,
    eps_root: ArrayLike = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Divide the mean of the gradients by the square root of the mean of their squares, both corrected for bias.

    Args:
      b1, b2: shares of the moments that a step keeps.
      eps: is added to the root.
      eps_root: is added under the root; greater than 0 where derivatives are taken of the update.
      mu_dtype: dtype of the first moments; that of the parameters if None.
      nesterov: look the first moment ahead (NAdam).
    Source: Kingma & Ba 2014, "Adam: a method for stochastic optimization"; Dozat 2016, "Incorporating Nesterov momentum
      into Adam".
    """
    dtype = _canonical(mu_dtype)

    def init(params: Params) -> ScaleByAdamState:
        return ScaleByAdamState(zero_count(), zeros_like(params, dtype), real_full_like(params, 0))

    def update(updates: Updates, state: ScaleByAdamState, params: Params | None = None) -> Any:
        mu, nu = moment(updates, state.mu, b1), second_moment(updates, state.nu, b2)
        count = safe_increment(state.count)
        if nesterov:
            ahead = bias_correction(mu, b1, safe_increment(count))
            mean = moment(bias_correction(updates, b1, count), ahead, b1)
        else:
            mean = bias_correction(mu, b1, count)
        square = bias_correction(nu, b2, count)
        scaled = map_updates(lambda m, v: m / (tnp.sqrt(v + eps_root) + eps), mean, square)
        return scaled, ScaleByAdamState(count, cast_tree(mu, dtype), cast_like(nu, state.nu))

    return GradientTransformation(*describe_transformation(init, update))


def scale_by_lion(
    b1: ArrayLike = 0.9, b2: ArrayLike = 0.99, mu_dtype: DTypeLike | None = None
) -> GradientTransformation:
    """Give the sign of an interpolation between gradient and momentum.

    Args:
      b1: the share of the momentum in the update.
      b2: the share of the momentum that a step keeps.
      mu_dtype: dtype of the momentum; that of the parameters if None.
    Source: Chen et al. 2023, "Symbolic discovery of optimization algorithms".
    """
    dtype = _canonical(mu_dtype)

    def init(params: Params) -> ScaleByLionState:
        return ScaleByLionState(zero_count(), zeros_like(params, dtype))

    def update(updates: Updates, state: ScaleByLionState, params: Params | None = None) -> Any:
        signs = map_updates(tnp.sign, moment(updates, state.mu, b1))
        mu = cast_tree(moment(updates, state.mu, b2), dtype)
        return signs, ScaleByLionState(safe_increment(state.count), mu)

    return GradientTransformation(*describe_transformation(init, update))


def scale_by_rms(
    decay: ArrayLike = 0.9,
    eps: ArrayLike = 1e-8,
    initial_scale: ArrayLike = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Divide gradients by the square root of the mean of their squares.

    Args:
      decay: the share of the mean that a step keeps.
      eps: is added under the root if `eps_in_sqrt`, else to it.
      initial_scale: the mean to begin with.
      bias_correction: divide the mean by the weight of what it has seen.
    Source: Tieleman & Hinton 2012, lecture 6.5 of "Neural networks for machine learning".
    """

    def init(params: Params) -> OptState:
        nu = real_full_like(params, initial_scale)
        return ScaleByRmsWithCountState(zero_count(), nu) if bias_correction else ScaleByRmsState(nu)

    def update(updates: Updates, state: Any, params: Params | None = None) -> tuple[Updates, OptState]:
        nu = second_moment(updates, state.nu, decay)
        square, count = _corrected(nu, decay, state, bias_correction)
        scaled = map_updates(lambda g, v: _inverse_root(v, eps, eps_in_sqrt) * g, updates, square)
        return scaled, ScaleByRmsWithCountState(count, nu) if bias_correction else ScaleByRmsState(nu)

    return GradientTransformation(*describe_transformation(init, update))


def scale_by_stddev(
    decay: ArrayLike = 0.9,
    eps: ArrayLike = 1e-8,
    initial_scale: ArrayLike = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Divide gradients by their running standard deviation; the arguments are those of `scale_by_rms`.

    Source: Hinton 2012, as `scale_by_rms`; Graves 2013, "Generating sequences with recurrent neural networks".
    """

    def init(params: Params) -> OptState:
        mu, nu = zeros_like(params), real_full_like(params, initial_scale)
        return ScaleByRStdDevWithCountState(zero_count(), mu, nu) if bias_correction else ScaleByRStdDevState(mu, nu)

    def update(updates: Updates, state: Any, params: Params | None = None) -> tuple[Updates, OptState]:
        mu, nu = moment(updates, state.mu, decay), second_moment(updates, state.nu, decay)
        mean, _ = _corrected(mu, decay, state, bias_correction)
        square, count = _corrected(nu, decay, state, bias_correction)
        variance = map_updates(lambda m, v: v - squared_modulus(m), mean, square)
        scaled = map_updates(lambda g, v: _inverse_root(v, eps, eps_in_sqrt) * g, updates, variance)
        if bias_correction:
            return scaled, ScaleByRStdDevWithCountState(count, mu, nu)
        return scaled, ScaleByRStdDevState(mu, nu)

    return GradientTransformation(*describe_transformation(init, update))


def _corrected(averages: Any, decay: ArrayLike, state: Any, wanted: bool) -> tuple[Any, Any]:
    """Correct averages for bias if that is wanted; return also the number of steps that they have seen."""
    if not wanted:
        return averages, None
    count = safe_increment(state.count)
    return bias_correction(averages, decay, count), count


def _inverse_root(v: Any, eps: ArrayLike, inside: bool) -> Any:
    return rsqrt(v + eps) if inside else 1 / (tnp.sqrt(v) + eps)


def scale_by_rss(initial_accumulator_value: ArrayLike = 0.1, eps: ArrayLike = 1e-7) -> GradientTransformation:
    """Divide gradients by the square root of the sum of their squares; by nothing where all were 0.

    Args:
      initial_accumulator_value: the sum to begin with.
      eps: is added under the root.
    Source: Duchi et al. 2011, "Adaptive subgradient methods for online learning and stochastic optimization".
    """

    def init(params: Params) -> ScaleByRssState:
        return ScaleByRssState(real_full_like(params, initial_accumulator_value))

    def accumulated(g: Any, total: Any) -> Any:
        return squared_modulus(g) + total

    def update(updates: Updates, state: ScaleByRssState, params: Params | None = None) -> Any:
        sums = map_updates(accumulated, updates, state.sum_of_squares, trees=UPDATES_AND_STATE)
        scaled = map_updates(lambda g, s: tnp.where(s > 0, rsqrt(s + eps), 0.0) * g, updates, sums)
        return scaled, ScaleByRssState(sums)

    return GradientTransformation(*describe_transformation(init, update))


def scale(step_size: ArrayLike) -> GradientTransformation:
    """Multiply updates by a number."""
    return stateless(lambda updates, params: map_updates(lambda g: step_size * g, updates))


def scale_by_schedule(step_size_fn: Schedule) -> GradientTransformation:
    """Multiply updates by a function of the number of steps before, in the dtypes of the updates."""

    def init(params: Params) -> ScaleByScheduleState:
        return ScaleByScheduleState(zero_count())

    def update(updates: Updates, state: ScaleByScheduleState, params: Params | None = None) -> Any:
        size = step_size_fn(state.count)
        scaled = map_updates(lambda g: tnp.asarray(size).astype(g.dtype) * g, updates)
        return scaled, ScaleByScheduleState(safe_increment(state.count))

    return GradientTransformation(*describe_transformation(init, update))


def scale_by_learning_rate(
    learning_rate: ScalarOrSchedule | None = None, *, flip_sign: bool = True
) -> GradientTransformation:
    """Multiply updates by a learning rate, and by -1, so that adding updates decreases the loss.

    Args:
      learning_rate: a number, or a function of the number of steps before; None changes nothing, the sign neither.
      flip_sign: multiply by -1.
    Raises: TypeError if the learning rate is something else, such as the string "1e-3" of a file.
    """
    if learning_rate is None:
        return identity()
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        schedule: Callable[..., Any] = learning_rate
        return scale_by_schedule(lambda count: sign * schedule(count))
    if not is_arraylike(learning_rate):
        raise TypeError(f"learning_rate must be a number or a function of steps, not {_described(learning_rate)}")
    rate: Any = learning_rate
    return scale(sign * rate)


def _described(learning_rate: Any) -> str:
    """Say what was given in the place of a learning rate, and where parameters go."""
    structure = pytree.structure(learning_rate)
    if structure is pytree.LEAF:
        return f"{learning_rate!r:.80} of type {type(learning_rate).__name__}."
    advice = "\n  Parameters are given to init: state = optimizer.init(params)."
    return f"{pytree.describe_node(structure)}.{advice}"


def add_decayed_weights(
    weight_decay: ScalarOrSchedule = 0.0, mask: Any | Callable[[Params], Any] | None = None
) -> GradientTransformation:
    """Add a multiple of the parameters to the updates: weight decay.

    Args:
      weight_decay: the share, or a function of the number of steps before.
      mask: pytree of bools, or a function of the parameters that returns one: which of them decay. All if None.
    Raises: ValueError if `update` is not given the parameters.
    Source: Loshchilov & Hutter 2017, "Decoupled weight decay regularization".
    """

    def init(params: Params) -> OptState:
        return WeightDecaySchedule(zero_count()) if callable(weight_decay) else init_empty_state(params)

    def update(updates: Updates, state: Any, params: Params | None = None) -> tuple[Updates, OptState]:
        check_params("add_decayed_weights", params)
        share: Any = weight_decay(state.count) if callable(weight_decay) else weight_decay
        after = WeightDecaySchedule(safe_increment(state.count)) if callable(weight_decay) else state
        return map_updates(lambda g, p: g + share * p, updates, params), after

    transformation = GradientTransformation(*describe_transformation(init, update))
    return transformation if mask is None else masked(transformation, mask)


def _canonical(dtype: Any) -> Any:
    return None if dtype is None else dtypes.canonical(dtype)
