"""The argument `checkpoint` of loops: how many states of a loop are saved for its derivative."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from tapeless.interpreters.residuals.budget import Budget
from tapeless.interpreters.residuals.chunks import STEP, Schedule, read_by_index, write_schedule
from tapeless.interpreters.residuals.rematerialization import Policy
from tapeless.interpreters.residuals.schedules import logarithmic, of_states, square_root
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives.checkpoint import checkpoint
from tapeless.tracer.primitives.control_flow import scan
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import aval_of

Plan = Callable[[int, bool], Schedule]  # of a number of steps, and whether the loop stacks results
Loop = Callable[..., tuple[Any, ...]]  # of the arguments of the primitive's function, `scan`

_BY_NAME: Final[dict[str, Plan]] = {"sqrt": square_root, "log": logarithmic}


def loop_with(who: str, given: Any) -> Loop:
    """Return the function that runs a loop with the checkpoints that a user asks for.

    Raises: TypeError and ValueError, which begin with `who`, if that is none of "sqrt", "log", a number of states, and
      a budget. The function raises ValueError if a loop needs more states.
    """
    if isinstance(given, str) and given in _BY_NAME:
        return _by_schedule(_BY_NAME[given])
    if isinstance(given, Budget):
        return _by_policy(given)
    if isinstance(given, float | np.floating | str):
        return _by_policy(_budget(who, given if isinstance(given, str) else float(given)))
    states = _integer(who, given)
    if states < 1:
        _refuse(who, ValueError, f"{states}, and a loop saves one state at least")

    def planned(length: int, stacked: bool) -> Schedule:
        try:
            return of_states(length, states, stacked)
        except ValueError as error:
            raise ValueError(f"{who}: checkpoint={states} is too few: {error}.") from None

    return _by_schedule(planned)


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


def _by_schedule(plan: Plan) -> Loop:
    def run(
        jaxpr: Jaxpr, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], /, *, length: int, **how: Any
    ) -> tuple[Any, ...]:
        if length < 2:
            return scan(jaxpr, consts, carry, xs, length=length, **how)
        counters = 1 if xs and carry else 0
        if counters:
            jaxpr = read_by_index(jaxpr, tuple(map(aval_of, xs)), len(consts), len(carry), how["reverse"])
            first = np.int32(length - 1 if how["reverse"] else 0)
            consts, carry, xs = [*consts, *xs], [first, *carry], ()
        # a loop without a carry saves no states
        schedule = plan(length, len(jaxpr.outvars) > len(carry)) if carry else Schedule(((length, STEP),))
        operands = [*consts, *carry, *xs]
        avals = tuple(map(aval_of, operands))
        program = write_schedule(jaxpr, avals, len(consts), len(carry), how["reverse"], how["unroll"], schedule)
        return tuple(eval_jaxpr(program, operands))[counters:]

    return run


def _by_policy(policy: Policy) -> Loop:
    def run(jaxpr: Jaxpr, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], /, **how: Any) -> Any:
        if how["length"] < 2:
            return scan(jaxpr, consts, carry, xs, **how)
        n, end = len(consts), len(consts) + len(carry)

        def loop(*args: Any) -> tuple[Any, ...]:
            return scan(jaxpr, args[:n], args[n:end], args[end:], **how)

        operands = [*consts, *carry, *xs]
        return checkpoint(trace_closed(loop, [*map(aval_of, operands)]), *operands, policy=policy)

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
