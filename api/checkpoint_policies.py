"""Rematerialization policies: which residuals `tl.checkpoint` saves, by JAX's names and shorter ones.

A policy is asked of every operation whose results the backward pass needs: `policy(primitive, *operand_types,
**params) -> bool`, may they be saved? What it does not save is computed again. The two offloading ones answer with
the memory that results are moved to. Write one like this:

>>> def save_small(primitive, *operands, **params):
...     return all(x.size <= 1000 for x in operands)

`budget` is none of these: it is given the whole program.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from tapeless.interpreters.residuals.budget import Budget
from tapeless.interpreters.residuals.rematerialization import (
    EXCLUDED,
    Offload,
    Policy,
    ProgramPolicy,
    save_all,
    save_none,
)
from tapeless.lowering import devices
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.primitives.checkpoint import move_p, name_p
from tapeless.tracer.primitives.contraction import conv_general_dilated_p, dot_general_p

_REMEMBERED = 512  # policies: equal ones are one object, so that programs traced for it are found again


def dots_saveable(primitive: Any, /, *operands: Any, **params: Any) -> bool:
    """Save the results of matrix products and convolutions, which are expensive to compute again."""
    return primitive in (dot_general_p, conv_general_dilated_p)


def dots_with_no_batch_dims_saveable(primitive: Any, /, *operands: Any, **params: Any) -> bool:
    """Save the results of matrix products without batch axes: products with weights, not with attention scores."""
    return primitive is dot_general_p and not any(params["dimension_numbers"][1])


@functools.lru_cache(_REMEMBERED)
def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Save the values that `checkpoint_name` gives one of these names."""
    return _named(lambda name: name in names_which_can_be_saved, "save_only_these_names", names_which_can_be_saved)


@functools.lru_cache(_REMEMBERED)
def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Save the values that have a name other than these."""
    return _named(lambda name: name not in names_not_to_save, "save_any_names_but_these", names_not_to_save)


@functools.lru_cache(_REMEMBERED)
def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Save all residuals except the values that have one of these names."""

    def policy(primitive: Any, /, *operands: Any, **params: Any) -> Any:
        return EXCLUDED if primitive is name_p and params["name"] in names_not_to_save else True

    return _titled(policy, "save_anything_except_these_names", names_not_to_save, names_not_to_save)


@functools.lru_cache(_REMEMBERED)
def save_from_both_policies(policy_1: Callable[..., Any], policy_2: Callable[..., Any]) -> Policy:
    """Save the values that either policy saves; a value that one saves and the other offloads stays on the device.

    Raises: TypeError if one is a budget, which cannot be asked of one operation.
    """
    _check_asked("save_from_both_policies", policy_1, policy_2)

    def policy(primitive: Any, /, *operands: Any, **params: Any) -> Any:
        verdicts = [p(primitive, *operands, **params) for p in (policy_1, policy_2)]
        saved = [verdict for verdict in verdicts if verdict]
        if not saved:
            return EXCLUDED if verdicts[0] is verdicts[1] is EXCLUDED else False
        return saved[0] if all(isinstance(verdict, Offload) for verdict in saved) else True

    names = (*getattr(policy_1, "names", ()), *getattr(policy_2, "names", ()))
    return _titled(policy, "save_from_both_policies", (policy_1, policy_2), names)


@functools.lru_cache(_REMEMBERED)
def save_if(predicate: Callable[..., Any]) -> Policy:
    """Save the results of operations for which `predicate(primitive, *operand_types, **params)` is true.

    A predicate that is a policy may say where, too.

    Raises: TypeError if `predicate` is not a function.
    """
    _check_asked("save_if", predicate)

    def policy(primitive: Any, /, *operands: Any, **params: Any) -> Any:
        verdict = predicate(primitive, *operands, **params)
        return verdict if isinstance(verdict, Offload) else bool(verdict)

    return _titled(policy, "save_if", (predicate,))


