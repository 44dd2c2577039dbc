"""Lowering of custom_linear_solve: a call of the solver's program."""

from collections.abc import Sequence
from typing import Any

from tapeless.lowering import dispatch, emit, ordering
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Atom, Equation, Var
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import linear_solve as c
from tapeless.tracer.types import aval_of


def _solver(operands: Sequence[Any], counts: Sequence[int]) -> list[Any]:
    """Pick the operands of the solver's program."""
    _, _, of_solve, _, b = split_list(operands, *counts)
    return [*of_solve, *b]


def _linear_solve(f: Function, outs: Any, *operands: Value, system: Any, counts: Any) -> Any:
    return emit.apply(f, c.System(*system).solve, _solver(operands, counts))


def _run_linear_solve(*operands: Any, system: Any, counts: Any) -> Any:
    c.linear_solve_p.type(tuple(map(aval_of, operands)), {"system": system, "counts": counts})
    return dispatch.run(c.System(*system).solve, _solver(operands, counts))


def _order_linear_solve(eqn: Equation, token: Atom, out: Var) -> Equation:
    """Thread the token through a call of the solver, the only program that runs."""
    solve = ordering.thread_effects(c.System(*eqn.params["system"]).solve)
    operands = _solver(eqn.invars, eqn.params["counts"])
    return Equation(call.jit_p, (token, *operands), {"jaxpr": solve}, (out, *eqn.outvars), eqn.source)


emit.rules[c.linear_solve_p] = _linear_solve
dispatch.inline[c.linear_solve_p] = _run_linear_solve
ordering.rules[c.linear_solve_p] = _order_linear_solve
