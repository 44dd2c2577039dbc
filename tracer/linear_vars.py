"""Linearity inference: mark the variables that depend on linear inputs as linear, inside subjaxprs too.

A primitive that calls a program, its param `jaxpr`, has the linear results of that program; a primitive that uses
programs in other ways has a rule. All results of any other primitive are linear if an operand is.
"""

from collections.abc import Sequence
from typing import Any, Final

from tapeless.tracer import core
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var
from tapeless.tracer.rules import Rules

rules: Final = Rules(
    "linear variables",
    "rule(linear_in, **params) -> params whose programs have linear inputs, which results are linear",
    absent="every result is linear if an operand is; of a param `jaxpr`, the results that its program says",
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
        params, linear = _marked_equation(eqn, [v.linear for v in invars_of])
        outvars = [marked(v, is_linear) for v, is_linear in zip(eqn.outvars, linear, strict=True)]
        same = not new and params is eqn.params
        eqns.append(eqn if same else eqn.replace(invars=invars_of, params=params, outvars=outvars))
    return Jaxpr(invars, eqns, [renamed(v) for v in jaxpr.outvars], jaxpr.name)


def linear_results(eqn: Equation) -> Sequence[bool]:
    """Infer from the operands of an equation which of its results are linear."""
    return _marked_equation(eqn, [v.linear for v in eqn.invars])[1]


def marked(jaxpr: Jaxpr, linear_in: tuple[bool, ...]) -> Jaxpr:
    """Return `mark_linear` of a program, cached for as long as it lives: the same object every time."""
    if jaxpr.linear_in == linear_in:
        return jaxpr
    return _marked(jaxpr, linear_in)


def _call(linear_in: tuple[bool, ...], *, jaxpr: Jaxpr, **params: Any) -> tuple[dict[str, Any], list[bool]]:
    program = marked(jaxpr, linear_in)
    return {"jaxpr": program, **params}, [v.linear for v in program.outvars]


def _marked_equation(eqn: Equation, linear_in: list[bool]) -> tuple[dict[str, Any], Sequence[bool]]:
    if not any(linear_in):
        return eqn.params, [False] * len(eqn.outvars)
    rule = rules.get(eqn.primitive) or (_call if eqn.own_params.get("jaxpr") else None)
    return rule(tuple(linear_in), **eqn.params) if rule else (eqn.params, [True] * len(eqn.outvars))


_marked = core.remembered(mark_linear)
