"""The argument `checkpoint` of loops: how many states of a loop are saved for its derivative."""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NoReturn

import numpy as np

from tapeless.interpreters.residuals.budget import Budget
from tapeless.interpreters.residuals.chunks import read_by_index, square_root, write_chunks
from tapeless.interpreters.residuals.rematerialization import Policy
from tapeless.interpreters.residuals.schedules import logarithmic
from tapeless.interpreters.residuals.state_limit import StateLimit
from tapeless.tracer.core import Tracer
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives.checkpoint import checkpoint
from tapeless.tracer.primitives.control_flow import BY_DEFAULT, Saving, scan, while_loop
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import aval_of

Loop = Callable[..., tuple[Any, ...]]  # of the arguments of the primitive's function, `scan` or `while_loop`
States = Callable[[int], int]  # of a number of steps

_MOST_STATES: Final = 1024  # with which 525,000 steps are computed again once at most


def loop_with(who: str, given: Any) -> Loop:
    """Return the function that runs a loop with the checkpoints that a user asks for.

    Raises: TypeError and ValueError, which begin with `who`, if that is none of "sqrt", "log", a number of states, and
      a budget.
    """
    if isinstance(given, str) and given == "sqrt":
        return _in_chunks
    if isinstance(given, str) and given == "log":
        return _with_states(logarithmic)
    if (policy := _budget(who, "checkpoint", given)) is not None:
        return _by_policy(policy)
    states = _number_of_states(who, "checkpoint", given)
    return _with_states(lambda length: states)


def while_with(who: str, given: Any) -> Loop:
    """Return the function that runs a while loop with the checkpoints that a user asks for, a number or a budget.

    Raises: TypeError and ValueError, which begin with `who`, if that is neither.
    """
    policy = _budget(who, "checkpoints", given)
    if policy is None:
        return partial(while_loop, saving=Saving(_number_of_states(who, "checkpoints", given)))
    saving = BY_DEFAULT if isinstance(policy.limit, float) else Saving(_MOST_STATES)

    def run(condition: Jaxpr, body: Jaxpr, consts: Any, carry: Sequence[Any]) -> tuple[Any, ...]:
        def loop(*args: Any) -> tuple[Any, ...]:
            of_condition, of_body, carried = split_list(args, *map(len, consts))
            return while_loop(condition, body, (of_condition, of_body), carried, saving)

        operands = [*consts[0], *consts[1], *carry]
        return checkpoint(trace_closed(loop, [*map(aval_of, operands)]), *operands, policy=policy)

    return run


def _number_of_states(who: str, argument: str, given: Any) -> int:
    if isinstance(given, Tracer):
        _refuse(who, argument, TypeError, f"{aval_of(given)}, traced, for schedules are planned before they run")
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        _refuse(who, argument, TypeError, f"{given!r} of type {type(given).__name__}")
    try:
        states = operator.index(given)
    except TypeError:
        _refuse(who, argument, TypeError, f"{given!r} of type {type(given).__name__}")
    if states < 1:
        _refuse(who, argument, ValueError, f"{states}, and a loop saves one state at least")
    return states


def _budget(who: str, argument: str, given: Any) -> Budget | None:
    """Return the policy of a limit, if it is one. Raises: ValueError; an integer counts states here."""
    if not isinstance(given, float | np.floating | str):
        return given if isinstance(given, Budget) else None
    try:
        return Budget.of(given if isinstance(given, str) else float(given), f"{who}, {argument}")
    except ValueError:
        return _refuse(who, argument, ValueError, repr(given if isinstance(given, str) else float(given)))


_OTHERS: Final = {"checkpoint": "'sqrt', 'log', ", "checkpoints": ""}


def _refuse(who: str, argument: str, kind: type[Exception], found: str) -> NoReturn:
    raise kind(
        f"{who}: {argument} must be {_OTHERS[argument]}a number of states, or a budget, which is a text such as '2GB', "
        f"a part from 0.0 to 1.0, or tl.checkpoint_policies.budget(limit); not {found}."
    )


def _in_chunks(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    carry: Sequence[Any],
    xs: Sequence[Any],
    /,
    *,
    length: int,
    reverse: bool,
    unroll: int,
) -> tuple[Any, ...]:
    """Run a scan in checkpoints, whose elements are read by a counter; one of each step if there is no carry."""
    if length < 2:
        return scan(jaxpr, consts, carry, xs, length=length, reverse=reverse, unroll=unroll)
    counters = 1 if xs and carry else 0
    if counters:
        jaxpr = read_by_index(jaxpr, tuple(map(aval_of, xs)), len(consts), len(carry), reverse)
        first = np.int32(length - 1 if reverse else 0)
        consts, carry, xs = [*consts, *xs], [first, *carry], ()
    steps = square_root(length) if carry else 1
    operands = [*consts, *carry, *xs]
    avals = tuple(map(aval_of, operands))
    program = write_chunks(jaxpr, avals, steps, len(consts), len(carry), length, reverse, unroll)
    return tuple(eval_jaxpr(program, operands))[counters:]


def _with_states(states: States) -> Loop:
    """Return the function that runs a scan of which so many states are saved."""

    def run(
        jaxpr: Jaxpr, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], /, *, length: int, **how: Any
    ) -> tuple[Any, ...]:
        loop = _by_policy(StateLimit(states(length)), prevent_cse=False) if carry else _in_chunks
        return loop(jaxpr, consts, carry, xs, length=length, **how)

    return run


def _by_policy(policy: Policy, prevent_cse: bool = True) -> Loop:
    def run(jaxpr: Jaxpr, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], /, **how: Any) -> Any:
        if how["length"] < 2:
            return scan(jaxpr, consts, carry, xs, **how)
        n, end = len(consts), len(consts) + len(carry)

        def loop(*args: Any) -> tuple[Any, ...]:
            return scan(jaxpr, args[:n], args[n:end], args[end:], **how)

        operands = [*consts, *carry, *xs]
        program = trace_closed(loop, [*map(aval_of, operands)])
        return checkpoint(program, *operands, policy=policy, prevent_cse=prevent_cse)

    return run


def refuse_traced_bounds(given: Any, lower: Any, upper: Any) -> NoReturn:
    """Raise ValueError: checkpoints are planned for a number of steps, which traced bounds do not give."""
    bounds = [
        f"{name} is {aval_of(x)}, traced" if known_elements(x) is None else f"{name} is {known_elements(x)}"
        for name, x in (("lower", lower), ("upper", upper))
    ]
    raise ValueError(
        f"fori_loop: checkpoint={given!r} is planned for a known number of steps, but {', and '.join(bounds)}.\n"
        "  Give bounds that are Python integers, such as static arguments of jit, or checkpoints=k, a number of states."
    )
