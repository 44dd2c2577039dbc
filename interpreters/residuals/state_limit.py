"""Limits on the saved states of loops: the policy that reverses scans from so many states, in the optimal order.

A scan becomes a while loop of a known number of steps (`saved_states`, `schedules`): the elements of a step are read
from the arrays that hold them, and results are written where they belong, so that neither are copied, nor their
cotangents.
Left out: loops inside of the program's equations, and those without a carry, which have no states.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapeless.interpreters.partial_eval import UnzippedJaxpr
from tapeless.interpreters.residuals.chunks import splice
from tapeless.interpreters.residuals.rematerialization import ProgramPolicy
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import core
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Equation, Jaxpr, eval_jaxpr
from tapeless.tracer.primitives.control_flow import (
    BY_DEFAULT,
    Saving,
    as_scan,
    scan_p,
    stacked_type,
    while_loop,
    while_p,
)
from tapeless.tracer.primitives.elementwise import add, lt, sub
from tapeless.tracer.primitives.indexing import dynamic_index_in_dim, dynamic_update_index_in_dim
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray


@dataclass(frozen=True)
class StateLimit(ProgramPolicy):
    """The policy that saves at most so many carries of each scan, and computes the others again from these."""

    states: int

    def __repr__(self) -> str:
        return f"StateLimit({self.states})"

    def unzip(self, program: Jaxpr, unzip: Callable[[Jaxpr], UnzippedJaxpr]) -> UnzippedJaxpr:
        """Split a program in halves; in the linear one, loops go from the last step to the first from saved states."""
        eqns: list[Equation] = []
        for eqn in program.eqns:
            loop = as_scan(eqn)
            is_limited = loop.primitive is scan_p and loop.params["n_carry"]
            eqns.extend(splice(loop, self._program(loop)) if is_limited else [eqn])
        return unzip(program.replace(eqns=eqns))

    def _program(self, loop: Equation) -> Jaxpr:
        others = [loop.params[name] for name in ("n_consts", "n_carry", "length", "reverse")]
        return _as_while(loop.params["jaxpr"], tuple([v.aval for v in loop.invars]), self.states, *others)


def most_states(program: Jaxpr) -> int:
    """Return the most states that a while loop of a program saves; 0 if there is none."""
    return max([_saving(eqn).slots for eqn in program.eqns if eqn.primitive is while_p], default=0)


def limit_states(program: Jaxpr, states: int) -> Jaxpr:
    """Let while loops of a program save at most so many states."""

    def limited(eqn: Equation) -> Equation:
        saving = _saving(eqn)
        return eqn.replace(params={**eqn.params, "saving": saving._replace(slots=min(states, saving.slots))})

    return program.replace(eqns=[limited(eqn) if eqn.primitive is while_p else eqn for eqn in program.eqns])


def _saving(eqn: Equation) -> Saving:
    return eqn.params.get("saving", BY_DEFAULT)


@core.memoize_by_program
def _as_while(
    body: Jaxpr,
    avals: tuple[ShapedArray, ...],
    states: int,
    n_consts: int,
    n_carry: int,
    length: int,
    reverse: bool,
) -> Jaxpr:
    """Write a scan of a body, for operands of the types `avals`, as a while loop that counts its steps."""
    elements = avals[n_consts + n_carry :]
    stacked = [stacked_type(aval, length) for aval in body.out_avals[n_carry:]]
    count = ShapedArray((), np.dtype(np.int32))

    def step(*operands: Any) -> list[Any]:
        consts, arrays, (k,), carry, ys = split_list(operands, n_consts, len(elements), 1, n_carry)
        at = sub(np.int32(length - 1), k) if reverse else k
        x = [dynamic_index_in_dim(array, at, 0, keepdims=False, allow_negative_indices=False) for array in arrays]
        outs = eval_jaxpr(body, [*consts, *carry, *x])
        written = [
            dynamic_update_index_in_dim(y, row, at, 0, allow_negative_indices=False)
            for y, row in zip(ys, outs[n_carry:])
        ]
        return [add(k, np.int32(1)), *outs[:n_carry], *written]

    carried = [count, *avals[n_consts : n_consts + n_carry], *stacked]
    program = trace_closed(step, [*avals[:n_consts], *elements, *carried], function=body).replace(name=body.name)
    test = trace_closed(lambda k, *_: [lt(k, np.int32(length))], carried, function=body)

    def loop(*args: Any) -> Any:
        consts, carry, xs = split_list(args, n_consts, n_carry)
        begun = [np.int32(0), *carry, *[instantiate(Zero(aval)) for aval in stacked]]
        return while_loop(test, program, ((), [*consts, *xs]), begun, Saving(states, length))[1:]

    return trace_closed(loop, avals)
