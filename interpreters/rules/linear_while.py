"""Rules of while in reverse mode: unzip a while loop, and transpose its linear half by going back from saved states.

The primal loop counts its steps and saves states (`residuals/saved_states.py`). The linear half is a `linear_while`,
which stands for a loop of that many steps on states and tangents; its transpose goes backwards, and computes the
states that are not saved again. Both are made of `while`, so that they are differentiated in their turn.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.index_rows import without_row
from tapeless.interpreters.residuals import saved_states
from tapeless.interpreters.rules.call import call_jvp
from tapeless.interpreters.rules.control_flow import cotangents_of_operands, reached_operands, transposed_step
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import core
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import split_list, where_true
from tapeless.tracer.jaxpr import Equation, Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.elementwise import ge, sub
from tapeless.tracer.primitives.linear_while import as_program, group_operands, linear_while_p
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray, aval_of

# ---- forwards: as the program that it stands for --------------------------------------------------------------


def enter_as_program(primitive: Primitive, as_program: Callable[..., Jaxpr]) -> None:
    """Enter the rules of a primitive that stands for a program, `as_program(operand types, params)`."""

    def push(primals: Any, tangents: Any, **params: Any) -> Any:
        return call_jvp(call.jit_p, primals, tangents, jaxpr=as_program([aval_of(x) for x in primals], params))

    def batch(size: int, args: Any, dims: Any, **params: Any) -> Any:
        avals = [aval_of(x).update(shape=vmap.example_shape(x, d)) for x, d in zip(args, dims)]
        program = as_program(avals, params)
        batched, mapped = vmap.batch_where_needed(program, size, tuple(dims), (False,) * len(program.outvars))
        return call.jit(batched, *args), [0 if yes else None for yes in mapped]

    jvp.rules[primitive], vmap.rules[primitive] = push, batch
    without_row("its programs have equations, which have rows", primitive)


# ---- backwards -----------------------------------------------------------------------------------------------


def _transpose(
    cts: Any,
    totals: Any,
    *args: Any,
    step: Jaxpr,
    linear: Jaxpr,
    n_states: int,
    n_consts: int,
    n_linear_consts: int,
    saving: c.Saving = c.BY_DEFAULT,
) -> Any:
    """Transpose a linear while loop: from the last step to the first, from saved states.

    Cotangents of the linear constants are running ones, to which every step adds in place.
    """
    given = group_operands(args, n_states, n_consts, n_linear_consts, saving)
    n_residuals = len(step.outvars) - n_states
    reached = reached_operands(linear, cts, n_residuals + n_linear_consts, len(given.carry))
    added = reached.consts[n_residuals:]
    first = len(args) - n_linear_consts - len(given.carry)
    taken = [(totals.take(first + i), aval_of(x)) for i, (x, yes) in enumerate(zip(given.linear_consts, added)) if yes]
    running = [instantiate(Zero(aval)) if total is None else total for total, aval in taken]
    arriving = [instantiate(ct) for ct in where_true(reached.carry, cts)]
    pull = transposed_step(linear, reached, n_residuals, 0)
    begun = [sub(given.trips[0], np.int32(1)), *given.positions, *given.states, *given.at_hand]
    avals = tuple([aval_of(x) for x in (*begun, *running, *arriving)])
    test, body = _walk(step, pull, n_consts, n_states, saving.trips, avals)
    outs = c.while_loop(test, body, ((), given.consts), [*begun, *running, *arriving], saving)
    flags = (*[False] * first, *added, *reached.carry)
    return cotangents_of_operands(outs[len(begun) :], flags, args)


@core.memoize_by_program
def _walk(
    step: Jaxpr, pull: Jaxpr, n_consts: int, n_states: int, trips: int | None, avals: tuple[ShapedArray, ...]
) -> tuple[Jaxpr, Jaxpr]:
    """Build the test and the body of the loop backwards.

    It carries the number of a step, saved states, if the number of steps is known the state at hand, and cotangents.
    """
    at_hand = n_states if trips is not None else 0

    def body(*operands: Any) -> Any:
        consts, (position,), saved, state, cts = split_list(operands, n_consts, 1, n_states + bool(n_states), at_hand)
        if n_states:
            before = saved_states.SavedStates(saved[0], saved[1:])
            state, now = saved_states.state_before(step, consts, position, before, state, trips)
            saved = now.flat()
        residuals = eval_jaxpr(step, [*consts, *state])[n_states:]
        return [sub(position, np.int32(1)), *saved, *state[:at_hand], *eval_jaxpr(pull, [*residuals, *cts])]

    test = trace_closed(lambda k, *_: [ge(k, np.int32(0))], avals, what="transpose", function=step)
    program = trace_closed(body, [*step.in_avals[:n_consts], *avals], what="transpose", function=step)
    return test, program.replace(name=pull.name)


def _linear(check: linearity.Check, eqn: Equation, facts: linearity.Facts) -> linearity.Facts:
    given = group_operands(range(len(facts)), **eqn.params)
    return (check.jointly(eqn, facts, [*given.linear_consts, *given.carry]),) * len(eqn.outvars)


transpose.rules[linear_while_p] = transpose.Accumulating(_transpose)
linearity.rules[linear_while_p] = _linear
enter_as_program(linear_while_p, as_program)
