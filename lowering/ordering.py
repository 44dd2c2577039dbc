"""Order of effects: before a program is emitted, its ordered effects are chained by a token.

XLA keeps side effects, but not their order: the CPU starts one as soon as its operands are there, on whatever thread
is free. So an ordered callback takes one more operand, the token that the callback before returned, and returns it: a
data dependence, which every compiler respects. Loops carry the token, branches and calls pass it through.
See docs/decisions/0005-ordered-effects.md.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import core
from tapeless.tracer.check import checked
from tapeless.tracer.effects import ORDERED, effects, effects_of
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.rules import Rules
from tapeless.tracer.types import ShapedArray

TOKEN = ShapedArray((), np.dtype(np.int32))
rules: Final = Rules(
    "ordering",
    "rule(eqn, token, out) -> the equation with the token among its operands, `out` among its results",
    absent="it has no ordered effect",
)


def in_order(jaxpr: Jaxpr) -> Jaxpr:
    """Chain the ordered effects of a program; return the program itself if it has none.

    Raises: NotImplementedError if a primitive that carries programs with ordered effects has no rule.
    """
    if ORDERED not in effects_of(jaxpr):
        return jaxpr
    eqns, _ = _chained(jaxpr.eqns, Literal(np.zeros((), np.int32)))
    return checked(jaxpr.replace(eqns=eqns))


@core.remembered
def threaded(jaxpr: Jaxpr, at: int = 0) -> Jaxpr:
    """Chain the effects of a program from a token, its input at `at`, to a token, its first result.

    Remembered for as long as `jaxpr` lives.
    """
    token = Var(TOKEN)
    eqns, last = _chained(jaxpr.eqns, token)
    return jaxpr.replace(invars=with_token(jaxpr.invars, token, at), eqns=eqns, outvars=(last, *jaxpr.outvars))


def with_token(atoms: Sequence[Any], token: Atom, at: int) -> tuple[Any, ...]:
    """Insert the token among operands, at `at`."""
    return (*atoms[:at], token, *atoms[at:])


def call(eqn: Equation, token: Atom, out: Var) -> Equation:
    """Pass the token through a call of the param `jaxpr`: the rule of primitives that call a program."""
    params = {**eqn.params, "jaxpr": threaded(eqn.params["jaxpr"])}
    return eqn.replace(invars=(token, *eqn.invars), params=params, outvars=(out, *eqn.outvars))


def _chained(eqns: Sequence[Equation], token: Atom) -> tuple[list[Equation], Atom]:
    """Thread `token` through the equations with ordered effects; return the equations and the last token."""
    chain: list[Equation] = []
    for eqn in eqns:
        if ORDERED in effects(eqn):
            out = Var(TOKEN)
            eqn, token = rules[eqn.primitive](eqn, token, out), out
        chain.append(eqn)
    return chain, token
