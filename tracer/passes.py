"""Simplifications of a program that keep its inputs and its meaning: dead code, common subexpressions, forwarding."""

from collections.abc import Sequence
from typing import Any

from tapeless.tracer import core
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


def mark_linear(jaxpr: Jaxpr, linear_in: Sequence[bool] | None = None) -> Jaxpr:
    """With the inputs `linear_in` linear (as they are, if None), and all that depends on them, inside calls too."""
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
        eqn = _with_marked_program(eqn.replace(invars=[renamed(v) for v in eqn.invars]))
        linear = linear_results(eqn, any(v.linear for v in eqn.invars))
        eqns.append(eqn.replace(outvars=[marked(v, is_linear) for v, is_linear in zip(eqn.outvars, linear)]))
    return Jaxpr(invars, eqns, [renamed(v) for v in jaxpr.outvars], jaxpr.name)


def linear_results(eqn: Equation, some: bool) -> Sequence[bool]:
    """Which results of an equation are linear, if some operand is: all, or those its program says."""
    if some and (inner := eqn.params.get("jaxpr")) is not None and any(v.linear for v in inner.invars):
        return [v.linear for v in inner.outvars]
    return [some] * len(eqn.outvars)


def _with_marked_program(eqn: Equation) -> Equation:
    """A call whose program has the linear inputs that the call has linear operands."""
    inner, linear_in = eqn.params.get("jaxpr"), tuple([v.linear for v in eqn.invars])
    if inner is None or not any(linear_in) or inner.linear_in == linear_in:
        return eqn
    cache = _marked.setdefault(inner, {})
    if linear_in not in cache:
        cache[linear_in] = mark_linear(inner, linear_in)
    return eqn.replace(params={**eqn.params, "jaxpr": cache[linear_in]})


_marked = core.program_cache()
