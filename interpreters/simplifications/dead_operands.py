"""Dead operand elimination (dead argument elimination): drop operands of calls, branches and loops that no body reads.

An unread operand would be computed, and be a residual in reverse mode; its cotangent is 0, and 0 times an infinite
residual is nan. An unread carry stays, as it is also a result: if there is a step, it starts as zero instead.
"""

from tapeless.interpreters.simplifications.constants import is_zero
from tapeless.interpreters.simplify import Writer, filled
from tapeless.tracer import core, dtypes, passes
from tapeless.tracer.bodies import CARRY, Bodies, bodies_of, without_operands
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr
from tapeless.tracer.linear_vars import linear_results


def remove_dead_operands(jaxpr: Jaxpr) -> Jaxpr:
    """Remove the operands of equations with bodies that no body reads; the same object if there are none."""
    found = {eqn: bodies for eqn in jaxpr.carrying if (bodies := bodies_of(eqn)) is not None and not bodies.fixed}
    if not found:
        return jaxpr
    w = Writer(jaxpr)
    for eqn in jaxpr.eqns:
        w.place = eqn.source
        now = _trimmed(w, eqn, found[eqn]) if eqn in found else eqn
        w.changed |= now is not eqn
        w.keep(now)
    return w.finish()


def _trimmed(w: Writer, eqn: Equation, bodies: Bodies) -> Equation:
    now = _without_dead_operands(w, eqn, bodies)
    if now is eqn or list(linear_results(now)) == [v.linear for v in eqn.outvars]:
        return now
    return eqn  # a result would lose its linear mark


def _without_dead_operands(w: Writer, eqn: Equation, bodies: Bodies) -> Equation:
    read = {body.operands[k] for body in bodies.each for k in _read(body.jaxpr)}
    carried = set(bodies.operands(CARRY))
    zero = carried - read if bodies.steps else set[int]()
    operands = [_begun(w, x) if at in zero else x for at, x in enumerate(eqn.invars)]
    dropped = set(range(len(operands))) - read - carried - {bodies.index}
    if dropped:
        return without_operands(eqn, dropped, operands)
    return eqn if all(new is old for new, old in zip(operands, eqn.invars)) else eqn.replace(invars=operands)


def _begun(w: Writer, v: Atom) -> Atom:
    return v if is_zero(w, v) or not dtypes.is_inexact(v.aval.dtype) else filled(w, 0, v.aval)


@core.remembered
def _read(jaxpr: Jaxpr) -> tuple[int, ...]:
    """Return the positions of the inputs that a body reads. Remembered for as long as it lives."""
    used = passes.used_variables(jaxpr)
    return tuple([i for i, v in enumerate(jaxpr.invars) if v in used])
