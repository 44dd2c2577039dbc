"""Line search by backtracking: shorten the step until the loss has decreased enough.

Source: Armijo 1966, "Minimization of functions having Lipschitz continuous first partial derivatives"; Nocedal & Wright
2006, "Numerical optimization", algorithm 3.1. The first step of a search is longer than the last of the one before.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from tapeless.control_flow.branches_and_loops import while_loop
from tapeless.differentiate.autodiff import value_and_grad
from tapeless.optimizers.line_searches import move_params, print_if, real_numbers_for, slope_along, with_arguments
from tapeless.optimizers.moments import zeros_like
from tapeless.optimizers.transformation import (
    GradientTransformationExtraArgs,
    Params,
    Updates,
    check_params,
    describe_transformation,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree
from tapeless.tracer.array import Array, ArrayLike


class BacktrackingLinesearchInfo(NamedTuple):
    """Outcome of the last search: the number of its steps, and what the decrease lacked."""

    num_linesearch_steps: Array
    decrease_error: Array


class ScaleByBacktrackingLinesearchState(NamedTuple):
    """The state of `scale_by_backtracking_linesearch`: the last step, and value and gradient at its end."""

    learning_rate: Array
    value: Array
    grad: Updates | None
    info: BacktrackingLinesearchInfo


class _Shortening(NamedTuple):
    step: Any
    value: Any
    error: Any
    count: Any


class _Conditions(NamedTuple):
    """Conditions on a step, and what makes the next one: see `scale_by_backtracking_linesearch`."""

    most: ArrayLike
    slope_rtol: ArrayLike
    decrease_factor: ArrayLike
    atol: ArrayLike
    rtol: ArrayLike

    def search(self, loss: Callable[[Any], Any], first: Array, start: Array, slope: Any) -> _Shortening:
        """Shorten the step `first` until loss(step), `start` at 0 and there of this slope, has decreased enough."""
        dtype, excess = start.dtype, cast(Any, self.rtol)

        def lacking(step: Any, reached: Any) -> Any:
            error = reached - (1.0 + excess) * start - step * self.slope_rtol * slope
            return tnp.maximum(tnp.where(tnp.isnan(error), np.inf, error), 0.0).astype(dtype)

        def shorter(search: _Shortening) -> _Shortening:
            step = tnp.where(search.count > 0, self.decrease_factor * search.step, search.step).astype(dtype)
            reached = tnp.asarray(loss(step)).astype(dtype)
            return _Shortening(step, reached, lacking(step, reached), search.count + 1)

        def go_on(search: _Shortening) -> Any:
            return ~(search.error <= self.atol) & (search.count <= self.most)

        begin = _Shortening(first, start, tnp.array(np.inf, dtype), tnp.zeros((), np.int32))
        return while_loop(go_on, shorter, begin)


def scale_by_backtracking_linesearch(
    max_backtracking_steps: ArrayLike,
    slope_rtol: ArrayLike = 1e-4,
    decrease_factor: ArrayLike = 0.8,
    increase_factor: ArrayLike = 1.5,
    max_learning_rate: ArrayLike = 1.0,
    atol: ArrayLike = 0.0,
    rtol: ArrayLike = 0.0,
    store_grad: bool = False,
    verbose: bool = False,
) -> GradientTransformationExtraArgs:
    """Scale updates by the first of shrinking steps s with f(x + s u) <= (1 + rtol) f(x) + slope_rtol s f'(x) u + atol.

    Args:
      max_backtracking_steps: after as many the step is taken as it is; of no length if it ends in inf or nan.
      decrease_factor: the factor from one step to the next.
      increase_factor: the factor from the last step of a search to the first of the next.
      max_learning_rate: the longest first step.
      store_grad: keep the gradient at the end of the step, for `value_and_grad_from_state`.
      verbose: print when a search fails.
    Raises: ValueError if `update` is not given the parameters, TypeError for keywords that `value_fn` does not take.
    """
    who = "scale_by_backtracking_linesearch"
    conditions = _Conditions(max_backtracking_steps, slope_rtol, decrease_factor, atol, rtol)

    def init(params: Params) -> ScaleByBacktrackingLinesearchState:
        dtype = real_numbers_for(params)
        info = BacktrackingLinesearchInfo(tnp.zeros((), np.int32), tnp.array(np.inf, dtype))
        grad = zeros_like(params) if store_grad else None
        return ScaleByBacktrackingLinesearchState(tnp.ones((), dtype), tnp.array(np.inf, dtype), grad, info)

    def update(
        updates: Updates,
        state: Any,
        params: Params | None = None,
        *,
        value: Any,
        grad: Any,
        value_fn: Any,
        **extra: Any,
    ) -> tuple[Updates, ScaleByBacktrackingLinesearchState]:
        check_params(who, params)
        loss, dtype = with_arguments(who, value_fn, extra), state.value.dtype
        start, slope = tnp.asarray(value).astype(dtype), slope_along(grad, updates)
        first = tnp.minimum(increase_factor * state.learning_rate, max_learning_rate).astype(dtype)
        search = conditions.search(lambda step: loss(move_params(params, step, updates)), first, start, slope)
        if verbose:
            print_if(search.error > atol, _FAILED, step=search.step, error=search.error, value=start, slope=slope)
        step = tnp.where(tnp.isinf(search.error), 0.0, search.step).astype(dtype)
        after = value_and_grad(loss)(move_params(params, search.step, updates))[1] if store_grad else None
        info = BacktrackingLinesearchInfo(search.count, search.error)
        scaled = pytree.tree_map(lambda u: (step * u).astype(u.dtype), updates)
        return scaled, ScaleByBacktrackingLinesearchState(step, search.value, after, info)

    return GradientTransformationExtraArgs(*describe_transformation(init, update))


_FAILED = (
    "scale_by_backtracking_linesearch: no step decreases the loss enough. It is {value}, its slope {slope}; "
    "of the last step, {step}, the decrease lacks {error}."
)
