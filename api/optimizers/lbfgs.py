"""Quasi-Newton updates of limited memory.

Source: Nocedal & Wright 2006, "Numerical optimization", algorithm 7.4 (the two loops) and equation 7.20 (the scale).
"""

from typing import Any, NamedTuple

from tapeless.control_flow.scan import scan
from tapeless.optimizers.moments import (
    add_scaled,
    cast_like,
    global_norm,
    inner_product,
    safe_increment,
    squared_norm,
    zero_count,
    zeros_like,
)
from tapeless.optimizers.transformation import (
    UPDATES_AND_STATE,
    GradientTransformation,
    Params,
    Updates,
    check_params,
    described,
    map_updates,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree
from tapeless.tracer.array import Array
from tapeless.tracer.primitives.elementwise import stop_gradient


class ScaleByLBFGSState(NamedTuple):
    """The state of `scale_by_lbfgs`: the step before, and differences of `memory_size` steps, in a ring.

    `weights_memory` has the inverses of their inner products, 0 where there is no difference yet.
    """

    count: Any  # int32[]
    params: Params
    updates: Updates
    diff_params_memory: Params
    diff_updates_memory: Updates
    weights_memory: Array


def scale_by_lbfgs(memory_size: int = 10, scale_init_precond: bool = True) -> GradientTransformation:
    """Multiply gradients by an approximation of the inverse Hessian, made of the last steps.

    Args:
      memory_size: the number of steps that are remembered.
      scale_init_precond: begin with a multiple of the identity that fits the last step; in the first step with the
        inverse of the norm of the gradient, but at most 1. Else with the identity.
    Raises: ValueError if `memory_size` is less than 1, or `update` is not given the parameters.
    """
    if memory_size < 1:
        raise ValueError(f"scale_by_lbfgs: memory_size must be at least 1, not {memory_size}.")

    def init(params: Params) -> ScaleByLBFGSState:
        zeros = zeros_like(params)
        memory = pytree.tree_map(lambda p: tnp.zeros((memory_size, *p.shape), p.dtype), zeros)
        weights = tnp.zeros(memory_size, inner_product(zeros, zeros).dtype)
        return ScaleByLBFGSState(zero_count(), zeros, zeros, memory, memory, weights)

    def update(updates: Updates, state: ScaleByLBFGSState, params: Params | None = None) -> Any:
        check_params("scale_by_lbfgs", params)
        begun = state.count > 0

        def difference(new: Any, old: Any) -> Any:
            return map_updates(lambda x, y: tnp.where(begun, x - y, 0), new, old, trees=UPDATES_AND_STATE)

        turns, steps = difference(updates, state.updates), difference(params, state.params)
        product = inner_product(turns, steps)
        weight = tnp.where(product == 0, 0, 1 / tnp.where(product == 0, 1, product))
        place = (state.count - 1) % memory_size
        after = ScaleByLBFGSState(
            safe_increment(state.count),
            params,
            updates,
            _written(state.diff_params_memory, place, steps),
            _written(state.diff_updates_memory, place, turns),
            _written(state.weights_memory, place, weight),
        )
        factor = _identity_scale(updates, turns, product, begun) if scale_init_precond else 1.0
        return _two_loops(updates, after, factor, state.count % memory_size), after

    return GradientTransformation(*described(init, update))


def _written(memory: Any, place: Any, values: Any) -> Any:
    return pytree.tree_map(lambda ring, x: ring.at[place].set(x.astype(ring.dtype)), memory, values)


def _identity_scale(updates: Updates, turns: Any, product: Any, begun: Any) -> Array:
    """Compute Rayleigh's quotient of the inverse Hessian along the last turn of the gradient; first a careful step."""
    square = squared_norm(turns)
    quotient = tnp.where(square > 0, product / tnp.where(square > 0, square, 1), 1)
    careful = tnp.minimum(1.0, 1.0 / global_norm(pytree.tree_map(stop_gradient, updates)))
    return tnp.where(begun, quotient, careful)


def _two_loops(updates: Updates, memory: ScaleByLBFGSState, factor: Any, oldest: Any) -> Updates:
    """Apply the approximation: from the newest step to the oldest, and back."""
    size = memory.weights_memory.shape[0]
    order = (oldest + tnp.arange(size)) % size
    ring = memory.diff_params_memory, memory.diff_updates_memory, memory.weights_memory

    def right(v: Any, k: Any) -> tuple[Any, Any]:
        step, turn, weight = pytree.tree_map(lambda x: x[k], ring)
        share = weight * inner_product(step, v)
        return add_scaled(v, -share, turn), share

    def left(v: Any, k_share: Any) -> tuple[Any, Any]:
        k, share = k_share
        step, turn, weight = pytree.tree_map(lambda x: x[k], ring)
        return add_scaled(v, share - weight * inner_product(turn, v), step), None

    v, shares = scan(right, updates, order, reverse=True)
    v = cast_like(pytree.tree_map(lambda x: factor * x, v), v)
    return scan(left, v, (order, shares))[0]
