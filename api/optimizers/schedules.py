"""Schedules: functions from the number of steps before this one to a number, such as a learning rate.

They take Python integers and arrays, traced ones too, under the names and with the numbers of optax. A schedule over no
steps is constant; what optax corrects with a note in its log (negative numbers of steps and starts) is an error.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from tapeless.optimizers.transformation import Schedule
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import ArrayLike


def constant_schedule(value: ArrayLike) -> Schedule:
    """Make the schedule that is always `value`."""

    def schedule(count: Any) -> Any:
        """Return the value, whatever the number of steps is."""
        return value

    return schedule


def polynomial_schedule(
    init_value: ArrayLike, end_value: ArrayLike, power: ArrayLike, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """Change from one value to another along (1 - t)**power, where t is the fraction of finished steps.

    Args:
      init_value: the value until `transition_begin`; always, if there are 0 `transition_steps`.
      end_value: the value from `transition_begin + transition_steps` on.
      power: of the polynomial.
    Raises: ValueError if a number of steps is negative.
    """
    _check_steps("polynomial_schedule", transition_steps=transition_steps, transition_begin=transition_begin)
    if transition_steps == 0:
        return constant_schedule(init_value)

    first: Any = init_value

    def schedule(count: Any) -> Any:
        """Compute the value after `count` steps, a number or a traced one."""
        # Not 1 - done / steps, which rounding makes negative at the end, and a power of it nan.
        left = (transition_steps - tnp.clip(count - transition_begin, 0, transition_steps)) / transition_steps
        return (first - end_value) * left**power + end_value

    return schedule


def linear_schedule(
    init_value: ArrayLike, end_value: ArrayLike, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """Change linearly from one value to another. See `polynomial_schedule`, whose `power` is 1."""
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def piecewise_constant_schedule(
    init_value: ArrayLike, boundaries_and_scales: Mapping[int, float] | None = None
) -> Schedule:
    """Multiply a value by a given factor after each of the given steps.

    Args:
      boundaries_and_scales: the factor of each such step; the value is another in the step of this number.
    Raises: ValueError if a factor is negative.
    """
    pairs = _sorted_scales("piecewise_constant_schedule", boundaries_and_scales)

    def schedule(count: Any) -> Any:
        """Compute the value after `count` steps, a number or a traced one."""
        value: Any = init_value
        for boundary, factor in pairs:
            value = tnp.where(count < boundary, value, value * factor)
        return value

    return schedule


def exponential_decay(
    init_value: ArrayLike,
    transition_steps: int,
    decay_rate: float,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: ArrayLike | None = None,
) -> Schedule:
    """Multiply a value by `decay_rate` in each `transition_steps` steps, smoothly.

    Args:
      transition_begin: the number of steps before that.
      staircase: multiply at once at the end of these steps.
      end_value: a bound: from below if `decay_rate` is less than 1, else from above.
    Raises: ValueError if `decay_rate` is not positive, or a number of steps is negative.
    """
    _check_steps("exponential_decay", transition_steps=transition_steps, transition_begin=transition_begin)
    if not decay_rate > 0:
        raise ValueError(f"exponential_decay: decay_rate must be positive, not {decay_rate}.")
    if transition_steps == 0:
        return constant_schedule(init_value)
    bounded: Callable[[Any, Any], Any] = tnp.maximum if decay_rate < 1.0 else tnp.minimum

    def schedule(count: Any) -> Any:
        """Compute the value after `count` steps, a number or a traced one."""
        done = count - transition_begin
        power = tnp.floor(done / transition_steps) if staircase else done / transition_steps
        value = tnp.where(done <= 0, init_value, init_value * tnp.power(decay_rate, power))
        return value if end_value is None else bounded(value, end_value)

    return schedule


def cosine_decay_schedule(
    init_value: ArrayLike, decay_steps: int, alpha: ArrayLike = 0.0, exponent: ArrayLike = 1.0
) -> Schedule:
    """Decrease a value to `alpha` times it along half a period of a cosine, raised to the power `exponent`.

    Raises: ValueError if `decay_steps` is not positive.
    Source: Loshchilov & Hutter 2016, "SGDR: stochastic gradient descent with warm restarts".
    """
    if not decay_steps > 0:
        raise ValueError(f"cosine_decay_schedule: decay_steps must be positive, not {decay_steps}.")

    first: Any = init_value
    least: Any = alpha

    def schedule(count: Any) -> Any:
        """Compute the value after `count` steps, a number or a traced one."""
        wave = 0.5 * (1 + tnp.cos(np.pi * tnp.minimum(count, float(decay_steps)) / decay_steps))
        return first * ((1 - least) * wave**exponent + least)

    return schedule


def piecewise_interpolate_schedule(
    interpolate_type: str, init_value: ArrayLike, boundaries_and_scales: Mapping[int, float] | None = None
) -> Schedule:
    """Interpolate between values at some steps, each of which is a factor times the one before.

    Args:
      interpolate_type: "linear" or "cosine".
      init_value: the value of step 0.
      boundaries_and_scales: the factor of each such step; the last value stays.
    Raises: ValueError if a factor is negative, or there is no such interpolation.
    """
    if interpolate_type not in _WEIGHTS:
        raise ValueError(
            f"piecewise_interpolate_schedule: interpolate_type must be 'linear' or 'cosine', not {interpolate_type!r}."
        )
    weight = _WEIGHTS[interpolate_type]
    pairs = _sorted_scales("piecewise_interpolate_schedule", boundaries_and_scales)
    bounds = [0, *[boundary for boundary, _ in pairs]]
    values: list[Any] = list(accumulate([init_value, *[factor for _, factor in pairs]], lambda x, y: x * y))

    def schedule(count: Any) -> Any:
        """Compute the value after `count` steps, a number or a traced one."""
        value: Any = tnp.where(count < bounds[-1], 0.0, values[-1])
        for k, start in enumerate(bounds[:-1]):
            inside = tnp.logical_and(start <= count, count < bounds[k + 1])
            share = (count - start) / max(bounds[k + 1] - start, 1)
            value = tnp.where(inside, values[k] + (values[k + 1] - values[k]) * weight(share), value)
        return value

    return schedule


_WEIGHTS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda share: share,
    "cosine": lambda share: 0.5 * (1 - tnp.cos(np.pi * share)),
}


def linear_onecycle_schedule(
    transition_steps: int,
    peak_value: ArrayLike,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Increase linearly to `peak_value`, decrease again, then decrease to almost nothing.

    Args:
      pct_start: the share of the steps that go up, from peak_value / div_factor.
      pct_final: the share of the steps until the value is that again.
      final_div_factor: what the first value is to the last.
    Raises: ValueError if `transition_steps` is not positive.
    Source: Smith & Topin 2017, "Super-convergence: very fast training of neural networks using large learning rates".
    """
    _check_positive("linear_onecycle_schedule", transition_steps)
    scales = {
        int(pct_start * transition_steps): div_factor,
        int(pct_final * transition_steps): 1.0 / div_factor,
        transition_steps: 1.0 / final_div_factor,
    }
    peak: Any = peak_value
    return piecewise_interpolate_schedule("linear", peak / div_factor, scales)


