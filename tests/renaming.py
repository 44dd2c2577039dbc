"""Programs with every variable replaced by a new one: what a transformation makes of them must not depend on which."""

from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, map_subjaxprs


def renamed(jaxpr: Jaxpr, seen: dict[Jaxpr, Jaxpr] | None = None) -> Jaxpr:
    """The same program of new variables, and so the programs inside; those that were one stay one."""
    seen = {} if seen is None else seen
    if jaxpr not in seen:
        seen[jaxpr] = _renamed(jaxpr, seen)
    return seen[jaxpr]


def _renamed(jaxpr: Jaxpr, seen: dict[Jaxpr, Jaxpr]) -> Jaxpr:
    new: dict[Var, Var] = {}

    def bound(v: Var) -> Var:
        return new.setdefault(v, Var(v.aval, v.linear))

    def read(v: Atom) -> Atom:
        return new[v] if isinstance(v, Var) else v

    invars = [bound(v) for v in jaxpr.invars]
    eqns = [
        Equation(
            eqn.primitive,
            [read(v) for v in eqn.invars],
            map_subjaxprs(lambda inner: renamed(inner, seen), eqn.params),
            [bound(v) for v in eqn.outvars],
            eqn.source,
        )
        for eqn in jaxpr.eqns
    ]
    return Jaxpr(invars, eqns, [read(v) for v in jaxpr.outvars], jaxpr.name)
