"""Rematerialization inside calls, loops and branches: functions for the table `rematerialization.rules`.

A body is split in two: the first also returns the values saved by the policy, the second computes wanted results again
from these values. For a loop, the second body runs in a second loop, over what the first saved at each step.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tapeless.interpreters.partial_eval import UnzippedJaxpr
from tapeless.interpreters.residuals import locations, rematerialization
from tapeless.interpreters.residuals.rematerialization import Asked, RematerializationPlan
from tapeless.tracer import core, passes
from tapeless.tracer.bodies import CARRY, CONST, EACH, bodies_of, in_groups, rebuild_equation
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var
from tapeless.tracer.primitives.control_flow import stacked_type

Two = tuple[Equation, Equation | None]  # with additional results to save; the one that computes `wanted` again


def call(eqn: Equation, wanted: Sequence[Var], policy: Asked) -> Two:
    """Split a call of the param `jaxpr` in two; the second is None if all `wanted` results are saved."""
    parts = _parts(eqn.params["jaxpr"], 0, 0, _positions(eqn, wanted), policy)
    if parts.again is None:
        return eqn, None
    outvars = [*eqn.outvars, *[Var(aval) for aval in parts.primal.out_avals[len(eqn.outvars) :]]]
    operands = [eqn.invars[i] for i in parts.inputs] + [outvars[i] for i in parts.saved]
    computed = [eqn.outvars[i] for i in parts.computed]
    return _with_program(eqn, parts.primal, eqn.invars, outvars), _with_program(eqn, parts.again, operands, computed)


def loop(eqn: Equation, wanted: Sequence[Var], policy: Asked) -> Two:
    """Split a loop of a known number of steps in two; the second is None if all `wanted` results are saved."""
    bodies = bodies_of(eqn)
    assert bodies is not None and bodies.steps is not None
    (body,), length = bodies.each, len(bodies.steps)
    start, n_carry = body.number_of(CONST), body.number_of(CARRY)
    parts = _parts(body.jaxpr, start, n_carry, _positions(eqn, wanted), policy)
    if parts.again is None:
        return eqn, None
    extra = [Var(stacked_type(aval, length)) for aval in parts.primal.out_avals[len(eqn.outvars) :]]
    outvars = [*eqn.outvars, *extra]
    operands = [eqn.invars[i] for i in parts.inputs] + [outvars[i] for i in parts.saved]
    carried = [eqn.outvars[k] if k in parts.computed else Var(eqn.outvars[k].aval) for k in parts.carried]
    computed = [eqn.outvars[i] for i in parts.computed if i >= n_carry]
    first = body._replace(
        jaxpr=parts.primal, outs=(*body.outs, *[EACH] * len(extra)), results=tuple(range(len(outvars)))
    )
    primal = rebuild_equation(eqn, [first], eqn.invars, outvars) if extra else eqn
    n_fixed, n_carried = sum(i < start for i in parts.inputs), len(carried)
    inputs = [(CONST, n_fixed), (CARRY, n_carried), (EACH, len(operands) - n_fixed - n_carried)]
    second = in_groups(parts.again, inputs, [(CARRY, n_carried), (EACH, len(computed))])
    return primal, rebuild_equation(eqn, [second], operands, [*carried, *computed])


def choice(eqn: Equation, wanted: Sequence[Var], policy: Asked) -> Two:
    """Split an equation with `branches` in two, as `call`; branches return saved values in common slots."""
    branches, positions = eqn.params["branches"], _positions(eqn, wanted)
    plans = [
        rematerialization.plan_rematerialization(branch, [branch.outvars[i] for i in positions], policy)
        for branch in branches
    ]
    computed = sorted({i for branch, plan in zip(branches, plans) for i in _computed(branch, positions, plan)})
    if not computed:
        return eqn, None
    chosen = [positions.index(i) for i in computed]
    found = locations.branches([_halves(branch, plan, chosen) for branch, plan in zip(branches, plans)])
    slots = [Var(aval) for aval in found.primal[0].out_avals[len(eqn.outvars) :]]
    operands = [eqn.invars[0], *[eqn.invars[1 + i] for i in found.operands], *slots]
    primal = eqn.replace(params={**eqn.params, "branches": found.primal}, outvars=[*eqn.outvars, *slots])
    params = {**eqn.params, "branches": found.linear}
    again = eqn.replace(params=params, invars=operands, outvars=[eqn.outvars[i] for i in computed])
    return primal if slots else eqn, again


def _halves(branch: Jaxpr, plan: RematerializationPlan, again: Sequence[int]) -> UnzippedJaxpr:
    """Split a branch by its plan; saved values take the place of residuals."""
    primal = branch.replace(eqns=plan.eqns, outvars=[*branch.outvars, *plan.saved])
    second = Jaxpr(plan.saved, plan.again, [plan.wanted[k] for k in again], f"again_{branch.name}")
    return UnzippedJaxpr(
        check_if_configured(primal), check_if_configured(passes.dead_code(second)), (), len(plan.saved)
    )


def _positions(eqn: Equation, wanted: Sequence[Var]) -> tuple[int, ...]:
    return tuple(i for i, v in enumerate(eqn.outvars) if v in wanted)


def _with_program(eqn: Equation, jaxpr: Jaxpr, invars: Any, outvars: Any) -> Equation:
    return eqn.replace(params={**eqn.params, "jaxpr": jaxpr}, invars=invars, outvars=outvars)


class _RematerializedHalves(NamedTuple):
    """A program split in two: `primal` also returns the saved values, `again` computes some results from them.

    inputs: positions of the inputs that `again` takes. saved: positions of the results of `primal` that it takes after
    these. computed: positions of the results that it computes. carried: the parts of a loop's carry that it takes and
    returns first.
    """

    primal: Jaxpr
    again: Jaxpr | None = None  # None: all wanted results are saved
    inputs: tuple[int, ...] = ()
    saved: tuple[int, ...] = ()
    computed: tuple[int, ...] = ()
    carried: tuple[int, ...] = ()


@core.memoize_by_program
def _parts(jaxpr: Jaxpr, start: int, n_carry: int, positions: tuple[int, ...], policy: Asked) -> _RematerializedHalves:
    """Split a program for the results at `positions`. Remembered while the program lives: always the same objects."""
    plan, carried = _plan(jaxpr, start, n_carry, positions, policy)
    computed = _computed(jaxpr, positions, plan)
    if not computed:
        return _RematerializedHalves(jaxpr)
    place = {v: i for i, v in enumerate(jaxpr.invars)}
    kept = {place[v] for v in plan.saved if v in place} | {start + k for k in carried}
    saved = [v for v in plan.saved if v not in place]
    stacked = jaxpr.outvars[n_carry:]
    outvars = [*jaxpr.outvars, *[v for v in saved if v not in stacked]]
    value = dict(zip([*[jaxpr.outvars[i] for i in positions], *[jaxpr.outvars[k] for k in carried]], plan.wanted))
    results = [*carried, *[i for i in computed if i >= n_carry]]
    inputs = [*[jaxpr.invars[i] for i in sorted(kept)], *saved]
    return _RematerializedHalves(
        check_if_configured(jaxpr.replace(eqns=plan.eqns, outvars=outvars)),
        check_if_configured(
            Jaxpr(inputs, plan.again, [value[jaxpr.outvars[i]] for i in results], f"again_{jaxpr.name}")
        ),
        tuple(sorted(kept)),
        tuple(n_carry + outvars[n_carry:].index(v) for v in saved),
        tuple(computed),
        tuple(carried),
    )


def _plan(
    jaxpr: Jaxpr, start: int, n_carry: int, positions: tuple[int, ...], policy: Asked
) -> tuple[RematerializationPlan, list[int]]:
    """Plan how to get the results at `positions`; return also the carried values that the second loop must carry.

    Rematerialization may read carried values, which are then wanted, too: iterated to a fixed point.
    """
    carried: set[int] = set()
    while True:
        outs = [jaxpr.outvars[i] for i in (*positions, *sorted(carried))]
        plan = rematerialization.plan_rematerialization(jaxpr, outs, policy)
        read = {k for k in range(n_carry) if jaxpr.invars[start + k] in plan.saved}
        found = carried | read | {i for i in _computed(jaxpr, positions, plan) if i < n_carry}
        if found == carried:
            return plan, sorted(carried)
        carried = found


def _computed(jaxpr: Jaxpr, positions: Sequence[int], plan: RematerializationPlan) -> list[int]:
    """List the positions of wanted results that are rematerialized, not saved."""
    made = set(plan.saved).difference(jaxpr.invars)
    return [i for i, v in zip(positions, plan.wanted) if v not in made or v is not jaxpr.outvars[i]]
