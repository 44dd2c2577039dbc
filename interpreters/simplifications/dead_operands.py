"""Dead operand elimination (dead argument elimination): drop operands of calls, branches and scans that no body reads.

An unread operand would be computed, and be a residual in reverse mode; its cotangent is 0, and 0 times an infinite
residual is nan.
"""

from collections.abc import Sequence
from typing import Final

from tapeless.interpreters.simplifications.constants import is_zero
from tapeless.interpreters.simplify import Writer, filled
from tapeless.tracer import core, dtypes, passes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, map_subjaxprs, subjaxprs
from tapeless.tracer.linear_vars import linear_results
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.checkpoint import checkpoint_p
from tapeless.tracer.primitives.control_flow import cond_p, scan_p
from tapeless.tracer.rules import Rules


def remove_dead_operands(jaxpr: Jaxpr) -> Jaxpr:
    """Remove the operands of jit, checkpoint, cond and scan that their bodies do not read; the same object if none."""
    calls = {eqn for eqn in jaxpr.carrying if eqn.primitive in rules}
    if not calls:
        return jaxpr
    w = Writer(jaxpr)
    for eqn in jaxpr.eqns:
        w.place = eqn.source
        now = _trimmed(w, eqn) if eqn in calls else eqn
        w.changed |= now is not eqn
        w.keep(now)
    return w.finish()


def _trimmed(w: Writer, eqn: Equation) -> Equation:
    now = rules[eqn.primitive](w, eqn)
    if now is eqn or list(linear_results(now)) == [v.linear for v in eqn.outvars]:
        return now
    return eqn  # a result would lose its linear mark


rules: Final = Rules(
    "dead operands",
    "rule(writer, eqn) -> the equation without the operands that its programs do not read",
    absent="all of its operands are computed",
)


def _call(w: Writer, eqn: Equation) -> Equation:
    """Drop the operands of a call that its body does not read, or of a conditional that no branch reads."""
    programs = list(subjaxprs(eqn.params))
    first = len(eqn.invars) - len(programs[0].invars)  # after the index of the branch
    kept = sorted({i for program in programs for i in _read(program)})
    if len(kept) == len(programs[0].invars):
        return eqn
    params = map_subjaxprs(lambda program: _of(program, kept), eqn.params)
    return eqn.replace(params=params, invars=[*eqn.invars[:first], *[eqn.invars[first + i] for i in kept]])


def _scan(w: Writer, eqn: Equation) -> Equation:
    """Drop unread consts and xs of a scan. An unread carry stays, as it is also a result: it starts as zero instead."""
    jaxpr, n_consts, n_carry, length = (eqn.params[name] for name in ("jaxpr", "n_consts", "n_carry", "length"))
    read, carried = _read(jaxpr), range(n_consts, n_consts + n_carry)
    begun = [_begun(w, v) if length and i in carried and i not in read else v for i, v in enumerate(eqn.invars)]
    kept = sorted({*read, *carried})
    if len(kept) == len(begun) and all(new is old for new, old in zip(begun, eqn.invars)):
        return eqn
    params = {**eqn.params, "jaxpr": _of(jaxpr, kept), "n_consts": sum(i < n_consts for i in kept)}
    return eqn.replace(params=params, invars=[begun[i] for i in kept])


def _begun(w: Writer, v: Atom) -> Atom:
    return v if is_zero(w, v) or not dtypes.is_inexact(v.aval.dtype) else filled(w, 0, v.aval)


def _of(jaxpr: Jaxpr, kept: Sequence[int]) -> Jaxpr:
    return passes.rearranged(jaxpr, kept, range(len(jaxpr.outvars)))


@core.remembered
def _read(jaxpr: Jaxpr) -> tuple[int, ...]:
    """Return the positions of the inputs that a body reads. Remembered for as long as it lives."""
    used = passes.used_variables(jaxpr)
    return tuple([i for i, v in enumerate(jaxpr.invars) if v in used])


rules[jit_p] = rules[checkpoint_p] = rules[cond_p] = _call
rules[scan_p] = _scan
