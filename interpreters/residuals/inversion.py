"""Residuals through inverses: compute the inputs of invertible functions again from their results, not from inputs.

In a chain of invertible functions the inputs of each are the results of the one before. Backwards, the inverse of the
last gives its inputs, from which the inverse of the one before goes on: only the results of the last are saved.
Source: Gomez et al. 2017, "The reversible residual network"; Dinh, Krueger & Bengio 2014.
"""

from collections.abc import Collection, Sequence

from tapeless.interpreters.residuals import rematerialization
from tapeless.interpreters.residuals.rematerialization import RematerializationPlan
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.primitives.invertible import invert, invertible_p


def through_inverses(primal: Jaxpr, linear: Jaxpr, n: int) -> tuple[Jaxpr, Jaxpr, int]:
    """Compute residuals by inverses in the linear half, where that spares saving them; inputs of the program stay.

    Args:
      primal: primal inputs -> results, n residuals. linear: the residuals ; linear inputs -> linear results.
    Returns: the two programs for the residuals that are left, and the number of these.
    """
    if invertible_p not in primal.primitives:
        return primal, linear, n
    wanted = primal.outvars[len(primal.outvars) - n :]
    again = plan_inverses(primal.eqns, wanted, primal.invars)
    made = {v for eqn in again for v in eqn.outvars}
    needed = {*wanted, *[v for eqn in again for v in eqn.invars]} - made
    available = [*primal.invars, *[v for eqn in primal.eqns for v in eqn.outvars]]
    saved = tuple([v for v in available if v in needed])
    return rematerialization.with_plan(
        primal, linear, RematerializationPlan(primal.eqns, saved, tuple(again), wanted)
    )


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
        n_args = eqn.params["n_args"]
        xs, ys = eqn.invars[n_args:], eqn.outvars[: len(eqn.params["inverse"].invars) - n_args]
        fresh = [v for v in dict.fromkeys(xs) if isinstance(v, Var) and v not in done]
        # What a later inverse reads besides its results may be needed to get here.
        if needed.isdisjoint(fresh) or not read.isdisjoint(fresh):
            continue
        given_ones = [*eqn.invars[:n_args], *ys]
        outs = [v if v in fresh and i == xs.index(v) else Var(v.aval) for i, v in enumerate(xs)]
        again.append(eqn.replace(params=invert(**eqn.params), invars=given_ones, outvars=outs))
        needed.update(given_ones)
        read.update(given_ones)
        done.update(fresh)
    return again
