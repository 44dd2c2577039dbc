"""The step of a loop whose reverse mode computes steps again: what runs forwards, and what is computed again.

Effects happen once: they are no part of what is computed again. Where that needs their results, as those of
`io_callback`, each step of a known number keeps them; of an unknown number that is refused.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.residuals.rematerialization import plan_rematerialization, save_none, with_plan
from tapeless.tracer import core, passes
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var, eval_jaxpr
from tapeless.tracer.primitives.control_flow import stacked_type
from tapeless.tracer.primitives.elementwise import add
from tapeless.tracer.primitives.indexing import dynamic_index_in_dim, dynamic_update_index_in_dim
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray

_COUNT = ShapedArray((), np.dtype(np.int32))


class RepeatedStep(NamedTuple):
    """A step of a loop as it runs, and as it is computed again.

    forwards: constants, carry -> carry, kept values. again: constants, kept values, the parts of the carry numbered in
    `saved` -> these parts, residuals.
    """

    forwards: Jaxpr
    again: Jaxpr
    saved: tuple[int, ...]


@core.memoize_by_program
def repeated_step(primal: Jaxpr, n_consts: int, n_carry: int, is_counted: bool) -> RepeatedStep:
    """Find what of a step is computed again, and from which parts of the carry.

    Args:
      primal: a step: constants, carry -> carry, residuals.
      is_counted: whether the number of steps is known.
    Raises: NotImplementedError if it is not, and what is computed again needs results of an effect.
    """
    needed = set[int]()
    while True:
        wanted = [primal.outvars[k] for k in (*sorted(needed), *range(n_carry, len(primal.outvars)))]
        plan = plan_rematerialization(primal, wanted, save_none)
        found = needed | {k for k in range(n_carry) if primal.invars[n_consts + k] in plan.saved}
        if found == needed:
            break
        needed = found
    kept = [v for v in plan.saved if v not in primal.invars]
    if kept and not is_counted:
        raise _cannot_keep(next(eqn for eqn in plan.eqns if not set(kept).isdisjoint(eqn.outvars)))
    stand_ins = [Var(v.aval) for v in wanted]
    whole = primal.replace(outvars=[*primal.outvars[:n_carry], *wanted])
    forwards, again, _ = with_plan(whole, Jaxpr(stand_ins, (), stand_ins, f"again_{primal.name}"), plan)
    place = {v: k for k, v in enumerate(plan.saved)}
    results = [*range(n_carry), *[n_carry + place[v] for v in kept]]
    inputs = [*primal.invars[:n_consts], *kept, *[primal.invars[n_consts + k] for k in sorted(needed)]]
    return RepeatedStep(
        passes.rearrange_program(forwards, range(n_consts + n_carry), results),
        passes.rearrange_program(again, [place.get(v, v.aval) for v in inputs], range(len(wanted))),
        tuple(sorted(needed)),
    )


def _cannot_keep(eqn: Equation) -> NotImplementedError:
    at = f" at {eqn.source.describe()}" if eqn.source else ""
    return NotImplementedError(
        f"while: reverse mode computes steps again, for which it needs the results of {eqn.primitive}{at}. It has an "
        "effect, so it is not called again, and a loop of an unknown number of steps does not keep them.\n  Use "
        "pure_callback if it may be called again, or a scan or fori_loop of a known number of steps."
    )


@core.memoize_by_program
def stacking(forwards: Jaxpr, again: Jaxpr, saved: tuple[int, ...], n_consts: int, trips: int) -> RepeatedStep:
    """Let a step count, in its first carry, and write the values that it keeps into arrays, its last carries.

    Computed again, it reads them from these arrays, which are constants then.
    """
    n_carry = len(forwards.invars) - n_consts
    stacked = [stacked_type(aval, trips) for aval in forwards.out_avals[n_carry:]]

    def run(*operands: Any) -> list[Any]:
        consts, (count,), carry, arrays = split_list(operands, n_consts, 1, n_carry)
        outs = eval_jaxpr(forwards, [*consts, *carry])
        return [add(count, np.int32(1)), *outs[:n_carry], *_written(arrays, outs[n_carry:], count)]

    def run_again(*operands: Any) -> list[Any]:
        consts, arrays, (count,), state = split_list(operands, n_consts, len(stacked), 1)
        kept = [dynamic_index_in_dim(x, count, keepdims=False, allow_negative_indices=False) for x in arrays]
        return [add(count, np.int32(1)), *eval_jaxpr(again, [*consts, *kept, *state])]

    of_consts, carry = forwards.in_avals[:n_consts], forwards.in_avals[n_consts:]
    state = again.in_avals[n_consts + len(stacked) :]
    return RepeatedStep(
        trace_closed(run, [*of_consts, _COUNT, *carry, *stacked], function=forwards).replace(name=forwards.name),
        trace_closed(run_again, [*of_consts, *stacked, _COUNT, *state], function=forwards).replace(name=again.name),
        (0, *[1 + k for k in saved]),
    )


def _written(arrays: Sequence[Any], rows: Sequence[Any], at: Any) -> list[Any]:
    return [
        dynamic_update_index_in_dim(x, row, at, 0, allow_negative_indices=False)
        for x, row in zip(arrays, rows, strict=True)
    ]
