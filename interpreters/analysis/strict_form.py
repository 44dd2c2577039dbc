"""The strict form of programs, Linear A: fan-out and disposal are explicit.

In strict form every linear value is read exactly once: `dup` copies a value, `drop` disposes of one, `lzero` is the
zero of a type. `lit` names a literal, except the 0 of a select between a value and 0, which is a product with a mask.
Values that are not linear are shared freely, but unread ones are dropped, too. Programs in strict form are written,
checked, transformed (linear_a.py) and counted, not run.
Every step of a scan reads its constants, so a linear constant becomes a carry: each step copies it by `dup`, and it is
dropped after the last. Each branch takes all operands, and drops those that it does not use.
Source: Radul et al. 2023, section 3; scans and branches are ours. Left out: linear constants of `while`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from tapeless.interpreters import jvp
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.analysis.linearity import Fact, linear_operands
from tapeless.tracer import core
from tapeless.tracer.bodies import CARRY, CONST, Body, bodies_of, rebuild_equation
from tapeless.tracer.core import Primitive, TypingRule
from tapeless.tracer.errors import InternalError
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, map_subjaxprs
from tapeless.tracer.primitives.elementwise import select_n_p
from tapeless.tracer.source import Source
from tapeless.tracer.types import ShapedArray


class StrictPrimitive(Primitive):
    """An operation of programs in strict form: it is written, checked and counted, but never applied."""

    __slots__ = ()

    def __init__(self, name: str, typing_rule: TypingRule) -> None:  # unregistered: other tables need no rules for it
        super().__init__(name, typing_rule, registered=False)


def _no_types(*avals: ShapedArray) -> tuple[ShapedArray, ...]:
    raise InternalError("an lzero is of the type that is written")


lit: Final = StrictPrimitive("lit", lambda x: (x,))
lzero: Final = StrictPrimitive("lzero", _no_types)
dup: Final = StrictPrimitive("dup", lambda x: (x, x))
drop: Final = StrictPrimitive("drop", lambda x: ())
linearity.rules[lit] = lambda check, eqn, facts: facts
linearity.rules[lzero] = lambda check, eqn, facts: (Fact.ZERO,)
linearity.rules[dup] = lambda check, eqn, facts: facts * 2
linearity.rules[drop] = lambda check, eqn, facts: ()


def strict_form(jaxpr: Jaxpr, zero_in: Sequence[bool] = (), linear_out: Sequence[bool] | None = None) -> Jaxpr:
    """Rewrite a program, and its bodies, in strict form. Its linear values must be marked.

    Args:
      zero_in: which of its first inputs are known to be zero.
      linear_out: which results are linear, zeros among them included; if None, all if there are linear inputs.
    Raises: LinearityError if it is not linear in its linear inputs.
    """
    flags = [any(jaxpr.linear_in)] * len(jaxpr.outvars) if linear_out is None else linear_out
    return _with_dups_and_drops(_with_literals_named(_with_linear_zeros(jaxpr, zero_in, flags)))


class StrictBuilder:
    """A builder of strict programs: collects equations."""

    def __init__(self) -> None:
        self.eqns: list[Equation] = []

    def write(self, primitive: Primitive, invars: Sequence[Atom], like: Iterable[Atom], source: Any) -> list[Var]:
        """Append an equation with results of the types of `like`; return the results."""
        outvars = [Var(v.aval, v.linear) for v in like]
        self.eqns.append(Equation(primitive, invars, {}, outvars, source))
        return outvars

    def zero(self, like: Atom, source: Source | None = None) -> Var:
        """Append an `lzero` of the tangent type of a value; return it."""
        return self.write(lzero, [], [Var(like.aval.tangent(), True)], source)[0]

    def inline(self, jaxpr: Jaxpr, args: Sequence[Atom], source: Source | None) -> list[Atom]:
        """Append the equations of a program for these operands; return its results."""
        env: dict[Var, Atom] = dict(zip(jaxpr.invars, args, strict=True))
        for eqn in jaxpr.eqns:
            outvars = [Var(v.aval, v.linear) for v in eqn.outvars]
            self.eqns.append(eqn.replace(invars=[look_up(v, env) for v in eqn.invars], outvars=outvars, source=source))
            env.update(zip(eqn.outvars, outvars))
        return [look_up(v, env) for v in jaxpr.outvars]


def _with_linear_zeros(jaxpr: Jaxpr, zero_in: Sequence[bool], linear_out: Sequence[bool]) -> Jaxpr:
    """Rewrite a program so that every zero among its linear operands and results is made by an `lzero`."""
    env = linearity.facts_of_variables(jaxpr, zero_in)
    to = StrictBuilder()
    for eqn in jaxpr.eqns:
        joint = _linear_positions(eqn) if eqn.linear else ()
        invars = [_zero_or(v, to, env, eqn.source) if k in joint else v for k, v in enumerate(eqn.invars)]
        carried = with_constants_carried(eqn.replace(invars=invars))
        to.eqns.append(carried.replace(params=_with_strict_programs(carried)))
    outvars = [_zero_or(v, to, env, None) if yes else v for v, yes in zip(jaxpr.outvars, linear_out, strict=True)]
    return _without_replaced(jaxpr.replace(eqns=to.eqns, outvars=outvars), _readings(jaxpr))


def _linear_positions(eqn: Equation) -> Sequence[int]:
    """Return the positions of operands that must all be linear if one is; of bodies, those linear in one of them."""
    bodies = bodies_of(eqn)
    if bodies is not None and (bodies.loops or bodies.selector is not None):
        each = [pair for body in bodies.each for pair in zip(body.operands, body.jaxpr.linear_in, strict=True)]
        return sorted({at for at, linear in each if linear})
    is_product = jvp.structurally_linear.get(eqn.primitive) is jvp.All.SEPARATELY
    is_product |= eqn.primitive is select_n_p  # a select between a value and zero is a product with a mask
    return () if is_product else linear_operands(eqn)


def with_constants_carried(eqn: Equation) -> Equation:
    """Turn the linear constants of a loop, which all steps read, into carries; other equations stay as they are."""
    bodies = bodies_of(eqn)
    body = None if bodies is None else bodies.loop_body
    if body is None:
        return eqn
    moved = [k for k in body.inputs(CONST) if eqn.invars[body.operands[k]].linear]
    if not moved:
        return eqn
    n, carried = len(moved), [body.jaxpr.invars[k] for k in moved]
    new = Body(
        body.jaxpr.replace(outvars=[*carried, *body.jaxpr.outvars]),
        tuple([CARRY if k in moved else role for k, role in enumerate(body.ins)]),
        body.operands,
        (*[CARRY] * n, *body.outs),
        (*range(n), *[n + at for at in body.results]),
    )
    return rebuild_equation(eqn, [new], eqn.invars, [*[Var(v.aval, True) for v in carried], *eqn.outvars])


def _zero_or(v: Atom, to: StrictBuilder, env: dict[Any, Any], source: Source | None) -> Atom:
    is_zero = not v.linear and linearity.fact_of(v, env) is Fact.ZERO
    return to.zero(v, source) if is_zero else v


def _without_replaced(jaxpr: Jaxpr, before: Counter[Atom]) -> Jaxpr:
    """Drop nonlinear equations whose results were read `before` and no longer are: an `lzero` took their place."""
    now, kept = Counter(jaxpr.outvars), list[Equation]()
    for eqn in reversed(jaxpr.eqns):
        replaced = not eqn.linear and any(before[v] for v in eqn.outvars) and not any(now[v] for v in eqn.outvars)
        if not replaced:
            kept.append(eqn)
            now.update(eqn.invars)
    return jaxpr.replace(eqns=kept[::-1])


def _readings(jaxpr: Jaxpr) -> Counter[Atom]:
    """Count the reads of every value, by equations and as a result."""
    found = Counter([v for eqn in jaxpr.eqns for v in eqn.invars])
    found.update(jaxpr.outvars)
    return found


def _with_literals_named(jaxpr: Jaxpr) -> Jaxpr:
    to = StrictBuilder()

    def named(v: Atom, source: Source | None) -> Atom:
        return to.write(lit, [v], [v], source)[0] if isinstance(v, Literal) else v

    for eqn in jaxpr.eqns:
        is_mask = eqn.linear and eqn.primitive is select_n_p  # its zero with a name would be a residual
        given = eqn.invars if is_mask or eqn.primitive is lit else [named(v, eqn.source) for v in eqn.invars]
        to.eqns.append(eqn.replace(invars=given))
    return Jaxpr(jaxpr.invars, to.eqns, [named(v, None) for v in jaxpr.outvars], jaxpr.name)


def _with_strict_programs(eqn: Equation) -> dict[str, Any]:
    linear_out = tuple([v.linear for v in eqn.outvars])
    return map_subjaxprs(partial(_strict_inside, linear_out=linear_out), eqn.params)


def _strict_inside(jaxpr: Jaxpr, linear_out: tuple[bool, ...]) -> Jaxpr:
    """Rewrite a body in strict form; the same object for the same body and `linear_out`, however often it is called.

    As the whole program is linear, a nonlinear input among linear operands in the body can only be a zero.
    """
    if len(linear_out) != len(jaxpr.outvars):  # the condition of a loop
        linear_out = tuple([v.linear for v in jaxpr.outvars])
    cache = _inside.setdefault(jaxpr, {})
    if linear_out not in cache:
        cache[linear_out] = strict_form(jaxpr, [True] * len(jaxpr.invars), linear_out)
    return cache[linear_out]


def _with_dups_and_drops(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite a program so that every linear value is read once: `dup` copies values, and `drop` takes unread ones."""
    reads, to = _readings(jaxpr), StrictBuilder()
    copies: dict[Atom, list[Var]] = {}

    def made(v: Var, source: Source | None) -> None:
        if not reads[v]:
            to.write(drop, [v], [], source)
        elif v.linear:
            copies[v] = rest = [v]
            while len(rest) < reads[v]:
                rest += to.write(dup, [rest.pop()], [v, v], source)

    def copy(v: Atom) -> Atom:
        return copies[v].pop(0) if v in copies else v

    for v in jaxpr.invars:
        made(v, None)
    for eqn in jaxpr.eqns:
        to.eqns.append(eqn.replace(invars=[copy(v) for v in eqn.invars]))
        for v in eqn.outvars:
            made(v, eqn.source)
    return jaxpr.replace(eqns=to.eqns, outvars=[copy(v) for v in jaxpr.outvars])


def look_up(v: Atom, env: dict[Var, Atom]) -> Atom:
    """Look up the atom of a variable in `env`; a literal stands for itself."""
    return env[v] if isinstance(v, Var) else v


_inside = core.program_cache()
