"""Optimizers of three functions, as in JAX's examples, for libraries; `tapeless.optimizers` has those of optax's shape.

Each is defined for one array, as `init(x)`, `update(step, gradient, state)` and `get_params(state)`, and made one of
pytrees by `optimizer`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree

Schedule = Callable[[Any], Any]


class Optimizer(NamedTuple):
    """`init_fn(params) -> state`, `update_fn(step, gradients, state) -> state`, `params_fn(state) -> params`."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


@pytree.register_pytree_node_class
class OptimizerState:
    """States of an optimizer for each leaf of the parameters, and the structure of these."""

    def __init__(self, states: Sequence[Any], structure: Any) -> None:
        self.states: Final = tuple(states)
        self.structure: Final = structure

    def tree_flatten(self) -> tuple[Any, Any]:
        """Return the states, and the structure."""
        return self.states, self.structure

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> "OptimizerState":
        """Put together what `tree_flatten` gave."""
        return cls(children, aux)


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Make an optimizer of pytrees of one of arrays: `opt_maker(...)` gives the three functions for one array.

    Raises: when updated, ValueError if gradients and parameters have other structures; both are named.
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_tree(params: Any) -> OptimizerState:
            leaves, structure = pytree.flatten(params)
            return OptimizerState(map(init, leaves), structure)  # type: ignore[arg-type]

        def update_tree(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, structure = pytree.flatten(grads)
            if structure != state.structure:
                told = pytree.compare(state.structure, structure, ("parameters", "gradients"))
                raise ValueError(f"gradients must have the structure of the parameters.{told}")
            return OptimizerState([update(i, g, x) for g, x in zip(leaves, state.states)], structure)

        def params_of(state: OptimizerState) -> Any:
            return pytree.unflatten(state.structure, map(get_params, state.states))

        return Optimizer(init_tree, update_tree, params_of)

    return make


def _first(state: Any) -> Any:
    return state[0]


# ---- optimizers ----------------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: Any) -> Any:
    """Descend along gradients: x - step_size g."""
    rate = make_schedule(step_size)
    return lambda x0: x0, lambda i, g, x: x - rate(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Descend along a velocity, mass v + g."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return lambda x0: (x0, tnp.zeros_like(x0)), update, _first


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Descend along the velocity that there will be after the step. Source: Nesterov 1983."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return lambda x0: (x0, tnp.zeros_like(x0)), update, _first


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Divide gradients by the root of the sum of their squares so far. Source: Duchi, Hazan and Singer 2011."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + tnp.square(g)
        scale = tnp.where(squares > 0, 1 / tnp.sqrt(squares), 0.0)
        mean = (1 - momentum) * (g * scale) + momentum * mean
        return x - rate(i) * mean, squares, mean

    return lambda x0: (x0, tnp.zeros_like(x0), tnp.zeros_like(x0)), update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """Divide gradients by the root of a bound of adagrad's sums, of which each axis keeps its slices' largest.

    Source: Anil, Gupta, Koren and Singer 2019.
    """
    rate = make_schedule(step_size)

    def largest(bound: Any) -> list[Any]:
        axes = range(bound.ndim)
        return [bound.max([d for d in axes if d != kept], keepdims=True) for kept in axes] or [bound]

    def init(x0: Any) -> Any:
        zeros = tnp.zeros_like(x0)
        return x0, zeros, largest(zeros)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, bounds = state
        bound = functools.reduce(tnp.minimum, bounds) + tnp.square(g)
        scale = tnp.where(bound > 0, 1 / tnp.sqrt(bound), 0.0)
        mean = (1 - momentum) * (g * scale) + momentum * mean
        return x - rate(i) * mean, mean, largest(bound)

    return init, update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """Divide gradients by the root of a running mean of their squares. Source: Hinton 2012, lecture 6e."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = squares * gamma + tnp.square(g) * (1 - gamma)
        return x - rate(i) * g / tnp.sqrt(squares + eps), squares

    return lambda x0: (x0, tnp.zeros_like(x0)), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> Any:
    """Descend along a velocity of the steps of `rmsprop`."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, velocity = state
        squares = squares * gamma + tnp.square(g) * (1 - gamma)
        velocity = momentum * velocity + rate(i) * g / tnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return lambda x0: (x0, tnp.zeros_like(x0), tnp.zeros_like(x0)), update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Divide a running mean of gradients by that of their squares, both without bias. Source: Kingma and Ba 2015."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, squares = state
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * tnp.square(g) + b2 * squares
        direction = mean / _unbiasing(b1, i, mean) / (tnp.sqrt(squares / _unbiasing(b2, i, mean)) + eps)
        return x - rate(i) * direction, mean, squares

    return lambda x0: (x0, tnp.zeros_like(x0), tnp.zeros_like(x0)), update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Divide a running mean of gradients by their largest, which is forgotten slowly. Source: Kingma and Ba 2015."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = tnp.maximum(b2 * largest, tnp.abs(g))
        return x - rate(i) / _unbiasing(b1, i, mean) * mean / (largest + eps), mean, largest

    return lambda x0: (x0, tnp.zeros_like(x0), tnp.zeros_like(x0)), update, _first


def _unbiasing(decay: float, i: Any, like: Any) -> Any:
    return 1 - tnp.asarray(decay, like.dtype) ** (i + 1)


# ---- step sizes ----------------------------------------------------------------------------------------------


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """Return a function of the number of the step: a number is the same for all.

    Raises: TypeError if it is neither a number nor a function.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if tnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(f"make_schedule: a number or a function of the step, not {scalar_or_schedule!r}.")


def constant(step_size: Any) -> Schedule:
    """Make the schedule with one step size."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Make the schedule step_size decay_rate^(i / decay_steps)."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """Make the schedule step_size / (1 + decay_rate i / decay_steps), with whole i / decay_steps if `staircase`."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * tnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0) -> Schedule:
    """Make the schedule from step_size to final_step_size, by a power of the steps that are left."""

    def schedule(i: Any) -> Any:
        left = 1 - tnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Make the schedule with values[k] where k boundaries are less than the step.

    Raises: ValueError if there is not one value more than boundaries.
    """
    bounds, sizes = tnp.asarray(boundaries), tnp.asarray(values)
    if bounds.ndim != 1 or sizes.shape != (bounds.shape[0] + 1,):
        raise ValueError(f"piecewise_constant: {bounds.shape} boundaries need one value more, not {sizes.shape}.")
    return lambda i: sizes[tnp.sum(i > bounds)]


# ---- gradients -----------------------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Any:
    """Compute the norm of all numbers of a pytree."""
    return tnp.sqrt(sum(tnp.vdot(x, x) for x in pytree.leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Scale a pytree so that its norm is not more than `max_norm`."""
    norm = l2_norm(grad_tree)
    return pytree.tree_map(lambda g: tnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
