"""Saved states of while loops: a fixed number of slots, filled in the forward pass, read and filled backwards.

Search terms: dynamic checkpointing, treeverse, revolve, recomputation, reverse mode of while loops. Sources: Wang, Moin
& Iaccarino 2009 (minimal repetition dynamic checkpointing); Stumm & Walther 2010; Griewank & Walther 2000.

Forwards, a loop of a known number of steps saves the states of `schedules.next_position`. Else a state is saved before
each step, at level 0, while there is a slot for it. If none is free, the last state moves to the next step, one level
up, and gives free all slots of lower levels: those are read if the loop ends there, and taken by the next steps.
Backwards, the last saved state before a step is the one to go on from, and the slots of later states are free. On the
way states are saved at the positions of `schedules`, for the distance is known. The first state stays.

With s slots, the steps of a known number are computed again as often as the binomial optimum says. Of an unknown number
n, if s >= 2, each is computed again at most r times if n <= binomial(s + r, r + 1): never for n <= s. With one slot it
is n - 1 times. Besides, every step backwards computes its own residuals. Left out: slots on disk.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.interpreters.residuals.repeated_step import RepeatedStep, stacking
from tapeless.interpreters.residuals.schedules import computed_again, next_position
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import core, passes
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.elementwise import (
    add,
    convert_element_type,
    eq,
    ge,
    gt,
    lt,
    select_n,
    sub,
)
from tapeless.tracer.primitives.elementwise import min as min_
from tapeless.tracer.primitives.indexing import dynamic_index_in_dim, dynamic_update_index_in_dim
from tapeless.tracer.primitives.linear_while import INT
from tapeless.tracer.primitives.reduction import argmax, reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, full, iota
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray, aval_of

_NEVER: Final = 2**31 - 1  # the position of a slot that holds no state, and the level of the first state
_FREE: Final = -1  # the level of a slot that may be taken

_COUNT: Final = ShapedArray((), INT)


class SavedStates(NamedTuple):
    """Saved states: the number of steps before each, int32 [slots], and an array [slots, ...] for each part of them."""

    positions: Any
    states: Sequence[Any]

    def flat(self) -> list[Any]:
        """List the arrays."""
        return [self.positions, *self.states]


class _Slots(NamedTuple):
    """States that are saved while the number of steps is unknown.

    positions, levels: of each slot, int32 [slots]: the number of steps before its state; its level. states: one array
    [slots, ...] for each part of a state.
    """

    positions: Any
    levels: Any
    states: Sequence[Any]

    def save(self, position: Any, last: Any, state: Sequence[Any]) -> tuple[Any, "_Slots"]:
        """Save the state at `position` after that in the slot `last`; return its slot and the slots.

        Among free slots, those that hold no state or a later one are taken first, then the earliest state.
        """
        n = aval_of(self.positions).shape[0]
        if n == 1:
            return last, self
        is_empty = ge(self.positions, position)
        key = select_n(is_empty, sub(_i(_NEVER), self.positions), full((n,), _NEVER, INT))
        key = select_n(lt(self.levels, _i(0)), full((n,), _FREE, INT), key)
        first = argmax(key, 0)
        found = ge(_at(key, first), _i(0))
        slot = select_n(found, last, first)
        level = select_n(found, add(_at(self.levels, last), _i(1)), _i(0))
        level = select_n(eq(position, _i(0)), level, _i(_NEVER))
        below = lt(self.levels, level)
        levels = _replaced(select_n(below, self.levels, full((n,), _FREE, INT)), slot, level)
        states = [_written(x, value, slot) for x, value in zip(self.states, state, strict=True)]
        return slot, _Slots(_replaced(self.positions, slot, position), levels, states)

    def flat(self) -> list[Any]:
        """List the arrays."""
        return [self.positions, self.levels, *self.states]


def _i(n: int) -> Any:
    return np.int32(n)


def _at(x: Any, slot: Any) -> Any:
    return dynamic_index_in_dim(x, slot, keepdims=False, allow_negative_indices=False)


def _written(x: Any, value: Any, slot: Any) -> Any:
    rows = broadcast_in_dim(value, (1, *aval_of(value).shape), range(1, 1 + aval_of(value).ndim))
    return dynamic_update_index_in_dim(x, rows, slot, 0, allow_negative_indices=False)


def _replaced(x: Any, slot: Any, value: Any) -> Any:
    n = aval_of(x).shape[0]
    return select_n(eq(iota(INT, n), slot), x, broadcast_in_dim(value, (n,), ()))


class SavedLoop(NamedTuple):
    """A while loop that has run.

    carry, trips: the last carry, and the number of steps. saved: the saved states, if any part is saved. at_hand: the
    state before the last step, if the number of steps is known. kept: values of each step that are not computed again.
    step: what is: constants, kept values, state -> state, residuals.
    """

    carry: Sequence[Any]
    trips: Any
    saved: SavedStates | None
    at_hand: Sequence[Any]
    kept: Sequence[Any]
    step: Jaxpr

    def residuals(self) -> list[Any]:
        """List what a `linear_while` reads of it, before the constants of its step."""
        return [self.trips, *(self.saved.flat() if self.saved else []), *self.at_hand]


def run_saving(
    condition: Jaxpr,
    step: RepeatedStep,
    consts: tuple[Sequence[Any], Sequence[Any]],
    carry: Sequence[Any],
    saving: c.Saving,
) -> SavedLoop:
    """Run a while loop that saves the parts of its carry that its step needs, and counts its steps."""
    n, trips = len(carry), saving.trips
    to_keep = step.forwards.out_avals[n:]
    if trips is None or not (step.saved or to_keep):
        last, count, saved = _run_unknown(condition, step, consts, carry, saving)
        return SavedLoop(last, count, saved, (), (), step.again)
    if to_keep:
        step = stacking(*step, len(consts[1]), trips)
        arrays = [instantiate(Zero(c.stacked_type(aval, trips))) for aval in to_keep]
        carry = [np.int32(0), *carry, *arrays]
    before, saved = _run_known(step, consts[1], carry, saving.slots, trips)
    last = eval_jaxpr(step.forwards, [*consts[1], *before]) if trips else before
    own, kept = (last[1 : 1 + n], last[1 + n :]) if to_keep else (last, ())
    return SavedLoop(own, np.int32(trips), saved, [before[k] for k in step.saved], kept, step.again)


def _run_unknown(
    condition: Jaxpr,
    step: RepeatedStep,
    consts: tuple[Sequence[Any], Sequence[Any]],
    carry: Sequence[Any],
    saving: c.Saving,
) -> tuple[Sequence[Any], Any, SavedStates | None]:
    of_condition, of_body = consts
    n, n_slots, saved = len(of_condition), saving.slots, step.saved
    table = [full((n_slots,), fill, INT) for fill in (_NEVER, _FREE)] if saved else []
    begun = [np.int32(0), *([np.int32(0)] if saved else []), *table, *[_repeated(carry[k], n_slots) for k in saved]]
    if saved and n_slots == 1:
        begun[2:4] = [full((1,), 0, INT), full((1,), _NEVER, INT)]
    avals = [aval_of(x) for x in begun]
    test = passes.rearrange_program(condition, [*range(n), *avals, *range(n, n + len(carry))], [0])
    program = _saving_body(step.forwards, saved, len(of_body), tuple(avals))
    outs = c.while_loop(test, program, consts, [*begun, *carry], saving)
    return outs[len(begun) :], outs[0], SavedStates(outs[2], outs[4 : len(begun)]) if saved else None


def _run_known(
    step: RepeatedStep, consts: Sequence[Any], carry: Sequence[Any], slots: int, trips: int
) -> tuple[Sequence[Any], SavedStates]:
    """Run all but the last of a known number of steps: a scan over the saved states, of loops from each to the next."""
    number = max(1, min(slots, trips))
    between = c.Saving(slots, mean=-(-(trips - 1) // number))
    program = _to_next_state(step.forwards, step.saved, len(consts), between)
    outs = c.scan(program, [np.int32(trips), *consts], [np.int32(number - 1), np.int32(0), *carry], (), length=number)
    n = 2 + len(carry)
    return outs[2:n], SavedStates(outs[n], outs[n + 1 :])


@core.memoize_by_program
def _to_next_state(body: Jaxpr, saved: tuple[int, ...], n_consts: int, saving: c.Saving) -> Jaxpr:
    """Write the program of a saved state: it carries the number of free slots, the number of steps, and the carry."""
    carry = body.in_avals[n_consts:]
    program = _counting(body, n_consts)

    def run(*operands: Any) -> Any:
        (end,), consts, (free,), before = split_list(operands, 1, n_consts, 1)
        target = min_(next_position(before[0], end, free), sub(end, _i(1)))
        after = c.while_loop(_before_end(program, n_consts), program, ([target], consts), before, saving)
        return [sub(free, _i(1)), *after, before[0], *[before[1 + k] for k in saved]]

    in_avals = [_COUNT, *body.in_avals[:n_consts], _COUNT, _COUNT, *carry]
    return trace_closed(run, in_avals, what="linearize", function=body).replace(name=f"saving_{body.name}")


@core.memoize_by_program
def _counting(body: Jaxpr, n_consts: int) -> Jaxpr:
    """Return a body that counts its steps, in its first carry."""

    def step(*operands: Any) -> Any:
        consts, (count,), carry = split_list(operands, n_consts, 1)
        return [add(count, _i(1)), *eval_jaxpr(body, [*consts, *carry])]

    in_avals = [*body.in_avals[:n_consts], _COUNT, *body.in_avals[n_consts:]]
    return trace_closed(step, in_avals, what="linearize", function=body).replace(name=body.name)


@core.memoize_by_program
def _before_end(body: Jaxpr, n_consts: int) -> Jaxpr:
    """Return the condition of a loop of such a body: that its count is less than a number."""
    in_avals = [_COUNT, *body.in_avals[n_consts:]]
    return trace_closed(lambda end, now, *_: [lt(now, end)], in_avals, what="linearize", function=body)


@core.memoize_by_program
def _saving_body(body: Jaxpr, saved: tuple[int, ...], n_consts: int, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    def step(*operands: Any) -> Any:
        consts, (count, *more), carry = split_list(operands, n_consts, len(avals))
        if saved:
            last, slots = _Slots(more[1], more[2], more[3:]).save(count, more[0], [carry[k] for k in saved])
            more = [last, *slots.flat()]
        return [add(count, _i(1)), *more, *eval_jaxpr(body, [*consts, *carry])]

    n = len(body.invars)
    in_avals = [*body.in_avals[:n_consts], *avals, *body.in_avals[n_consts:n]]
    return trace_closed(step, in_avals, what="linearize", function=body).replace(name=f"saving_{body.name}")


def _repeated(x: Any, n: int) -> Any:
    shape = aval_of(x).shape
    return broadcast_in_dim(x, (n, *shape), range(1, 1 + len(shape)))


# ---- backwards -----------------------------------------------------------------------------------------------


def state_before(
    step: Jaxpr, consts: Sequence[Any], position: Any, saved: SavedStates, at_hand: Sequence[Any], trips: int | None
) -> tuple[Sequence[Any], SavedStates]:
    """Compute the state before the step at `position` from the last one saved, saving those on the way.

    Args:
      step: constants, state -> state, residuals.
      at_hand: the state before the last of `trips` steps, if that is known.
    """
    later = gt(saved.positions, position)
    last = argmax(select_n(later, saved.positions, full(aval_of(later).shape, _FREE, INT)), 0)
    now, state = _at(saved.positions, last), [_at(x, last) for x in saved.states]
    if trips is not None:
        is_last = eq(position, _i(trips - 1))
        now = select_n(is_last, now, position)
        state = [select_n(is_last, x, y) for x, y in zip(state, at_hand)]
    carry = [now, *saved.flat(), *state]
    avals, n = tuple([aval_of(x) for x in carry]), len(saved.states)
    saving = c.Saving(aval_of(saved.positions).shape[0])
    if trips:
        saving = saving._replace(mean=round(computed_again(trips, saving.slots) / trips))
    program = _save_next(step, len(consts), n, avals, saving)
    test = _before_end(program, 1 + len(consts))
    outs = c.while_loop(test, program, ([position], [position, *consts]), carry, saving._replace(mean=1))
    return outs[2 + n :], SavedStates(outs[1], outs[2 : 2 + n])


@core.memoize_by_program
def _save_next(step: Jaxpr, n_consts: int, n_states: int, avals: tuple[ShapedArray, ...], saving: c.Saving) -> Jaxpr:
    """Write a program that goes on to the next state that is saved, or to `end` if no slot is free."""
    advance = _counting(passes.rearrange_program(step, range(len(step.invars)), range(n_states)), n_consts)

    def run(*operands: Any) -> Any:
        (end,), consts, (now, positions), states, state = split_list(operands, 1, n_consts, 2, n_states)
        free = reduce_sum(convert_element_type(gt(positions, end), INT), (0,))
        target = min_(next_position(now, add(end, _i(1)), free), end)
        now, *state = c.while_loop(_before_end(advance, n_consts), advance, ([target], consts), [now, *state], saving)
        slot, some = argmax(positions, 0), gt(free, _i(0))
        kept = [_written(x, select_n(some, _at(x, slot), y), slot) for x, y in zip(states, state)]
        written = _replaced(positions, slot, select_n(some, _at(positions, slot), now))
        return [now, written, *kept, *state]

    in_avals = [_COUNT, *step.in_avals[:n_consts], *avals]
    return trace_closed(run, in_avals, what="transpose", function=step).replace(name=f"again_{step.name}")
