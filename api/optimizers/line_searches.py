"""Parts of line searches: gradient transformations scaling updates by a step that decreases the loss enough.

Their `update` takes the loss, too: `update(updates, state, params, value=, grad=, value_fn=, ...)`, `value` and `grad`
being those of `value_fn` at `params`; what else it is given are keyword arguments of `value_fn`. Value and gradient
where the step ends are kept in the state, for `value_and_grad_from_state`.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

from tapeless.control_flow.branches_and_loops import cond
from tapeless.differentiate.autodiff import value_and_grad
from tapeless.host.debug_callbacks import debug_print
from tapeless.optimizers.moments import real_dtype
from tapeless.optimizers.transformation import Params, Updates
from tapeless.scipy.iterative.vectors import add_scaled, inner_product
from tapeless.tracer import dtypes, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array


def with_arguments(who: str, value_fn: Callable[..., Any], extra_args: dict[str, Any]) -> Callable[..., Any]:
    """Give a loss its keyword arguments. Raises: TypeError if it does not take one of them."""
    taken = inspect.signature(value_fn).parameters
    unknown = sorted(name for name in extra_args if name not in taken)
    if unknown:
        raise TypeError(
            f"{who}: update was given {', '.join(unknown)}, which value_fn does not take.\n"
            f"  It takes {', '.join(taken)}; update itself takes value, grad and value_fn."
        )
    return partial(value_fn, **extra_args)


def real_numbers_for(params: Params) -> Any:
    """Return the dtype of step sizes and values: the widest of the real dtypes of the parameters."""
    return reduce(dtypes.wider, map(real_dtype, pytree.leaves(params)), real_dtype(tnp.zeros((), tnp.bfloat16)))


def slope_along(grad: Updates, direction: Updates) -> Array:
    """Compute the derivative along a direction: the sum of Re(g d), without conjugation, as gradients are defined."""
    return inner_product(pytree.tree_map(tnp.conj, grad), direction)


def move_params(params: Params, step: Any, direction: Updates) -> Params:
    """Return the parameters after a step, in their dtypes."""
    return add_scaled(params, step, direction)


def print_if(failed: Any, message: str, **values: Any) -> None:
    """Print a message when the program runs, where `failed` holds."""
    cond(failed, lambda: debug_print(message, **values), lambda: None)


def value_and_grad_from_state(value_fn: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Make a `value_and_grad` of a loss that takes both from the state of a line search, where they are known.

    Returns: `f(params, *args, state, **kwargs) -> value, gradient`; both are computed if the state has none yet, or an
      infinite one. The loss has to be the same function from step to step.
    Raises: ValueError from the function if `state` has no value and gradient, or several.

    >>> import tapeless.numpy as tnp
    >>> from tapeless import optimizers
    >>> optimizer, x = optimizers.lbfgs(), tnp.ones(2)
    >>> value_and_grad_from_state(lambda x: (x * x).sum())(x, state=optimizer.init(x))
    (Array(2., dtype=float32), Array([2., 2.], dtype=float32))
    """

    def from_state(params: Params, *args: Any, state: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, grad = _field(state, "value"), _field(state, "grad")
        if grad is None:
            raise ValueError(
                "value_and_grad_from_state: the state has no gradient. Give the line search store_grad=True."
            )

        def anew() -> tuple[Any, Any]:
            value_now, grad_now = value_and_grad(value_fn)(params, *args, **kwargs)
            return value_now.astype(value.dtype), grad_now

        return cond(tnp.isfinite(value), lambda: (value, grad), anew)

    return from_state


def _field(state: Any, name: str) -> Any:
    """Find the field of this name of the one state in a nest of states that has it."""
    found = list(_fields(state, name))
    if len(found) != 1:
        raise ValueError(
            f"value_and_grad_from_state: the state has {len(found)} fields called {name!r}, and should have one.\n"
            "  It is meant for optimizers with a line search, such as lbfgs()."
        )
    return found[0]


def _fields(state: Any, name: str) -> Iterator[Any]:
    if isinstance(state, tuple):
        names: tuple[str, ...] = getattr(state, "_fields", ())
        parts: tuple[Any, ...] = state
        if name in names:
            yield getattr(state, name)
        for part in parts:
            yield from _fields(part, name)
