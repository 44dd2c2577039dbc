"""What `tl.checkpoint` keeps: policies by JAX's names, and shorter ones.

A policy is asked of every operation whose results the backward pass needs: `policy(primitive, *operand_types,
**params) -> bool`, may they be saved? What it does not save is computed again. Write one like this:

>>> def save_small(primitive, *operands, **params):
...     return all(x.size <= 1000 for x in operands)

`budget` is none of these: it is given the whole program.
"""

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from tapeless.interpreters.budgets import Budget
from tapeless.interpreters.recompute import EXCLUDED, Policy, ProgramPolicy, save_all, save_none
from tapeless.lowering import devices
from tapeless.tracer.primitives.checkpoint import name_p
from tapeless.tracer.primitives.contraction import conv_general_dilated_p, dot_general_p


def dots_saveable(primitive: Any, *operands: Any, **params: Any) -> bool:
    """Save the results of matrix products and convolutions: what is dear to compute again."""
    return primitive in (dot_general_p, conv_general_dilated_p)


def dots_with_no_batch_dims_saveable(primitive: Any, *operands: Any, **params: Any) -> bool:
    """Save the results of matrix products without batch axes: those with weights, not those of attention."""
    return primitive is dot_general_p and not any(params["dimension_numbers"][1])


@functools.cache
def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Save the values that `checkpoint_name` gives one of these names."""
    return _named(lambda name: name in names_which_can_be_saved, "save_only_these_names", names_which_can_be_saved)


@functools.cache
def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Save the values that have a name, unless it is one of these."""
    return _named(lambda name: name not in names_not_to_save, "save_any_names_but_these", names_not_to_save)


@functools.cache
def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Save all that is needed, except the values that have one of these names."""

    def policy(primitive: Any, *operands: Any, **params: Any) -> Any:
        return EXCLUDED if primitive is name_p and params["name"] in names_not_to_save else True

    return _titled(policy, "save_anything_except_these_names", names_not_to_save)


@functools.cache
def save_from_both_policies(policy_1: Callable[..., Any], policy_2: Callable[..., Any]) -> Policy:
    """Save what either policy saves.

    Raises: TypeError if one is a budget, which cannot be asked of one operation.
    """
    _check_asked("save_from_both_policies", policy_1, policy_2)

    def policy(primitive: Any, *operands: Any, **params: Any) -> Any:
        first, second = (p(primitive, *operands, **params) for p in (policy_1, policy_2))
        return EXCLUDED if first is second is EXCLUDED else bool(first or second)

    return _titled(policy, "save_from_both_policies", (policy_1, policy_2))


@functools.cache
def save_if(predicate: Callable[..., Any]) -> Policy:
    """Save the results of operations of which `predicate(primitive, *operand_types, **params)` is true.

    Raises: TypeError if `predicate` is not a function.
    """
    _check_asked("save_if", predicate)
    return _titled(
        lambda primitive, *operands, **params: bool(predicate(primitive, *operands, **params)), "save_if", (predicate,)
    )


def budget(nbytes: int) -> ProgramPolicy:
    """Save at most so many bytes, arguments not counted, and of all that fits what spares the most work.

    It sees the whole program of each checkpoint: under `vmap` outside of a checkpoint that of all examples together,
    inside of a loop that of one step. The choice is greedy, by operations spared for a byte, and the same every time.

    Args:
      nbytes: an integer, not negative; 0 saves nothing.
    Returns: a policy for `tl.checkpoint` and `tl.unzip`. It cannot be combined with others.
    Raises: TypeError if `nbytes` is not an integer, ValueError if it is negative.
    Source: Dantzig 1957, "Discrete-variable extremum problems", for the greedy order.
    """
    if isinstance(nbytes, bool) or not hasattr(nbytes, "__index__"):
        raise TypeError(f"budget: expected a number of bytes, not {nbytes!r} of type {type(nbytes).__name__}.")
    if operator.index(nbytes) < 0:
        raise ValueError(f"budget: expected a number of bytes, not {nbytes!r}, which is negative.")
    return Budget(operator.index(nbytes))


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Iterable[str],
    names_which_can_be_offloaded: Iterable[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Save some named values where they are, and move others from memory `offload_src` to `offload_dst`.

    Raises: ValueError if a name is in both. The policy, when it is asked to move a value: NotImplementedError.
    """
    saved, moved = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if both := sorted(saved & moved):
        raise ValueError(
            f"save_and_offload_only_these_names: {', '.join(map(repr, both))} cannot be both saved and offloaded. "
            f"To be saved are {sorted(saved)}, to be offloaded {sorted(moved)}."
        )

    def policy(primitive: Any, *operands: Any, **params: Any) -> bool:
        if primitive is name_p and params["name"] in moved:
            _refuse("save_and_offload_only_these_names", offload_src, offload_dst)
        return primitive is name_p and params["name"] in saved

    return _titled(policy, "save_and_offload_only_these_names", (*sorted(saved), *sorted(moved)))


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Like `dots_with_no_batch_dims_saveable`, moving the results from memory `offload_src` to `offload_dst`.

    Raises: the policy, when it is asked to move a value: NotImplementedError.
    """

    def policy(primitive: Any, *operands: Any, **params: Any) -> bool:
        if dots_with_no_batch_dims_saveable(primitive, *operands, **params):
            _refuse("offload_dot_with_no_batch_dims", offload_src, offload_dst)
        return False

    return _titled(policy, "offload_dot_with_no_batch_dims", (offload_src, offload_dst))


everything_saveable = save_all
nothing_saveable = save_none
checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable
save_dots = dots_saveable
save_names = save_only_these_names


def _named(chosen: Callable[[str], bool], title: str, names: tuple[str, ...]) -> Policy:
    def policy(primitive: Any, *operands: Any, **params: Any) -> bool:
        return primitive is name_p and chosen(params["name"])

    return _titled(policy, title, names)


def _check_asked(who: str, *policies: Any) -> None:
    for policy in policies:
        if not callable(policy):
            why = ", which sees whole programs" if isinstance(policy, ProgramPolicy) else ""
            raise TypeError(f"{who}: expected a function that is asked of every operation, not {policy!r}{why}.")


def _titled(policy: Any, title: str, given: tuple[Any, ...]) -> Policy:
    """A policy that prints as it was written."""
    shown = ", ".join(repr(x) if isinstance(x, str) else getattr(x, "__name__", repr(x)) for x in given)
    policy.__name__ = policy.__qualname__ = f"{title}({shown})"
    return policy


def _refuse(who: str, src: str, dst: str) -> NoReturn:
    platform = devices.current_device().platform
    why = (
        f"the platform {platform} has one memory, the host's own: there is nowhere to move a value to"
        if platform == "cpu"
        else f"moving values between memories is not supported on the platform {platform} yet"
    )
    raise NotImplementedError(
        f"{who}: cannot offload from {src!r} to {dst!r}, {why}.\n"
        "  Save the value instead (save_only_these_names, dots_with_no_batch_dims_saveable), or compute it again."
    )


__all__ = [
    "budget",
    "checkpoint_dots",
    "checkpoint_dots_with_no_batch_dims",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "everything_saveable",
    "nothing_saveable",
    "offload_dot_with_no_batch_dims",
    "save_all",
    "save_and_offload_only_these_names",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_dots",
    "save_from_both_policies",
    "save_if",
    "save_names",
    "save_none",
    "save_only_these_names",
]
