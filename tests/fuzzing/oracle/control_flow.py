"""Branches and loops: of Python."""

from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import Run, meaning
from tests.fuzzing.oracle.values import Values, zeros

MOST_STEPS = 100_000  # of a while loop: more are taken for a loop that does not end


@meaning("cond")
def _cond(run: Run, eqn: Any, index: Values, *operands: Values) -> Any:
    branches = eqn.params["branches"]
    return run.program(branches[min(max(int(index), 0), len(branches) - 1)], operands)


@meaning("platform_index")
def _platform_index(run: Run, eqn: Any) -> Any:
    """The oracle runs where the CPU's programs do."""
    groups = eqn.params["platforms"]
    return np.asarray(next(i for i, group in enumerate(groups) if group is None or "cpu" in group))


@meaning("while")
def _while(run: Run, eqn: Any, *xs: Values) -> Any:
    p = eqn.params
    before = p["n_condition"] + p["n_body"]
    of_condition, of_body, state = xs[: p["n_condition"]], xs[p["n_condition"] : before], list(xs[before:])
    for _ in range(MOST_STEPS):
        if not run.program(p["condition"], [*of_condition, *state])[0]:
            return state
        state = run.program(p["body"], [*of_body, *state])
    raise RuntimeError(f"a loop of more than {MOST_STEPS} steps")


@meaning("linear_while")
def _linear_while(run: Run, eqn: Any, *xs: Values) -> Any:
    p = eqn.params
    n_states, n_consts, n_linear = p["n_states"], p["n_consts"], p["n_linear_consts"]
    first = 2 if n_states else 1
    at_hand = n_states if "saving" in p and p["saving"].trips is not None else 0
    state, rest = [x[0] for x in xs[first : first + n_states]], list(xs[first + n_states + at_hand :])
    consts, linear, tangents = rest[:n_consts], rest[n_consts : n_consts + n_linear], rest[n_consts + n_linear :]
    for _ in range(int(xs[0])):
        after = run.program(p["step"], [*consts, *state])
        tangents = run.program(p["linear"], [*after[n_states:], *linear, *tangents])
        state = after[:n_states]
    return tangents


@meaning("linear_scan")
def _linear_scan(run: Run, eqn: Any, *xs: Values) -> Any:
    """Go back from the last state for the residuals, and forwards with them."""
    p = eqn.params
    groups, first = [], 0
    for n in (*p["counts"], len(xs)):
        groups.append(list(xs[first : first + n]))
        first += n
    consts, state, elements, linear, tangents, linear_elements = groups
    steps = list(range(p["length"])[:: -1 if p["reverse"] else 1])
    residuals, rows = {}, {}
    for i in reversed(steps):
        outs = run.program(p["back"], [*consts, *state, *[x[i] for x in elements]])
        state, residuals[i] = outs[: len(state)], outs[len(state) :]
    for i in steps:
        outs = run.program(p["linear"], [*residuals[i], *linear, *tangents, *[x[i] for x in linear_elements]])
        tangents, rows[i] = outs[: len(tangents)], outs[len(tangents) :]
    avals = [v.aval for v in p["linear"].outvars[len(tangents) :]]
    return [*tangents, *_stacked([rows[i] for i in sorted(rows)], avals)]


@meaning("scan")
def _scan(run: Run, eqn: Any, *xs: Values) -> Any:
    p = eqn.params
    jaxpr, n_carry, length = p["jaxpr"], p["n_carry"], p["length"]
    before = p["n_consts"] + n_carry
    consts, state, rows = xs[: p["n_consts"]], list(xs[p["n_consts"] : before]), [[]] * length
    for i in range(length)[:: -1 if p["reverse"] else 1]:
        outs = run.program(jaxpr, [*consts, *state, *[x[i] for x in xs[before:]]])
        state, rows[i] = outs[:n_carry], outs[n_carry:]
    return [*state, *_stacked(rows, [v.aval for v in jaxpr.outvars[n_carry:]])]


def _stacked(rows: list[Any], avals: list[Any]) -> list[Values]:
    """What the steps gave, one after the other; of none the empty arrays."""
    if rows:
        return [np.stack(ys) for ys in zip(*rows)]
    return [zeros((0, *aval.shape), aval.dtype) for aval in avals]
