"""The argument `checkpoint` of loops: how many states of a loop are saved for its derivative."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from tapeless.interpreters.residuals.budget import Budget
from tapeless.interpreters.residuals.chunks import read_by_index, square_root, write_chunks
from tapeless.interpreters.residuals.rematerialization import Policy
from tapeless.interpreters.residuals.schedules import logarithmic
from tapeless.interpreters.residuals.state_limit import StateLimit
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives.checkpoint import checkpoint
from tapeless.tracer.primitives.control_flow import scan
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import aval_of

Loop = Callable[..., tuple[Any, ...]]  # of the arguments of the primitive's function, `scan` or `while_loop`
States = Callable[[int], int]  # of a number of steps


def loop_with(who: str, given: Any) -> Loop:
    """Return the function that runs a loop with the checkpoints that a user asks for.

    Raises: TypeError and ValueError, which begin with `who`, if that is none of "sqrt", "log", a number of states, and
      a budget.
    """
    if isinstance(given, str) and given == "sqrt":
        return _in_chunks
    if isinstance(given, str) and given == "log":
        return _with_states(logarithmic)
    if isinstance(given, Budget):
        return _by_policy(given)
    if isinstance(given, float | np.floating | str):
        return _by_policy(_budget(who, given if isinstance(given, str) else float(given)))
    states = _integer(who, given)
    if states < 1:
        _refuse(who, ValueError, f"{states}, and a loop saves one state at least")
    return _with_states(lambda length: states)


def _integer(who: str, given: Any) -> int:
    if isinstance(given, Tracer):
        _refuse(who, TypeError, f"{aval_of(given)}, traced, for schedules are planned before they run")
    try:
        if not isinstance(given, bool):
            return operator.index(given)
    except TypeError:
        pass
    return _refuse(who, TypeError, f"{given!r} of type {type(given).__name__}")


def _budget(who: str, given: float | str) -> Budget:
    """Return the policy of a limit. Raises: ValueError; it does not advise an integer, which counts states here."""
    try:
        return Budget.of(given, f"{who}, checkpoint")
    except ValueError:
        return _refuse(who, ValueError, repr(given))


def _refuse(who: str, kind: type[Exception], found: str) -> NoReturn:
    raise kind(
        f"{who}: checkpoint must be 'sqrt', 'log', a number of states, or a budget, which is a text such as '2GB', a "
        f"part from 0.0 to 1.0, or tl.checkpoint_policies.budget(limit); not {found}."
    )


def _in_chunks(
    jaxpr: Jaxpr, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], /, *, length: int, **how: Any
) -> tuple[Any, ...]:
    """Run a scan in checkpoints, whose elements are read by a counter; one of each step if there is no carry."""
    if length < 2:
        return scan(jaxpr, consts, carry, xs, length=length, **how)
    counters = 1 if xs and carry else 0
    if counters:
        jaxpr = read_by_index(jaxpr, tuple(map(aval_of, xs)), len(consts), len(carry), how["reverse"])
        first = np.int32(length - 1 if how["reverse"] else 0)
        consts, carry, xs = [*consts, *xs], [first, *carry], ()
    steps = square_root(length) if carry else 1
    operands = [*consts, *carry, *xs]
    params = [len(consts), len(carry), length, how["reverse"], how["unroll"]]
    program = write_chunks(jaxpr, tuple(map(aval_of, operands)), steps, *params)
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
