"""Dead operand and result elimination: drop the operands of bodies that no body reads, and the results nobody reads.

An unread operand would be computed, and be a residual in reverse mode; its cotangent is 0, and 0 times an infinite
residual is nan. A carry goes, with its result, if neither the result nor another live value of any step depends on it
(a liveness analysis). One that is only not read stays, as it is also a result: if there is a step, it starts as zero.
"""

from collections.abc import Mapping, Sequence

from tapeless.interpreters.simplifications.constant_values import is_zero
from tapeless.interpreters.writer import Writer, fill_array
from tapeless.tracer import core, dtypes, passes
from tapeless.tracer.bodies import CARRY, BackwardAnalysis, Bodies, Body, bodies_of, rebuild_equation, without
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, effects
from tapeless.tracer.linear_vars import linear_results


def remove_dead_operands(jaxpr: Jaxpr) -> Jaxpr:
    """Remove the operands and results of equations with bodies that are not read; the same object if there are none."""
    found = {eqn: bodies for eqn in jaxpr.carrying if (bodies := bodies_of(eqn)) is not None and not bodies.fixed}
    if not found:
        return jaxpr
    w, demanded = Writer(jaxpr), _demanded(jaxpr, found)
    for eqn in jaxpr.eqns:
        w.source = eqn.source
        now = _trimmed(w, eqn, found[eqn], demanded[_programs(found[eqn])]) if eqn in found else eqn
        w.changed |= now is not eqn
        w.keep(now)
    return w.finish()


Programs = tuple[Jaxpr, ...]


def _programs(bodies: Bodies) -> Programs:
    return tuple([body.jaxpr for body in bodies.each])


def _demanded(jaxpr: Jaxpr, found: Mapping[Equation, Bodies]) -> dict[Programs, list[bool]]:
    """Flag the results that some equation with these programs gives and that are read: they stay one function."""
    used, flags = passes.used_variables(jaxpr), dict[Programs, list[bool]]()
    for eqn, bodies in found.items():
        key, read = _programs(bodies), [v in used for v in eqn.outvars]
        flags[key] = [a or b for a, b in zip(flags.get(key, read), read, strict=True)]
    return flags


def _trimmed(w: Writer, eqn: Equation, bodies: Bodies, demanded: Sequence[bool]) -> Equation:
    now = _without_dead_operands(w, _without_dead_results(eqn, bodies, demanded))
    if now is eqn or list(linear_results(now)) == [v.linear for v in now.outvars]:
        return now
    return eqn  # a result would lose its linear mark


def _without_dead_results(eqn: Equation, bodies: Bodies, demanded: Sequence[bool]) -> Equation:
    if all(demanded) or effects(eqn):
        return eqn
    live = _LIVENESS.through(eqn, bodies, demanded).operands
    carries = [pair for body in bodies.each for pair in body.carries()]
    dead = {at for at, _ in carries if not live[at]}
    lasting = {out for at, out in carries if live[at]}
    gone = {out for out, yes in enumerate(demanded) if not yes} - lasting
    return rebuild_equation(eqn, [without(body, dead, gone) for body in bodies.each], eqn.invars) if gone else eqn


class _Liveness(BackwardAnalysis[bool]):
    """The backward analysis of which values are needed."""

    nothing = False

    def run(self, eqn: Equation, body: Body, demanded: Sequence[bool]) -> Sequence[bool]:
        return _needed(body.jaxpr, tuple(demanded))

    def join(self, x: bool, y: bool) -> bool:
        return x or y

    def test(self) -> bool:
        return True


_LIVENESS = _Liveness()


@core.memoize_by_program
def _needed(jaxpr: Jaxpr, demanded: tuple[bool, ...]) -> tuple[bool, ...]:
    """Flag the inputs that the flagged results depend on. Remembered for as long as the program lives."""
    _, needed = passes.live(jaxpr.eqns, [v for v, yes in zip(jaxpr.outvars, demanded, strict=True) if yes])
    return tuple([v in needed for v in jaxpr.invars])


def _without_dead_operands(w: Writer, eqn: Equation) -> Equation:
    bodies = bodies_of(eqn)
    if bodies is None or all(len(_read(body.jaxpr)) == len(body.ins) for body in bodies.each):
        return eqn
    read = {body.operands[k] for body in bodies.each for k in _read(body.jaxpr)}
    carried = set(bodies.operands(CARRY))
    zero = carried - read if bodies.steps else set[int]()
    operands = [_begun(w, x) if at in zero else x for at, x in enumerate(eqn.invars)]
    dropped = set(range(len(operands))) - read - carried - {bodies.selector}
    if dropped:
        return rebuild_equation(eqn, [without(body, dropped) for body in bodies.each], operands)
    return eqn if all(new is old for new, old in zip(operands, eqn.invars)) else eqn.replace(invars=operands)


def _begun(w: Writer, v: Atom) -> Atom:
    return v if is_zero(w, v) or not dtypes.is_inexact(v.aval.dtype) else fill_array(w, 0, v.aval)


@core.memoize_by_program
def _read(jaxpr: Jaxpr) -> tuple[int, ...]:
    """Return the positions of the inputs that a body reads. Remembered for as long as it lives."""
    used = passes.used_variables(jaxpr)
    return tuple([i for i, v in enumerate(jaxpr.invars) if v in used])