def budget(limit: int | float | str) -> ProgramPolicy:
    """Keep at most so many bytes live at once in a function and its backward pass, beyond arguments and results.

    What does not fit is computed again, in segments, each when the backward pass arrives there, and loops of a known
    number of steps in chunks. What fits is kept. Calls are inlined; a `cond` and a checkpoint inside are computed again
    as a whole or not at all. Bytes are predicted on the simplified program; compilers may need some percent more.
    Results of `checkpoint_name` and of effects are always kept. It sees the whole program of each checkpoint: under
    `vmap` outside of a checkpoint, the program of all examples together; inside of a loop, the program of one step.

    Args:
      limit: bytes, an integer or a text such as "2GB" or "512 MiB"; 0 asks for as few as possible. Or a float from 0.0
        to 1.0: this part of the bytes that are live without a budget.
    Returns: a policy for `tl.checkpoint` and `tl.unzip`. It cannot be combined with others.
    Raises: TypeError if `limit` is none of these, ValueError if it is negative, a float above 1.0 or a text of another
      form. When the function is differentiated, ValueError naming the fewest bytes that it needs, if these are more,
      and the largest value.
    Source: Beaumont et al. 2019, "Optimal checkpointing for heterogeneous chains", for the choice of segments.
    """
    return Budget.of(limit, "budget")


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Iterable[str],
    names_which_can_be_offloaded: Iterable[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Save some named values where they are, and move others from memory `offload_src` to `offload_dst`.

    Args:
      offload_src, offload_dst: kinds of memories: "device", "pinned_host" or what else the device in use has.
    Raises: TypeError if these are not strings, ValueError if they are the same or a name is to be both saved and
      offloaded. The policy, when it is asked to move a value: ValueError if the device has no such memory.
    """
    who, saved, moved = _OFFLOAD_NAMES, {*names_which_can_be_saved}, {*names_which_can_be_offloaded}
    _check_memories(who, offload_src, offload_dst)
    if both := sorted(saved & moved):
        raise ValueError(
            f"{who}: {', '.join(map(repr, both))} cannot be both saved and offloaded. "
            f"To be saved are {sorted(saved)}, to be offloaded {sorted(moved)}."
        )
    return _offloading_names(tuple(sorted(saved)), tuple(sorted(moved)), offload_src, offload_dst)


@functools.lru_cache(_REMEMBERED)
def _offloading_names(saved: tuple[str, ...], moved: tuple[str, ...], src: str, dst: str) -> Policy:
    def policy(primitive: Any, /, *operands: Any, **params: Any) -> Any:
        if primitive is name_p and params["name"] in moved:
            return _offload(_OFFLOAD_NAMES, src, dst)
        return (primitive is name_p and params["name"] in saved) or _is_moved(primitive, params, dst)

    return _titled(policy, _OFFLOAD_NAMES, ([*saved], [*moved], src, dst), (*saved, *moved))


_OFFLOAD_NAMES = "save_and_offload_only_these_names"


@functools.lru_cache(_REMEMBERED)
def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Save as `dots_with_no_batch_dims_saveable`, moving the results from memory `offload_src` to `offload_dst`.

    Args:
      offload_src, offload_dst: kinds of memories: "device", "pinned_host" or what else the device in use has.
    Raises: TypeError if these are not strings, ValueError if they are the same. The policy, when it is asked to move a
      value: ValueError if the device has no such memory.
    """
    who = "offload_dot_with_no_batch_dims"
    _check_memories(who, offload_src, offload_dst)

    def policy(primitive: Any, /, *operands: Any, **params: Any) -> Any:
        if dots_with_no_batch_dims_saveable(primitive, *operands, **params):
            return _offload(who, offload_src, offload_dst)
        return _is_moved(primitive, params, offload_dst)

    return _titled(policy, who, (offload_src, offload_dst))


everything_saveable = save_all
nothing_saveable = save_none
checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable
save_dots = dots_saveable
save_names = save_only_these_names


def _named(chosen: Callable[[str], bool], title: str, names: tuple[str, ...]) -> Policy:
    def policy(primitive: Any, /, *operands: Any, **params: Any) -> bool:
        return primitive is name_p and chosen(params["name"])

    return _titled(policy, title, names, names)


def _check_asked(who: str, *policies: Any) -> None:
    for policy in policies:
        if not callable(policy):
            why = ", which sees whole programs" if isinstance(policy, ProgramPolicy) else ""
            raise TypeError(f"{who}: expected a function that is called for every operation, not {policy!r}{why}.")


def _titled(policy: Any, title: str, given: tuple[Any, ...], names: tuple[str, ...] = ()) -> Policy:
    """Make a policy print as it was written, and know the names that it asks for."""
    policy.names = names
    shown = ", ".join(repr(x) if isinstance(x, str) else getattr(x, "__name__", repr(x)) for x in given)
    policy.__name__ = policy.__qualname__ = f"{title}({shown})"
    return policy


def _check_memories(who: str, src: Any, dst: Any) -> None:
    for memory in (src, dst):
        if not isinstance(memory, str):
            raise TypeError(
                f"{who}: expected the kind of a memory, a string, not {memory!r} of type {type(memory).__name__}."
            )
    if src == dst:
        raise ValueError(f"{who}: cannot offload from {src!r} to {dst!r}, which is the same memory.")


def _offload(who: str, src: str, dst: str) -> Offload:
    """Make the verdict that moves a value, once there is a value and a device."""
    device = devices.current_device()
    if missing := [kind for kind in (src, dst) if kind not in device.memory_kinds]:
        raise ValueError(
            f"{who}: cannot offload from {src!r} to {dst!r}, there is no memory {missing[0]!r} on {device}, "
            f"which has {', '.join(map(repr, device.memory_kinds))}."
        )
    return Offload(src, dst)


def _is_moved(primitive: Any, params: dict[str, Any], dst: str) -> bool:
    """Tell whether results are in memory `dst` already, where they stay, as those of an inner checkpoint are."""
    return primitive is move_p and params["dst"] == dst


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

_complete_namespace(globals())
