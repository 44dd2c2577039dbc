"""Order of effects: before a program is emitted, its ordered effects are chained by a token.

XLA keeps side effects, but not their order: the CPU starts one as soon as its operands are there, on whatever thread
is free. So an ordered callback takes one more operand, the token that the callback before returned, and returns it: a
data dependence, which every compiler respects. Loops carry the token, branches and calls pass it through.
See docs/decisions/0005-ordered-effects.md.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from tapeless.tracer import core
from tapeless.tracer.bodies import CARRY, CONST, TEST, VALUE, Bodies, Body, bodies_of, rebuild_equation, taking_first
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.jaxpr import ORDERED, Atom, Equation, Jaxpr, Literal, Var, effects, effects_of
from tapeless.tracer.rules import Rules
from tapeless.tracer.types import ShapedArray

TOKEN = ShapedArray((), np.dtype(np.int32))
rules: Final = Rules(
    "ordering",
    "rule(eqn, token, out) -> the equation with the token among its operands, `out` among its results",
    absent="the token goes through its bodies; without any, it has no ordered effect",
)


def in_order(jaxpr: Jaxpr) -> Jaxpr:
    """Chain the ordered effects of a program; return the program itself if it has none.

    Raises: NotImplementedError if a primitive that carries programs with ordered effects has no rule.
    """
    if ORDERED not in effects_of(jaxpr):
        return jaxpr
    eqns, _ = _chained(jaxpr.eqns, Literal(np.zeros((), np.int32)))
    return check_if_configured(jaxpr.replace(eqns=eqns))


@core.memoize_by_program
def thread_effects(jaxpr: Jaxpr) -> Jaxpr:
    """Chain the effects of a program from a token, its first input, to a token, its first result.

    Remembered for as long as `jaxpr` lives.
    """
    token = Var(TOKEN)
    eqns, last = _chained(jaxpr.eqns, token)
    return jaxpr.replace(invars=(token, *jaxpr.invars), eqns=eqns, outvars=(last, *jaxpr.outvars))


def _through_bodies(eqn: Equation, bodies: Bodies, token: Atom, out: Var) -> Equation:
    """Thread a token through the bodies of an equation; a loop carries it.

    Raises: NotImplementedError for an effect in the condition of a loop, whose only result is the predicate.
    """
    operand, result = (CARRY, CARRY) if bodies.loops else (CONST, VALUE)
    n, after = len(eqn.invars), list[Body]()
    for body in bodies.each:
        if TEST not in body.outs:
            taking = taking_first(body, thread_effects(body.jaxpr), [(n, operand)])
            results = (0, *[1 + at for at in body.results])
            after.append(taking._replace(outs=(result, *body.outs), results=results))
        elif ORDERED in effects_of(body.jaxpr):
            raise NotImplementedError(
                f"while_loop: an ordered callback in {body.jaxpr.name}, which decides whether the loop goes on.\n"
                "  Call it in the body of the loop, or with ordered=False."
            )
        else:
            after.append(body)
    return rebuild_equation(eqn, after, [*eqn.invars, token], (out, *eqn.outvars))


def _chained(eqns: Sequence[Equation], token: Atom) -> tuple[list[Equation], Atom]:
    """Thread `token` through the equations with ordered effects; return the equations and the last token."""
    chain: list[Equation] = []
    for eqn in eqns:
        if ORDERED in effects(eqn):
            out = Var(TOKEN)
            rule, bodies = rules.get(eqn.primitive), bodies_of(eqn)
            if rule is None and bodies is not None:
                eqn, token = _through_bodies(eqn, bodies, token, out), out
            else:
                eqn, token = rules[eqn.primitive](eqn, token, out), out
        chain.append(eqn)
    return chain, token
