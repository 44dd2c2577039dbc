"""Line search by zooming, as a gradient transformation: see `tapeless.scipy.iterative.line_search`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapeless.differentiate.autodiff import value_and_grad
from tapeless.optimizers.line_searches import move_params, print_if, real_numbers_for, slope_along, with_arguments
from tapeless.optimizers.moments import cast_like, zeros_like
from tapeless.optimizers.transformation import (
    GradientTransformationExtraArgs,
    Params,
    Updates,
    check_params,
    describe_transformation,
)
from tapeless.scipy.iterative.line_search import LinePoint, LineSearch, SearchLimits, line_search
from tapeless.scipy.iterative.vectors import select
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
    conditions = tol, increase_factor, slope_rtol, curv_rtol, approx_dec_rtol, stepsize_precision
    limits = SearchLimits(max_linesearch_steps, None, max_learning_rate, *conditions)

    def update(
        updates: Updates, state: Any, params: Params = None, *, value: Any, grad: Any, value_fn: Any, **extra: Any
    ) -> tuple[Updates, ScaleByZoomLinesearchState]:
        check_params(who, params)
        guess = tnp.ones_like(state.learning_rate) if initial_guess_strategy == "one" else state.learning_rate
        start = LinePoint(*[tnp.asarray(x).astype(guess.dtype) for x in (0.0, value, slope_along(grad, updates))])
        along = _along(with_arguments(who, value_fn, extra), params, updates, grad, guess.dtype)
        search = line_search(along, start, grad, guess, limits)
        trial, safe = search.trial, search.safe
        fall_back = search.failed & ((safe.step > 0) | tnp.isinf(trial.decrease_error))
        end, there = select(fall_back, (safe, search.safe_gradient), (trial.point, trial.gradient))
        if verbose:
            _print_failure(search)
        info = ZoomLinesearchInfo(search.count, trial.decrease_error, trial.curvature_error)
        scaled = pytree.tree_map(lambda u: (end.step * u).astype(u.dtype), updates)
        return scaled, ScaleByZoomLinesearchState(end.step, end.value, there, info)

    return GradientTransformationExtraArgs(*describe_transformation(_unsearched, update))


def _unsearched(params: Params) -> ScaleByZoomLinesearchState:
    unknown = tnp.array(np.inf, real_numbers_for(params))
    info = ZoomLinesearchInfo(tnp.zeros((), np.int32), unknown, unknown)
    return ScaleByZoomLinesearchState(tnp.ones_like(unknown), unknown, zeros_like(params), info)


def _along(
    loss: Callable[..., Any], params: Params, direction: Updates, grad: Updates, dtype: Any
) -> Callable[[Any], tuple[Any, Any, Any]]:
    """Make the loss along a direction: value, gradient (of the dtypes of `grad`) and slope after a step."""

    def at(step: Any) -> tuple[Any, Any, Any]:
        reached, there = value_and_grad(loss)(move_params(params, step, direction))
        there = cast_like(there, grad)
        return reached.astype(dtype), there, slope_along(there, direction).astype(dtype)

    return at


def _print_failure(search: LineSearch) -> None:
    trial = search.trial
    values = {"step": trial.point.step, "decrease": trial.decrease_error, "curvature": trial.curvature_error}
    print_if(search.failed, _FAILED, safe=search.safe.step, slope=search.low.slope, **values)


_FAILED = (
    "scale_by_zoom_linesearch: no step satisfies the Wolfe conditions. The last, {step}, lacks {decrease} of the "
    "decrease and {curvature} of the curvature; of sufficient decrease is {safe} (0: none). The slope at the better "
    "end of the bracket is {slope}."
)
