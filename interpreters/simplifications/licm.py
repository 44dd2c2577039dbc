"""What a linear loop computes of constants alone is computed before it.

A part that is read of it then has a cotangent that is a part, too: of `x[::-1][i]` in a loop the reverse loop would
else add a whole array at every step.
"""

from collections.abc import Sequence

from tapeless.interpreters.simplify import Writer
from tapeless.tracer import core, passes
from tapeless.tracer.effects import effects
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives.control_flow import scan_p


def hoisted(jaxpr: Jaxpr) -> Jaxpr:
    """The pass."""
    w = Writer(jaxpr)
    for eqn in jaxpr.eqns:
        now = _lighter(w, eqn) if eqn.primitive is scan_p and eqn.linear else eqn
        w.changed |= now is not eqn
        w.keep(now)
    return w.finish()


def _lighter(w: Writer, eqn: Equation) -> Equation:
    """A loop without its invariant equations, which are written before it; their results are further constants."""
    jaxpr, n = eqn.params["jaxpr"], eqn.params["n_consts"]
    moved = _invariant(jaxpr, n)
    if not moved:
        return eqn
    before: dict[Atom, Atom] = dict(zip(jaxpr.invars[:n], eqn.invars[:n]))
    for inner in moved:
        outs = [Var(v.aval, v.linear) for v in inner.outvars]
        w.keep(inner.replace(invars=[before.get(v, v) for v in inner.invars], outvars=outs))
        before.update(zip(inner.outvars, outs))
    gone = set(moved)
    body = jaxpr.replace(eqns=[inner for inner in jaxpr.eqns if inner not in gone])
    read = passes.used_variables(body)
    shared = [v for inner in moved for v in inner.outvars if v in read]
    params = {**eqn.params, "jaxpr": body.replace(invars=[*shared, *jaxpr.invars]), "n_consts": n + len(shared)}
    return eqn.replace(params=params, invars=[*[before[v] for v in shared], *eqn.invars])


def _invariant(jaxpr: Jaxpr, n_consts: int) -> Sequence[Equation]:
    """Linear equations of a body that read nothing but constants, and make nothing that is larger. Remembered."""
    cache = _found.setdefault(jaxpr, {})
    if n_consts not in cache:
        fixed: set[Atom] = set(jaxpr.invars[:n_consts])
        moved: list[Equation] = []
        for eqn in jaxpr.eqns:
            constant = all(type(v) is Literal or v in fixed for v in eqn.invars)
            if constant and any(v.linear for v in eqn.invars) and not _grows(eqn) and not effects(eqn):
                moved.append(eqn)
                fixed.update(eqn.outvars)
        cache[n_consts] = tuple(moved)
    return cache[n_consts]


def _grows(eqn: Equation) -> bool:
    return sum(v.aval.size for v in eqn.outvars) > max(v.aval.size for v in eqn.invars)


_found = core.program_cache()
