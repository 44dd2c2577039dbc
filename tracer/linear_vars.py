"""Linearity inference: mark the variables that depend on linear inputs as linear, inside subjaxprs too.

The linear results of an equation with bodies (`bodies.py`) are those of the bodies; a primitive that uses programs in
other ways has a rule. All results of any other primitive are linear if an operand is.
"""

from collections.abc import Sequence
from typing import Any, Final

from tapeless.tracer import core
from tapeless.tracer.bodies import Bodies, Body, ForwardAnalysis, bodies_of, with_programs
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var
from tapeless.tracer.rules import Rules

rules: Final = Rules(
    "linear variables",
    "rule(linear_in, **params) -> params whose programs have linear inputs, which results are linear",
    absent="the results of bodies that are described; else every result is linear if an operand is",
)


def mark_linear(jaxpr: Jaxpr, linear_in: Sequence[bool] | None = None) -> Jaxpr:
    """Mark the inputs flagged in `linear_in` (None: as they are) as linear, and all variables that depend on them."""
    new: dict[Var, Var] = {}

    def marked(v: Var, linear: bool) -> Var:
        if v.linear != linear:
            new[v] = Var(v.aval, linear)
        return new.get(v, v)

    def renamed(v: Any) -> Any:
        return new.get(v, v) if type(v) is Var else v

    invars = [marked(v, linear) for v, linear in zip(jaxpr.invars, linear_in or jaxpr.linear_in, strict=True)]
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        invars_of = [renamed(v) for v in eqn.invars]
        params, linear = marked_params(eqn, [v.linear for v in invars_of])
        outvars = [marked(v, is_linear) for v, is_linear in zip(eqn.outvars, linear, strict=True)]
        same = not new and params is eqn.params
        eqns.append(eqn if same else eqn.replace(invars=invars_of, params=params, outvars=outvars))
    return Jaxpr(invars, eqns, [renamed(v) for v in jaxpr.outvars], jaxpr.name)


def linear_results(eqn: Equation) -> Sequence[bool]:
    """Infer from the operands of an equation which of its results are linear."""
    return marked_params(eqn, [v.linear for v in eqn.invars])[1]


def mark_linear_cached(jaxpr: Jaxpr, linear_in: tuple[bool, ...]) -> Jaxpr:
    """Return `mark_linear` of a program, cached for as long as it lives: the same object every time."""
    if jaxpr.linear_in == linear_in:
        return jaxpr
    return _marked(jaxpr, linear_in)


def marked_params(eqn: Equation, linear_in: Sequence[bool]) -> tuple[dict[str, Any], Sequence[bool]]:
    """Mark the linear variables of programs in an equation's params; return the params, and flags of its results."""
    if not any(linear_in):
        return eqn.params, [False] * len(eqn.outvars)
    rule = rules.get(eqn.primitive)
    if rule is not None:
        return rule(tuple(linear_in), **eqn.params)
    found = bodies_of(eqn)
    return (eqn.params, [True] * len(eqn.outvars)) if found is None else _marked_bodies(eqn, found, linear_in)


def _marked_bodies(eqn: Equation, found: Bodies, linear_in: Sequence[bool]) -> tuple[dict[str, Any], Sequence[bool]]:
    marking = _Marking()
    outs = marking.through(eqn, found, linear_in)
    by_index = found.selector is not None and linear_in[found.selector]
    return with_programs(eqn, found, marking.programs), [by_index or linear for linear in outs]


class _Marking(ForwardAnalysis[bool]):
    """The forward analysis of whether values are linear; `programs` are the marked bodies."""

    def __init__(self) -> None:
        self.programs: list[Jaxpr] = []

    def run(self, eqn: Equation, body: Body, given: Sequence[bool]) -> list[bool]:
        return [v.linear for v in mark_linear_cached(body.jaxpr, tuple(given)).outvars]

    def join(self, eqn: Equation, x: bool, y: bool) -> bool:
        return x or y

    def count(self, eqn: Equation, body: Body, given: Sequence[bool], times: int) -> None:
        self.programs.append(mark_linear_cached(body.jaxpr, tuple(given)))


_marked = core.memoize_by_program(mark_linear)
