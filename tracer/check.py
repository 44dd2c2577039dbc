"""The type checker: programs must be well formed, well typed, and have linear variables marked as such."""

import weakref

from tapeless.tracer import linear_vars
from tapeless.tracer.errors import InternalError
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, subjaxprs
from tapeless.tracer.settings.config import config


def check(jaxpr: Jaxpr) -> Jaxpr:
    """Check a program and those inside it, each once, and return it.

    Raises: InternalError naming the equation, if a variable is read before it is bound, bound twice, of another
    type than its equation gives, or if a nonlinear result depends on a linear operand.
    """
    if jaxpr in _sound:
        return jaxpr
    bound: set[Var] = set()
    _bind(jaxpr.invars, bound, "the inputs")
    for eqn in jaxpr.eqns:
        _check_equation(eqn, bound)
        _bind(eqn.outvars, bound, eqn)
        for inner in subjaxprs(eqn.params):
            check(inner)
    _check_bound(jaxpr.outvars, bound, "the results")
    _sound.add(jaxpr)
    return jaxpr


_sound: weakref.WeakSet[Jaxpr] = weakref.WeakSet()  # programs do not change


def check_if_configured(jaxpr: Jaxpr) -> Jaxpr:
    """Return `jaxpr`, checked if `config.check_programs` is set."""
    return check(jaxpr) if config.check_programs else jaxpr


def _bind(variables: tuple[Var, ...], bound: set[Var], where: object) -> None:
    for v in variables:
        if v in bound:
            raise InternalError(f"{v} is bound twice, in {where}")
        bound.add(v)


def _check_bound(atoms: tuple[Atom, ...], bound: set[Var], where: object) -> None:
    for v in atoms:
        if isinstance(v, Var) and v not in bound:
            raise InternalError(f"{v} is read before it is bound, in {where}")


def _check_equation(eqn: Equation, bound: set[Var]) -> None:
    _check_bound(eqn.invars, bound, eqn)
    given = tuple(v.aval for v in eqn.outvars)
    typed = eqn.primitive.type(tuple(v.aval for v in eqn.invars), eqn.params)
    if given != typed:
        raise InternalError(f"{eqn!r} gives {typed}, not {given}")
    linear = linear_vars.linear_results(eqn)
    if [v.linear for v in eqn.outvars] != list(linear):
        raise InternalError(f"{eqn!r} is not honest about which of its results are linear")
