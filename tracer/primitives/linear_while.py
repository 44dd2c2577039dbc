"""The linear half of a while loop: the same steps on tangents, whose residuals are computed from saved states.

`while` ends by a value that is computed, so its residuals cannot be stacked. The primal loop saves states in a fixed
number of slots, and the linear loop computes the states between them again, forwards or, transposed, backwards.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.tracer import core, linear_vars
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.call import check_types
from tapeless.tracer.primitives.elementwise import add, lt
from tapeless.tracer.primitives.indexing import dynamic_index_in_dim
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray, aval_of

INT: Final = np.dtype(np.int32)


class LinearWhileOperands(NamedTuple):
    """The operands of a linear while loop, in groups.

    trips: its number of steps, int32 []. positions: the number of steps before the state in each slot, int32 [slots];
    none if residuals depend on no state. states: the saved parts of the carry, [slots, ...] each; slot 0 holds the
    first ones. at_hand: the state before the last step, if the number of steps is known. consts: of the step.
    linear_consts, carry: of the linear step.
    """

    trips: Sequence[Any]
    positions: Sequence[Any]
    states: Sequence[Any]
    at_hand: Sequence[Any]
    consts: Sequence[Any]
    linear_consts: Sequence[Any]
    carry: Sequence[Any]


def group_operands(
    operands: Sequence[Any],
    n_states: int,
    n_consts: int,
    n_linear_consts: int,
    saving: c.Saving = c.BY_DEFAULT,
    **_: Any,
) -> LinearWhileOperands:
    """Split the operands of a linear while loop into groups, by its params."""
    at_hand = n_states if saving.trips is not None else 0
    return LinearWhileOperands(*split_list(operands, 1, bool(n_states), n_states, at_hand, n_consts, n_linear_consts))


def _linear_while_type(
    *avals: ShapedArray,
    step: Jaxpr,
    linear: Jaxpr,
    n_states: int,
    n_consts: int,
    n_linear_consts: int,
    saving: c.Saving = c.BY_DEFAULT,
) -> tuple[ShapedArray, ...]:
    given = group_operands(avals, n_states, n_consts, n_linear_consts, saving)
    slots: tuple[int, ...] = given.positions[0].shape if given.positions else ()
    ints = [_ints(()), *[_ints(slots)] * len(given.positions)]
    check_types("linear_while", "takes", [*given.trips, *given.positions], ints)
    for x in given.states:
        if x.shape[:1] != slots:
            raise TypeError(f"linear_while: a state is {x}, but the slots are {given.positions[0]}.")
    state = [x.update(shape=x.shape[1:]) for x in given.states]
    check_types("linear_while", "takes", given.at_hand, state[: len(given.at_hand)])
    check_types("linear_while: step", "takes", step.in_avals, [*given.consts, *state])
    check_types("linear_while: step", "gives", step.out_avals[:n_states], state)
    residuals = step.out_avals[n_states:]
    check_types("linear_while: linear", "takes", linear.in_avals, [*residuals, *given.linear_consts, *given.carry])
    check_types("linear_while: linear", "gives", linear.out_avals, given.carry)
    return linear.out_avals


def _ints(shape: tuple[int, ...]) -> ShapedArray:
    return ShapedArray(shape, INT)


def _mark(linear_in: tuple[bool, ...], **params: Any) -> tuple[dict[str, Any], list[bool]]:
    """Mark all results linear; the programs are in two halves already."""
    return params, [True] * len(params["linear"].outvars)


linear_while_p: Final = Primitive("linear_while", _linear_while_type, remember=False)
linear_vars.rules[linear_while_p] = _mark

# ---- as a program --------------------------------------------------------------------------------------------


def as_program(avals: Sequence[ShapedArray], params: dict[str, Any]) -> Jaxpr:
    """Write a linear while loop of operands of these types as a program: a while loop on states and tangents."""
    counts = params["n_states"], params["n_consts"], params["n_linear_consts"], params.get("saving", c.BY_DEFAULT)
    return _as_program(params["step"], params["linear"], tuple(avals), counts)


@core.memoize_by_program
def _as_program(
    step: Jaxpr, linear: Jaxpr, avals: tuple[ShapedArray, ...], counts: tuple[int, int, int, c.Saving]
) -> Jaxpr:
    n_states = counts[0]

    def forwards(*operands: Any) -> Any:
        given = group_operands(operands, *counts)
        carry = [np.int32(0), *[dynamic_index_in_dim(x, 0, keepdims=False) for x in given.states], *given.carry]
        taken = [*given.consts, *given.linear_consts]
        test, body = _loop(step, linear, tuple(map(aval_of, taken)), tuple(map(aval_of, carry)), counts)
        return c.while_loop(test, body, (given.trips, taken), carry, counts[3])[1 + n_states :]

    return trace_closed(forwards, avals, what="linearize", function=linear).replace(name=linear.name)


def _loop(
    step: Jaxpr,
    linear: Jaxpr,
    consts: Sequence[ShapedArray],
    carry: Sequence[ShapedArray],
    counts: tuple[int, int, int, c.Saving],
) -> tuple[Jaxpr, Jaxpr]:
    n_states, n_consts, n_linear, _ = counts

    def one_step(*operands: Any) -> Any:
        of_step, of_linear, (k, *state), tangents = split_list(operands, n_consts, n_linear, 1 + n_states)
        after = eval_jaxpr(step, [*of_step, *state])
        pushed = eval_jaxpr(linear, [*after[n_states:], *of_linear, *tangents])
        return [add(k, np.int32(1)), *after[:n_states], *pushed]

    def unfinished(trips: Any, k: Any, *_: Any) -> Any:
        return [lt(k, trips)]

    test = trace_closed(unfinished, [_ints(()), *carry], what="linearize", function=linear)
    return test, trace_closed(one_step, [*consts, *carry], what="linearize", function=linear)
