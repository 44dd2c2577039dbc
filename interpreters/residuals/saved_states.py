"""Online checkpointing: states of a loop of unknown length, saved in a fixed number of slots, for its backward pass.

Search terms: dynamic checkpointing, treeverse, revolve, recomputation, reverse mode of while loops. Sources: Wang, Moin
& Iaccarino 2009 (minimal repetition dynamic checkpointing); Stumm & Walther 2010; Griewank & Walther 2000.

A state is saved before each step, at level 0, while there is a slot for it. If none is free, the last state moves to
the next step, one level up, and gives free all slots of lower levels: those are read if the loop ends there, and taken
by the next steps. Backwards, the last saved state before a step is the one to go on from, and the states on the way
take the slots that are free by then, by the same rule. The first state stays in slot 0.

With s >= 2 slots, each of n states is computed again at most r times, if n <= binomial(s + r, r + 1): never for n <= s.
Besides, every step backwards computes its own residuals. With one slot it is n - 1 times. Left out: Revolve's schedule
between two saved states, which knows how far it goes; slots on disk.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.tracer import core, passes
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.elementwise import add, eq, ge, gt, lt, select_n, sub
from tapeless.tracer.primitives.indexing import dynamic_index_in_dim, dynamic_update_index_in_dim
from tapeless.tracer.primitives.linear_while import INT
from tapeless.tracer.primitives.reduction import argmax
from tapeless.tracer.primitives.shape import broadcast_in_dim, full, iota
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray, aval_of

_NEVER: Final = 2**31 - 1  # the position of a slot that holds no state, and the level of the first state
_FREE: Final = -1  # the level of a slot that may be taken

_COUNT: Final = ShapedArray((), INT)


class Slots(NamedTuple):
    """Saved states.

    positions, levels: of each slot, int32 [slots]: the number of steps before its state; its level. states: one array
    [slots, ...] for each part of a state.
    """

    positions: Any
    levels: Any
    states: Sequence[Any]

    def save(self, position: Any, last: Any, state: Sequence[Any]) -> tuple[Any, "Slots"]:
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
        return slot, Slots(_replaced(self.positions, slot, position), levels, states)

    def back_to(self, position: Any) -> tuple[Any, "Slots"]:
        """Find the slot of the last state that is not after `position`, and give free those after it."""
        n = aval_of(self.positions).shape[0]
        after = gt(self.positions, position)
        last = argmax(select_n(after, self.positions, full((n,), _FREE, INT)), 0)
        return last, self._replace(levels=select_n(after, self.levels, full((n,), _FREE, INT)))

    def state(self, slot: Any) -> list[Any]:
        """Return the state in a slot."""
        return [_at(x, slot) for x in self.states]

    def flat(self) -> list[Any]:
        """List the arrays."""
        return [self.positions, self.levels, *self.states]


def from_flat(arrays: Sequence[Any]) -> Slots:
    """Return the slots that `Slots.flat` lists."""
    return Slots(arrays[0], arrays[1], arrays[2:])


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
    """A while loop that has run: its last carry, its number of steps, and the saved states, if any part is saved."""

    carry: Sequence[Any]
    trips: Any
    slots: Slots | None

    def residuals(self) -> list[Any]:
        """List what a `linear_while` reads of it."""
        return [self.trips, *(self.slots.flat() if self.slots else [])]


def needed_parts(primal: Jaxpr, n_consts: int, n_carry: int) -> tuple[int, ...]:
    """List the parts of the carry that residuals of some step depend on.

    Args:
      primal: a step: constants, carry -> carry, residuals.
    """
    needed, before = set[int](), None
    while needed != before:
        before = needed
        outs = [*[primal.outvars[k] for k in sorted(needed)], *primal.outvars[n_carry:]]
        read = passes.live(primal.eqns, outs)[1] | set(outs)
        needed = needed | {k for k in range(n_carry) if primal.invars[n_consts + k] in read}
    return tuple(sorted(needed))


def run_saving(
    condition: Jaxpr,
    body: Jaxpr,
    consts: tuple[Sequence[Any], Sequence[Any]],
    carry: Sequence[Any],
    saved: tuple[int, ...],
    n_slots: int,
) -> SavedLoop:
    """Run a while loop that saves the parts of its carry numbered in `saved`, and counts its steps."""
    of_condition, of_body = consts
    n = len(of_condition)
    table = [full((n_slots,), fill, INT) for fill in (_NEVER, _FREE)] if saved else []
    begun = [np.int32(0), *([np.int32(0)] if saved else []), *table, *[_repeated(carry[k], n_slots) for k in saved]]
    if saved and n_slots == 1:
        begun[2:4] = [full((1,), 0, INT), full((1,), _NEVER, INT)]
    avals = [aval_of(x) for x in begun]
    test = passes.rearrange_program(condition, [*range(n), *avals, *range(n, n + len(carry))], [0])
    program = _saving_body(body, saved, len(of_body), tuple(avals))
    outs = c.while_loop(test, program, consts, [*begun, *carry])
    return SavedLoop(outs[len(begun) :], outs[0], from_flat(outs[2 : len(begun)]) if saved else None)


@core.memoize_by_program
def _saving_body(body: Jaxpr, saved: tuple[int, ...], n_consts: int, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    def step(*operands: Any) -> Any:
        consts, (count, *more), carry = split_list(operands, n_consts, len(avals))
        if saved:
            last, slots = from_flat(more[1:]).save(count, more[0], [carry[k] for k in saved])
            more = [last, *slots.flat()]
        return [add(count, _i(1)), *more, *eval_jaxpr(body, [*consts, *carry])]

    n = len(body.invars)
    in_avals = [*body.in_avals[:n_consts], *avals, *body.in_avals[n_consts:n]]
    return trace_closed(step, in_avals, what="linearize", function=body).replace(name=f"saving_{body.name}")


def _repeated(x: Any, n: int) -> Any:
    shape = aval_of(x).shape
    return broadcast_in_dim(x, (n, *shape), range(1, 1 + len(shape)))


# ---- backwards -----------------------------------------------------------------------------------------------


def state_before(step: Jaxpr, consts: Sequence[Any], n_states: int, position: Any, slots: Slots) -> tuple[Any, Slots]:
    """Compute the state before the step at `position` from the last one saved, saving those on the way.

    Args:
      step: constants, state -> state, residuals.
    """
    last, slots = slots.back_to(position)
    begun = [_at(slots.positions, last), last, *slots.flat()]
    carry = [*begun, *slots.state(last)]
    avals = tuple([aval_of(x) for x in carry])
    outs = c.while_loop(
        _not_there(step, avals), _advance(step, len(consts), n_states, avals), ([position], consts), carry
    )
    return outs[len(begun) :], from_flat(outs[2 : len(begun)])


@core.memoize_by_program
def _not_there(step: Jaxpr, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    return trace_closed(lambda end, now, *_: [lt(now, end)], [_COUNT, *avals], what="transpose", function=step)


@core.memoize_by_program
def _advance(step: Jaxpr, n_consts: int, n_states: int, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    advance = passes.rearrange_program(step, range(len(step.invars)), range(n_states))

    def body(*operands: Any) -> Any:
        consts, (position, last, *table), state = split_list(operands, n_consts, len(avals) - n_states)
        after, position = eval_jaxpr(advance, [*consts, *state]), add(position, _i(1))
        last, slots = from_flat(table).save(position, last, after)
        return [position, last, *slots.flat(), *after]

    in_avals = [*step.in_avals[:n_consts], *avals]
    return trace_closed(body, in_avals, what="transpose", function=step).replace(name=f"again_{step.name}")