def cosine_onecycle_schedule(
    transition_steps: int,
    peak_value: ArrayLike,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Increase to `peak_value`, then decrease to almost nothing, along cosines. See `linear_onecycle_schedule`."""
    _check_positive("cosine_onecycle_schedule", transition_steps)
    scales = {int(pct_start * transition_steps): div_factor, transition_steps: 1.0 / (div_factor * final_div_factor)}
    peak: Any = peak_value
    return piecewise_interpolate_schedule("cosine", peak / div_factor, scales)


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Join schedules one after another, each of which counts its own steps.

    Args:
      boundaries: the steps at which the second schedule and those after it begin.
    Raises: ValueError if there is not one boundary less than schedules.
    """
    if len(boundaries) != len(schedules) - 1:
        raise ValueError(
            f"join_schedules: {len(schedules)} schedules have one boundary less than that, not {len(boundaries)}."
        )

    def schedule(count: Any) -> Any:
        """Compute the value after `count` steps, a number or a traced one."""
        value: Any = schedules[0](count)
        for boundary, after in zip(boundaries, schedules[1:]):
            value = tnp.where(count < boundary, value, after(count - boundary))
        return value

    return schedule


def warmup_constant_schedule(init_value: ArrayLike, peak_value: ArrayLike, warmup_steps: int) -> Schedule:
    """Increase linearly, then stay constant."""
    return linear_schedule(init_value, peak_value, warmup_steps)


def warmup_cosine_decay_schedule(
    init_value: ArrayLike,
    peak_value: ArrayLike,
    warmup_steps: int,
    decay_steps: int,
    end_value: ArrayLike = 0.0,
    exponent: ArrayLike = 1.0,
) -> Schedule:
    """Increase linearly, then decay along a cosine.

    Args:
      decay_steps: the number of steps of both.
      end_value: the value after them.
      exponent: that the cosine is raised to.
    Raises: ValueError if `decay_steps` is not greater than `warmup_steps`.
    """
    peak: Any = peak_value
    alpha = 0.0 if peak == 0.0 else end_value / peak
    down = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps), down], [warmup_steps])


def warmup_exponential_decay_schedule(
    init_value: ArrayLike,
    peak_value: ArrayLike,
    warmup_steps: int,
    transition_steps: int,
    decay_rate: float,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: ArrayLike | None = None,
) -> Schedule:
    """Increase linearly, then decay exponentially: `linear_schedule`, then `exponential_decay`."""
    down = exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value)
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps), down], [warmup_steps])


def sgdr_schedule(cosine_kwargs: Iterable[Mapping[str, Any]]) -> Schedule:
    """Join several warm-up cosine schedules: gradient descent with warm restarts.

    Args:
      cosine_kwargs: arguments of `warmup_cosine_decay_schedule`, one mapping for each.
    """
    given = list(cosine_kwargs)
    ends = list(accumulate([kwargs["decay_steps"] for kwargs in given]))
    return join_schedules([warmup_cosine_decay_schedule(**kwargs) for kwargs in given], ends[:-1])


def _check_steps(who: str, **counts: int) -> None:
    for name, count in counts.items():
        if count < 0:
            raise ValueError(f"{who}: {name} must not be negative, but is {count}.")


def _check_positive(who: str, transition_steps: int) -> None:
    if transition_steps <= 0:
        raise ValueError(f"{who}: transition_steps must be positive, not {transition_steps}.")


def _sorted_scales(who: str, scales: Mapping[int, float] | None) -> list[tuple[int, float]]:
    pairs = sorted((scales or {}).items())
    wrong = [f"{factor} at {step}" for step, factor in pairs if factor < 0]
    if wrong:
        raise ValueError(f"{who}: factors must not be negative, but there is {', '.join(wrong)}.")
    return pairs
