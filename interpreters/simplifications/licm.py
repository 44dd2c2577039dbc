"""Loop-invariant code motion (hoisting) for linear loops: equations that depend on constants alone go before the loop.

The pass moves linear equations, and the primal ones that these depend on. Rules of users that need not be linear, or
have effects, stay: a cotangent that is clipped at every step is not clipped once. If the loop reads only a part of a
moved result, its cotangent per step is a part, too: for `x[::-1][i]` the reverse loop would otherwise add a whole array
at every step. In primal loops, residuals/locations.py moves the equations that residuals need, XLA the others.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from tapeless.interpreters import transpose
from tapeless.interpreters.writer import Writer
from tapeless.tracer import core, passes
from tapeless.tracer.bodies import CONST, Bodies, bodies_of, rebuild_equation, taking_first
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, effects
from tapeless.tracer.primitives.custom import is_unchecked


def hoist_invariants(jaxpr: Jaxpr) -> Jaxpr:
    """Move invariant linear equations of each linear loop before it; the same object if there are none."""
    linear = {eqn: bodies for eqn in jaxpr.carrying if eqn.linear and (bodies := bodies_of(eqn)) is not None}
    loops = {eqn: bodies for eqn, bodies in linear.items() if bodies.steps is not None and bodies.loops}
    if not loops:
        return jaxpr
    w = Writer(jaxpr)
    for eqn in jaxpr.eqns:
        now = _lighter(w, eqn, loops[eqn]) if eqn in loops else eqn
        w.changed |= now is not eqn
        w.keep(now)
    return w.finish()


def invariant(body: Jaxpr, constants: Iterable[int], may_move: Callable[[Equation], bool]) -> Sequence[Equation]:
    """List the equations of a body that depend only on its inputs with the numbers `constants`, if `may_move` accepts.

    The equations that they depend on are accepted, too, and none has effects.
    """
    fixed: set[Atom] = {body.invars[k] for k in constants}
    moved: list[Equation] = []
    for eqn in body.eqns:
        constant = all(type(v) is Literal or v in fixed for v in eqn.invars)
        if constant and may_move(eqn) and not effects(eqn):
            moved.append(eqn)
            fixed.update(eqn.outvars)
    return moved


def without(body: Jaxpr, moved: Collection[Equation]) -> tuple[Jaxpr, list[Var]]:
    """Remove equations from a body: those of their results that it still reads become inputs before its own.

    Returns: the body, and the variables of its new inputs.
    """
    gone = set(moved)
    left = body.replace(eqns=[eqn for eqn in body.eqns if eqn not in gone])
    read = passes.used_variables(left)
    shared = [v for eqn in moved for v in eqn.outvars if v in read]
    return left.replace(invars=[*shared, *body.invars]), shared


def _lighter(w: Writer, eqn: Equation, bodies: Bodies) -> Equation:
    """Write the invariant linear equations of a loop before it; their results become constants of the returned loop."""
    (loop,) = bodies.each
    jaxpr, constants = loop.jaxpr, loop.inputs(CONST)
    moved = _of_linear(jaxpr, tuple(constants))
    if not moved:
        return eqn
    before: dict[Atom, Atom] = {jaxpr.invars[k]: eqn.invars[loop.operands[k]] for k in constants}
    for inner in moved:
        outs = [Var(v.aval, v.linear) for v in inner.outvars]
        w.keep(inner.replace(invars=[before.get(v, v) for v in inner.invars], outvars=outs))
        before.update(zip(inner.outvars, outs))
    program, shared = without(jaxpr, moved)
    operands, n = [*eqn.invars, *[before[v] for v in shared]], len(eqn.invars)
    return rebuild_equation(eqn, [taking_first(loop, program, [(n + k, CONST) for k in range(len(shared))])], operands)


@core.memoize_by_program
def _of_linear(jaxpr: Jaxpr, constants: tuple[int, ...]) -> Sequence[Equation]:
    """List the invariant equations to move: linear ones whose results are no larger than an operand, or read in parts.

    The primal equations that these depend on are included. Remembered for as long as `jaxpr` lives.
    """
    stay: set[Equation] = set()
    larger: list[Equation] = []

    def may_move(eqn: Equation) -> bool:
        if not _has_linear_operand(eqn):
            return True
        if eqn in stay or is_unchecked(eqn):
            return False
        if _grows(eqn):
            larger.append(eqn)
        return True

    moved = invariant(jaxpr, constants, may_move)
    while larger and (heavy := _read_whole(jaxpr, moved, larger)):
        stay.update(heavy)
        larger.clear()
        moved = invariant(jaxpr, constants, may_move)
    needed: set[Atom] = {v for eqn in moved if _has_linear_operand(eqn) for v in (*eqn.invars, *eqn.outvars)}
    return needed_for(moved, needed)


def _read_whole(jaxpr: Jaxpr, moved: Sequence[Equation], larger: Iterable[Equation]) -> list[Equation]:
    """Select those of the `larger` equations of which a body would read, at every step, more than their operands.

    They are among the `moved` ones. What the rest of the body reads only parts of does not count.
    """
    gone = set(moved)
    read: dict[Atom, int] = {v: v.aval.size for v in jaxpr.outvars}  # of results that depend on it, the largest one
    for eqn in jaxpr.eqns:
        if eqn not in gone:
            read.update({v: v.aval.size for v in eqn.invars[_reads_part(eqn) :]})
    for eqn in reversed(moved):
        most = max((read.get(v, 0) for v in eqn.outvars), default=0)
        read.update({v: max(most, read.get(v, 0)) for v in eqn.invars})
    return [eqn for eqn in larger if max(read.get(v, 0) for v in eqn.outvars) > max(v.aval.size for v in eqn.invars)]


def _reads_part(eqn: Equation) -> bool:
    rule = transpose.rules.get(eqn.primitive)
    if not isinstance(rule, transpose.ReadingPart):
        return False
    return sum(v.aval.size for v in eqn.outvars) < eqn.invars[0].aval.size


def needed_for(eqns: Sequence[Equation], wanted: Collection[Atom]) -> list[Equation]:
    """Select the equations that the `wanted` variables depend on, in order."""
    needed = set(wanted)
    found: list[Equation] = []
    for eqn in reversed(eqns):
        if not needed.isdisjoint(eqn.outvars):
            found.append(eqn)
            needed.update(eqn.invars)
    return found[::-1]


def _has_linear_operand(eqn: Equation) -> bool:
    return any(v.linear for v in eqn.invars)


def _grows(eqn: Equation) -> bool:
    return sum(v.aval.size for v in eqn.outvars) > max(v.aval.size for v in eqn.invars)
