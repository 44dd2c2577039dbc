"""Line search by zooming: bracket steps that satisfy the strong Wolfe conditions, then narrow the bracket.

Source: Nocedal & Wright 2006, "Numerical optimization", algorithms 3.5 and 3.6; Hager & Zhang 2006, "Algorithm 851:
CG_DESCENT", for the approximate decrease, which rounding does not hide near a minimum. One loop takes the steps of both
phases, so that a batch of searches goes through them together.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tapeless.control_flow.branches_and_loops import cond, while_loop
from tapeless.differentiate.autodiff import value_and_grad
from tapeless.optimizers.line_searches import moved, print_if, real_numbers_for, slope_along, with_arguments
from tapeless.optimizers.moments import cast_like, zeros_like
from tapeless.optimizers.transformation import GradientTransformationExtraArgs, Params, Updates, check_params, described
from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree
from tapeless.tracer.array import Array, ArrayLike


class ZoomLinesearchInfo(NamedTuple):
    """Outcome of the last search: the number of its steps, and what the two conditions lacked."""

    num_linesearch_steps: Array
    decrease_error: Array
    curvature_error: Array


class ScaleByZoomLinesearchState(NamedTuple):
    """The state of `scale_by_zoom_linesearch`: the last step, and value and gradient at its end."""

    learning_rate: Array
    value: Array
    grad: Updates
    info: ZoomLinesearchInfo


class _Point(NamedTuple):
    """A step, and value and slope at its end."""

    step: Any
    value: Any
    slope: Any


class _Trial(NamedTuple):
    """A point with its gradient, and what it lacks of the two conditions."""

    point: _Point
    grad: Any
    decrease_error: Any
    curvature_error: Any

    @property
    def error(self) -> Any:
        return tnp.maximum(self.decrease_error, self.curvature_error)


class _ZoomSearch(NamedTuple):
    """A search: its last trial, the bracket from the better end to the other, and the end before for the cubic; the
    best point of sufficient decrease so far, which is the start if there is none."""

    count: Any
    trial: _Trial
    low: _Point
    high: _Point
    reference: _Point
    safe: _Point
    safe_grad: Any
    bracketed: Any
    done: Any
    failed: Any


class _Limits(NamedTuple):
    """The arguments of `scale_by_zoom_linesearch`."""

    max_steps: ArrayLike
    longest: ArrayLike | None
    tol: ArrayLike
    increase_factor: ArrayLike
    slope_rtol: Any
    curv_rtol: ArrayLike
    approx_dec_rtol: ArrayLike | None
    shortest_interval: ArrayLike


class _OnLine(NamedTuple):
    """The loss along a line: where it starts, what it is after a step (value, gradient, slope), and the first step."""

    start: _Point
    at: Callable[[Any], tuple[Any, Any, Any]]
    guess: Any


def scale_by_zoom_linesearch(
    max_linesearch_steps: ArrayLike,
    max_learning_rate: ArrayLike | None = None,
    tol: ArrayLike = 0.0,
    increase_factor: ArrayLike = 2.0,
    slope_rtol: ArrayLike = 1e-4,
    curv_rtol: ArrayLike = 0.9,
    approx_dec_rtol: ArrayLike | None = 1e-6,
    stepsize_precision: ArrayLike = 1e-5,
    initial_guess_strategy: str = "keep",
    verbose: bool = False,
) -> GradientTransformationExtraArgs:
    """Scale updates by a step that satisfies the strong Wolfe conditions.

    Args:
      max_linesearch_steps: trials of a search. Where they do not suffice, the best that decreases the loss is taken.
      max_learning_rate: the longest step.
      tol: what both conditions may lack.
      increase_factor: the factor from one step to the next until a bracket is found.
      slope_rtol, curv_rtol: the factors of the two conditions, 0 < slope_rtol < curv_rtol < 1.
      approx_dec_rtol: how little the loss may increase, relative to it, where the approximate decrease holds; None asks
        for the decrease itself.
      stepsize_precision: the length of a bracket that is not narrowed further.
      initial_guess_strategy: "keep" begins with the last step, "one" with 1.
      verbose: print when a search fails.
    Raises: ValueError if there is no such strategy, or `update` is not given the parameters; TypeError for keywords
      that `value_fn` does not take.
    """
    who = "scale_by_zoom_linesearch"
    if initial_guess_strategy not in ("one", "keep"):
        raise ValueError(f"{who}: initial_guess_strategy must be 'one' or 'keep', not {initial_guess_strategy!r}.")
    limits = _Limits(
        max_linesearch_steps,
        max_learning_rate,
        tol,
        increase_factor,
        slope_rtol,
        curv_rtol,
        approx_dec_rtol,
        stepsize_precision,
    )

    def update(
        updates: Updates, state: Any, params: Params = None, *, value: Any, grad: Any, value_fn: Any, **extra: Any
    ) -> tuple[Updates, ScaleByZoomLinesearchState]:
        check_params(who, params)
        guess = tnp.ones_like(state.learning_rate) if initial_guess_strategy == "one" else state.learning_rate
        line = _on_line(with_arguments(who, value_fn, extra), params, updates, value, grad, guess)
        search, (end, there) = _searched(limits, line, grad)
        if verbose:
            _print_failure(search)
        info = ZoomLinesearchInfo(search.count, search.trial.decrease_error, search.trial.curvature_error)
        scaled = pytree.tree_map(lambda u: (end.step * u).astype(u.dtype), updates)
        return scaled, ScaleByZoomLinesearchState(end.step, end.value, there, info)

    return GradientTransformationExtraArgs(*described(_unsearched, update))


def _unsearched(params: Params) -> ScaleByZoomLinesearchState:
    unknown = tnp.array(np.inf, real_numbers_for(params))
    info = ZoomLinesearchInfo(tnp.zeros((), np.int32), unknown, unknown)
    return ScaleByZoomLinesearchState(tnp.ones_like(unknown), unknown, zeros_like(params), info)


def _on_line(
    loss: Callable[..., Any], params: Params, direction: Updates, value: Any, grad: Any, guess: Any
) -> _OnLine:
    """Make the loss along a direction, its numbers being of the dtype of `guess`."""

    def at(step: Any) -> tuple[Any, Any, Any]:
        reached, there = value_and_grad(loss)(moved(params, step, direction))
        there = cast_like(there, grad)
        return reached.astype(guess.dtype), there, slope_along(there, direction).astype(guess.dtype)

    numbers = 0.0, value, slope_along(grad, direction)
    return _OnLine(_Point(*[tnp.asarray(x).astype(guess.dtype) for x in numbers]), at, guess)


def _searched(limits: _Limits, line: _OnLine, grad: Any) -> tuple[_ZoomSearch, tuple[_Point, Any]]:
    """Search; return the last state, and the point that is taken with its gradient."""
    start, no = line.start, tnp.array(False)
    unknown = tnp.full_like(start.value, np.inf)
    trial = _Trial(start, grad, unknown, unknown)
    search = _ZoomSearch(tnp.zeros((), np.int32), trial, start, start, start, start, grad, no, no, no)

    def step(search: _ZoomSearch) -> _ZoomSearch:
        after = cond(search.bracketed, partial(_narrowed, limits, line), partial(_bracketed, limits, line), search)
        return cast_like(after, search)

    search = while_loop(lambda s: ~(s.done | s.failed), step, search)
    trial = search.trial
    fall_back = search.failed & ((search.safe.step > 0) | tnp.isinf(trial.decrease_error))
    return search, _select(fall_back, (search.safe, search.safe_grad), (trial.point, trial.grad))


def _tried(limits: _Limits, line: _OnLine, step: Any) -> _Trial:
    """Evaluate the loss after a step, and what it lacks; nan lacks everything."""
    value, grad, slope = line.at(step)
    decrease = value - line.start.value - limits.slope_rtol * step * line.start.slope
    if limits.approx_dec_rtol is not None:
        flatter = slope - (2 * limits.slope_rtol - 1.0) * line.start.slope
        increase = value - line.start.value - limits.approx_dec_rtol * tnp.abs(line.start.value)
        decrease = tnp.minimum(tnp.maximum(flatter, increase), decrease)
    curvature = tnp.abs(slope) - limits.curv_rtol * tnp.abs(line.start.slope)
    return _Trial(_Point(step, value, slope), grad, _positive_part(decrease), _positive_part(curvature))


def _positive_part(error: Any) -> Any:
    return tnp.where(tnp.isnan(error), np.inf, tnp.maximum(error, 0.0))


def _bracketed(limits: _Limits, line: _OnLine, search: _ZoomSearch) -> _ZoomSearch:
    """Take a longer step, until one is too long: it and the one before are a bracket (algorithm 3.5)."""
    last = search.trial.point
    step = tnp.where(search.count == 0, line.guess, limits.increase_factor * last.step)
    at_end: Any = tnp.array(False)
    if limits.longest is not None:
        at_end, step = step >= limits.longest, tnp.minimum(step, limits.longest)
    trial = _tried(limits, line, step.astype(last.step.dtype))
    new = trial.point
    too_high = (trial.decrease_error > 0) | ((new.value >= last.value) & (search.count > 0))
    uphill = (new.slope >= 0) & ~too_high
    low, high = _select(uphill, (new, last), (last, new))
    met = trial.error <= limits.tol
    bracketed = too_high | uphill | met
    done = met | (at_end & ~bracketed)
    safe, safe_grad = _select(trial.decrease_error <= limits.tol, (new, trial.grad), (search.safe, search.safe_grad))
    failed = (search.count + 1 >= limits.max_steps) & ~done
    return _ZoomSearch(search.count + 1, trial, low, high, low, safe, safe_grad, bracketed, done, failed)


def _narrowed(limits: _Limits, line: _OnLine, search: _ZoomSearch) -> _ZoomSearch:
    """Try a point inside the bracket, and let it be one of its ends (algorithm 3.6)."""
    low, high = search.low, search.high
    trial = _tried(limits, line, _inside(low, high, search.reference))
    new = trial.point
    better = (trial.decrease_error <= limits.tol) & (new.value < search.safe.value)
    safe, safe_grad = _select(better, (new, trial.grad), (search.safe, search.safe_grad))
    too_high = (trial.decrease_error > 0) | (new.value >= low.value)
    turned = (new.slope * (high.step - low.step) >= 0) & ~too_high
    reference = _select(too_high | turned, high, low)
    high, low = _select(too_high, new, _select(turned, low, high)), _select(too_high, low, new)
    done = trial.error <= limits.tol
    too_short = tnp.abs(search.high.step - search.low.step) <= limits.shortest_interval
    failed = ((search.count + 1 >= limits.max_steps) | (too_short & (safe.step > 0))) & ~done
    return _ZoomSearch(search.count + 1, trial, low, high, reference, safe, safe_grad, search.bracketed, done, failed)


def _inside(low: _Point, high: _Point, reference: _Point) -> Any:
    """Find the minimum of a cubic, else of a parabola, through what is known, if well inside; else the middle."""
    length = tnp.abs(high.step - low.step)
    left, right = tnp.minimum(low.step, high.step), tnp.maximum(low.step, high.step)
    cubic, parabola = _minimum_of_cubic(low, high, reference), _minimum_of_parabola(low, high)
    middle = (low.step + high.step) / 2.0
    middle = tnp.where((parabola > left + 0.1 * length) & (parabola < right - 0.1 * length), parabola, middle)
    return tnp.where((cubic > left + 0.2 * length) & (cubic < right - 0.2 * length), cubic, middle)


def _minimum_of_cubic(p: _Point, q: _Point, r: _Point) -> Any:
    """Find where a cubic is least that has value and slope of p, and the values of q and r; nan if nowhere."""
    x, y = q.step - p.step, r.step - p.step
    fx, fy = q.value - p.value - p.slope * x, r.value - p.value - p.slope * y
    divisor = (x * y) ** 2 * (x - y)
    a, b = (y**2 * fx - x**2 * fy) / divisor, (x**3 * fy - y**3 * fx) / divisor
    return p.step + (-b + tnp.sqrt(b * b - 3.0 * a * p.slope)) / (3.0 * a)


def _minimum_of_parabola(p: _Point, q: _Point) -> Any:
    """Find where a parabola is least that has value and slope of p, and the value of q."""
    x = q.step - p.step
    return p.step - p.slope / (2.0 * ((q.value - p.value - p.slope * x) / x**2))


def _select(which: Any, yes: Any, no: Any) -> Any:
    return pytree.tree_map(lambda x, y: tnp.where(which, x, y), yes, no)


def _print_failure(search: _ZoomSearch) -> None:
    trial = search.trial
    values = {"step": trial.point.step, "decrease": trial.decrease_error, "curvature": trial.curvature_error}
    print_if(search.failed, _FAILED, safe=search.safe.step, slope=search.low.slope, **values)


_FAILED = (
    "scale_by_zoom_linesearch: no step satisfies the Wolfe conditions. The last, {step}, lacks {decrease} of the "
    "decrease and {curvature} of the curvature; of sufficient decrease is {safe} (0: none). The slope at the better "
    "end of the bracket is {slope}."
)
