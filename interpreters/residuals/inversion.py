"""Residuals through inverses: compute the inputs of invertible functions again from their results, not from inputs.

In a chain of invertible functions the inputs of each are the results of the one before. Backwards, the inverse of the
last gives its inputs, from which the inverse of the one before goes on: only the results of the last are saved. In a
loop, the step backwards computes the carry before a step from the carry after it: only the last carry is saved.
Source: Gomez et al. 2017, "The reversible residual network"; Dinh, Krueger & Bengio 2014.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tapeless.interpreters.residuals import rematerialization
from tapeless.interpreters.residuals.rematerialization import RematerializationPlan, repeat_equation
from tapeless.tracer import core, dtypes, passes
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, effects
from tapeless.tracer.primitives.elementwise import add_p, sub_p
from tapeless.tracer.primitives.invertible import invert, invertible_p


def through_inverses(primal: Jaxpr, linear: Jaxpr, n: int) -> tuple[Jaxpr, Jaxpr, int]:
    """Compute residuals by inverses in the linear half, where that spares saving them; inputs of the program stay.

    Args:
      primal: primal inputs -> results, n residuals. linear: the residuals ; linear inputs -> linear results.
    Returns: the two programs for the residuals that are left, and the number of these.
    """
    wanted = primal.outvars[len(primal.outvars) - n :]
    again = plan_inverses(primal.eqns, wanted, primal.invars)
    made = {v for eqn in again for v in eqn.outvars}
    needed = {*wanted, *[v for eqn in again for v in eqn.invars]} - made
    available = [*primal.invars, *[v for eqn in primal.eqns for v in eqn.outvars]]
    saved = tuple([v for v in available if v in needed])
    return rematerialization.with_plan(primal, linear, RematerializationPlan(primal.eqns, saved, tuple(again), wanted))


def plan_inverses(eqns: Sequence[Equation], wanted: Collection[Atom], given: Collection[Atom]) -> list[Equation]:
    """Plan the equations that compute `wanted` values, but not `given` ones, from later values of a program.

    Args:
      eqns: the equations of the program, of which the invertible ones count.
    Returns: equations of inverses in the order in which they run. What they read, and none of them computes, is to be
      saved.
    """
    needed, read, done = set[Atom](wanted), set[Atom](), set[Atom](given)
    again: list[Equation] = []
    for eqn in reversed(eqns):
        if eqn.primitive is not invertible_p:
            continue
        back = _inverse_equation(eqn, done)
        # What a later inverse reads besides its results may be needed to get here.
        if needed.isdisjoint(back.outvars) or not read.isdisjoint(back.outvars):
            continue
        again.append(back)
        needed.update(back.invars)
        read.update(back.invars)
        done.update(back.outvars)
    return again


def _inverse_equation(eqn: Equation, done: Collection[Atom]) -> Equation:
    """Return the equation of the inverse of an invertible one.

    What is `done`, or an operand of the inverse, as a part that passes unchanged, it computes as other variables.
    """
    n_args = eqn.params["n_args"]
    xs, ys = eqn.invars[n_args:], eqn.outvars[: len(eqn.params["inverse"].invars) - n_args]
    operands = [*eqn.invars[:n_args], *ys]
    outvars = list[Var]()
    for v in xs:
        if isinstance(v, Var) and v not in done and v not in operands and v not in outvars:
            outvars.append(v)
        else:
            outvars.append(Var(v.aval))
    return eqn.replace(params=invert(**eqn.params), invars=operands, outvars=outvars)


# ---- loops ---------------------------------------------------------------------------------------------------


class StepBackwards(NamedTuple):
    """The step of a loop backwards.

    jaxpr: constants, state after a step, elements, stacked residuals -> state before it, all residuals.
    state: the parts of the carry that are the state. stacked: numbers of the residuals that are saved for each step.
    """

    jaxpr: Jaxpr
    state: tuple[int, ...]
    stacked: tuple[int, ...]


@core.memoize_by_program
def step_backwards(primal: Jaxpr, n_consts: int, n_carry: int, n_residuals: int) -> StepBackwards | None:
    """Find how to go back through the steps of a loop by inverses; None if that spares no residual.

    What can be computed from the carry after a step, constants and elements is; of the residuals that cannot be, the
    smallest are saved for each step, until all can.

    Args:
      primal: constants, carry, elements -> carry, stacked results, residuals.
    """
    residuals = primal.outvars[len(primal.outvars) - n_residuals :]
    by_size = sorted({v for v in residuals if isinstance(v, Var)}, key=lambda v: (v.aval.nbytes, residuals.index(v)))
    stacked = list[Var]()
    while True:
        state, known, eqns = _known_parts(primal, n_consts, n_carry, stacked)
        missing = [v for v in by_size if v not in known]
        if not missing:
            break
        stacked.append(missing[0])
    carry = primal.invars[n_consts : n_consts + n_carry]
    parts = _parts_read(state, eqns, carry, residuals)
    outs = [*[carry[k] for k in parts], *residuals]
    needed, _ = passes.live(eqns, outs)
    if not parts or not any(eqn.primitive is invertible_p for eqn in needed):
        return None
    inputs = [*primal.invars[:n_consts], *[state[k] for k in parts], *primal.invars[n_consts + n_carry :], *stacked]
    numbers = tuple([residuals.index(v) for v in stacked])
    program = Jaxpr(inputs, list(map(repeat_equation, needed)), outs, f"back_{primal.name.removeprefix('primal_')}")
    return StepBackwards(check_if_configured(program), parts, numbers)


def _known_parts(
    primal: Jaxpr, n_consts: int, n_carry: int, stacked: Sequence[Var]
) -> tuple[dict[int, Var], set[Atom], list[Equation]]:
    """Find the parts of a carry that can be computed from those after the step, with these; and what else is known."""
    carry, after = primal.invars[n_consts : n_consts + n_carry], primal.outvars[:n_carry]
    free: set[Atom] = {*primal.invars[:n_consts], *primal.invars[n_consts + n_carry :], *stacked}
    state = {k: v for k, v in enumerate(after) if isinstance(v, Var) and after.index(v) == k and v not in free}
    while True:
        known = free.union(state.values())
        eqns = _derive(primal.eqns, known)
        left = {k: v for k, v in state.items() if carry[k] in known}
        if left == state:
            return state, known, eqns
        state = left


def _parts_read(
    state: Mapping[int, Var], eqns: Sequence[Equation], carry: Sequence[Var], residuals: Sequence[Atom]
) -> tuple[int, ...]:
    """List the parts of the state after a step from which the residuals, and these parts before it, are computed."""
    parts: tuple[int, ...] = ()
    while True:
        outs = [*residuals, *[carry[k] for k in parts]]
        read = passes.live(eqns, outs)[1].union(outs)
        found = tuple([k for k, v in state.items() if k in parts or v in read])
        if found == parts:
            return parts
        parts = found


def _derive(eqns: Sequence[Equation], known: set[Atom]) -> list[Equation]:
    """List equations that compute what follows from `known` values, forwards or by inverses; add it to `known`."""
    found, before = list[Equation](), -1
    while len(found) != before:
        before = len(found)
        for eqn in [*eqns, *reversed(eqns)]:
            for step in (_done_again(eqn, known), _undone(eqn, known)):
                if step and all(v in known for v in step.invars if isinstance(v, Var)):
                    found.append(step)
                    known.update(step.outvars)
    return found


def _done_again(eqn: Equation, known: Collection[Atom]) -> Equation | None:
    """Return the equation itself if not all results are known, and it has no effect; known ones get other variables."""
    if effects(eqn) or all(v in known for v in eqn.outvars):
        return None
    return eqn.replace(outvars=[Var(v.aval) if v in known else v for v in eqn.outvars])


def _undone(eqn: Equation, known: Collection[Atom]) -> Equation | None:
    """Return the equation that computes unknown operands from results: of invertible functions, and of counters."""
    if all(v in known for v in eqn.invars if isinstance(v, Var)):
        return None
    if eqn.primitive is invertible_p:
        return _inverse_equation(eqn, known)
    if eqn.primitive is add_p and dtypes.is_integer(eqn.outvars[0].aval.dtype):
        x, y = eqn.invars
        x, y = (y, x) if x in known or not isinstance(x, Var) else (x, y)
        is_repeated = x.aval != eqn.outvars[0].aval  # a number that was added to an array
        if isinstance(x, Var) and x is not y and x not in known and not is_repeated:
            return eqn.replace(primitive=sub_p, invars=[eqn.outvars[0], y], outvars=[x])
    return None
