"""Schedules of loops: which states to save, so that the fewest steps are computed again (Revolve, treeverse).

A state is a carry that is saved; the first one counts. Backwards, the last saved state before a step is the one to go
on from. To reverse l steps from a saved state with s states, including it, the loop goes on some steps, saves, reverses
what is behind with s - 1 states, and what is before with s, as the others are free then. With s states and at most r
repetitions of a step, binomial(s + r, s) steps are reversed. The fewest repetitions of l steps together are
r l - binomial(s + r, r - 1), for the least such r. They are reached if what is before has from binomial(s + r - 2, s)
to binomial(s + r - 1, s) steps, and what is behind from binomial(s + r - 2, s - 1) to binomial(s + r - 1, s - 1).
Source: Griewank 1992, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
differentiation"; Griewank & Walther 2000, "Algorithm 799: revolve".
"""

from math import comb
from typing import Any, Final

import numpy as np

from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.elementwise import add, div, gt, lt, max, min, mul, rem, select_n, sub
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray

_MOST: Final = np.int32(2**31 - 1)
_ONE: Final = np.int32(1)
_COUNT: Final = ShapedArray((), np.dtype(np.int32))


def next_position(now: Any, end: Any, free: Any) -> Any:
    """Compute before which step the next state is saved, if steps from `now` to before `end` are to be reversed.

    Args:
      now, end, free: int32 []; the last is the number of free slots, besides that of the state at `now`.
    Returns: int32 []; `end` if no slot is free, or there is one step at most.
    """
    length, states = sub(end, now), add(free, _ONE)
    before, r = _reversed_before(length, states, free)
    below = max(sub(add(states, r), _ONE), _ONE)
    behind = _scaled(before, states, below)
    steps = max(min(before, sub(length, behind)), _ONE)
    is_saved = gt(min(free, sub(length, _ONE)), np.int32(0))
    return select_n(is_saved, end, add(now, steps))


def _reversed_before(length: Any, states: Any, free: Any) -> tuple[Any, Any]:
    """Find the least r for which binomial(s + r, s) is at least `length`; return binomial(s + r - 1, s), and r."""

    def next_r(states: Any, r: Any, before: Any, reached: Any) -> Any:
        r = add(r, _ONE)
        fits = lt(div(reached, r), div(sub(sub(_MOST, reached), states), states))
        return [r, reached, select_n(fits, _MOST, add(reached, _scaled(reached, states, r)))]

    test = trace_closed(lambda length, r, before, reached: [lt(reached, length)], [_COUNT] * 4)
    body = trace_closed(next_r, [_COUNT] * 4)
    begun = select_n(gt(free, np.int32(0)), length, _ONE)  # with one state there is nothing to choose
    r, before, _ = c.while_loop(test, body, ([length], [states]), [np.int32(0), _ONE, begun])
    return before, r


def _scaled(x: Any, by: Any, over: Any) -> Any:
    """Compute x * by / over, which is whole, from the quotient, as the product may have more than 32 bits."""
    return add(mul(div(x, over), by), div(mul(rem(x, over), by), over))


def computed_again(length: int, states: int) -> int:
    """Return how many steps the backward pass computes again, beside their own, from the step before the last."""
    if states == 1:
        return (length - 1) * (length - 2) // 2
    r = 0
    while comb(states + r, states) < length:
        r += 1
    return r * length - comb(states + r, r - 1) - (length - 1) if r else 0


def logarithmic(length: int) -> int:
    """Return log2(length), rounded up, as the number of states: a step is computed 2 + log2(length) / 2 times at most.

    That is the average over all steps.
    """
    return (length - 1).bit_length() or 1
