"""Quasi-Newton updates of limited memory, a gradient transformation: see `tapeless.scipy.iterative.limited_memory`."""

from typing import Any, NamedTuple

from tapeless.optimizers.moments import global_norm, safe_increment, zero_count, zeros_like
from tapeless.optimizers.transformation import (
    UPDATES_AND_STATE,
    GradientTransformation,
    Params,
    Updates,
    check_params,
    describe_transformation,
    map_updates,
)
from tapeless.scipy.iterative.limited_memory import (
    LimitedMemory,
    empty_memory,
    identity_scale,
    inverse_hessian_product,
    remember,
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
        return ScaleByLBFGSState(zero_count(), zeros, zeros, *empty_memory(memory_size, zeros))

    def update(updates: Updates, state: ScaleByLBFGSState, params: Params | None = None) -> Any:
        check_params("scale_by_lbfgs", params)
        begun = state.count > 0

        def difference(new: Any, old: Any) -> Any:
            return map_updates(lambda x, y: tnp.where(begun, x - y, 0), new, old, trees=UPDATES_AND_STATE)

        turns, steps = difference(updates, state.updates), difference(params, state.params)
        memory = LimitedMemory(*state[3:])
        memory = remember(memory, (state.count - 1) % memory_size, steps, turns)
        after = ScaleByLBFGSState(safe_increment(state.count), params, updates, *memory)
        scale = tnp.where(begun, identity_scale(steps, turns, 1), _careful(updates)) if scale_init_precond else 1.0
        return inverse_hessian_product(memory, updates, scale, state.count % memory_size), after

    return GradientTransformation(*describe_transformation(init, update))


def _careful(updates: Updates) -> Array:
    """Compute the scale of the first step: one of no length greater than 1."""
    return tnp.minimum(1.0, 1.0 / global_norm(pytree.tree_map(stop_gradient, updates)))
