"""Simplifications of a program that keep its inputs and its meaning: dead code, common subexpressions, forwarding."""

from collections.abc import Sequence
from typing import Any

from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var


def used_variables(jaxpr: Jaxpr) -> set[Var]:
    """Variables that some equation reads or that are results."""
    used = {v for v in jaxpr.outvars if type(v) is Var}
    for eqn in jaxpr.eqns:
        used.update(v for v in eqn.invars if type(v) is Var)
    return used


def dead_code(jaxpr: Jaxpr) -> Jaxpr:
    """Without the equations that no result needs."""
    needed = {v for v in jaxpr.outvars if type(v) is Var}
    kept: list[Equation] = []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars):
            kept.append(eqn)
            needed.update([v for v in eqn.invars if type(v) is Var])
    return jaxpr if len(kept) == len(jaxpr.eqns) else jaxpr.replace(eqns=kept[::-1])


def common_subexpressions(jaxpr: Jaxpr) -> Jaxpr:
    """With equations of equal right sides computed once. All primitives are pure."""
    seen: dict[Any, Sequence[Var]] = {}
    same: dict[Var, Atom] = {}
    kept: list[Equation] = []
    for eqn in jaxpr.eqns:
        invars = [same.get(v, v) if type(v) is Var else v for v in eqn.invars]
        key = (eqn.primitive, tuple(_key(v) for v in invars), tuple(eqn.params.items()))
        before = seen.setdefault(key, eqn.outvars)
        if before is eqn.outvars:
            kept.append(eqn.replace(invars=invars))
        else:
            same.update(zip(eqn.outvars, before, strict=True))
    outvars = [same.get(v, v) if type(v) is Var else v for v in jaxpr.outvars]
    return jaxpr.replace(eqns=kept, outvars=outvars)


def _key(atom: Atom) -> Any:
    return atom.key() if isinstance(atom, Literal) else atom


def forwarded_inputs(jaxpr: Jaxpr) -> tuple[int | None, ...]:
    """For every result that is simply an input: which one."""
    position = {v: i for i, v in enumerate(jaxpr.invars)}
    return tuple(position.get(v) if type(v) is Var else None for v in jaxpr.outvars)


def mark_linear(jaxpr: Jaxpr) -> Jaxpr:
    """With every variable that depends on a linear input marked linear; of a call, those its program says."""
    new: dict[Var, Var] = {}

    def renamed(v: Any) -> Any:
        return new.get(v, v) if type(v) is Var else v

    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        invars = [renamed(v) for v in eqn.invars]
        linear = linear_results(eqn, any(v.linear for v in invars))
        new.update((v, Var(v.aval, True)) for v, is_linear in zip(eqn.outvars, linear) if is_linear)
        eqns.append(eqn.replace(invars=invars, outvars=[renamed(v) for v in eqn.outvars]))
    return jaxpr.replace(eqns=eqns, outvars=[renamed(v) for v in jaxpr.outvars])


def linear_results(eqn: Equation, some: bool) -> Sequence[bool]:
    """Which results of an equation are linear, if some operand is: all, or those its program says."""
    if some and (inner := eqn.params.get("jaxpr")) is not None and any(v.linear for v in inner.invars):
        return [v.linear for v in inner.outvars]
    return [some] * len(eqn.outvars)


def with_linear_inputs(jaxpr: Jaxpr, positions: Sequence[int]) -> Jaxpr:
    """With the inputs at `positions` linear; `mark_linear` then tells what depends on them."""
    new = {jaxpr.invars[i]: Var(jaxpr.invars[i].aval, True) for i in positions}

    def renamed(v: Any) -> Any:
        return new.get(v, v) if type(v) is Var else v

    eqns = [eqn.replace(invars=[renamed(v) for v in eqn.invars]) for eqn in jaxpr.eqns]
    return Jaxpr([renamed(v) for v in jaxpr.invars], eqns, [renamed(v) for v in jaxpr.outvars], jaxpr.name)
