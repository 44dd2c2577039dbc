"""Passes of the simplifier over a linearized program: primal and linear equations as written, and after each pass."""

from typing import NamedTuple

from tapeless.differentiate.residuals import differentiated
from tapeless.interpreters import partial_eval, simplify
from tapeless.interpreters.jvp import jvp_jaxpr
from tapeless.interpreters.simplify import AfterPass
from tapeless.tracer.jaxpr import ClosedJaxpr
from tapeless.tracer.terms.limits import Stop, noted


class Passes(tuple[AfterPass, ...]):
    """Pairs `(name, program)` in order, the first "as written"; prints all of them.

    A pass that changes nothing has no pair. One that runs again, because another left it something, has several.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "\n\n".join([f"{stage.name}\n{stage.program}" for stage in self])

    __repr__ = __str__


class PassedLimits(tuple[Stop, ...]):
    """The limits of the simplifier that stopped something, each with the source line of that; prints all of them."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no limit stopped anything"

    __repr__ = __str__


class Simplifying(NamedTuple):
    """The passes over a program, and the limits that stopped them."""

    passes: Passes
    limits: PassedLimits


def simplifying(closed: ClosedJaxpr) -> Simplifying:
    """Linearize a program in all inexact inputs, and simplify it step by step, before it is cut in two."""
    program, _, _ = jvp_jaxpr(closed.jaxpr, differentiated(closed))
    written = partial_eval.with_linear_equations(program, program.linear_in)
    with noted() as stopped:
        passes = Passes([AfterPass("as written", written), *simplify.after_passes(written)])
    return Simplifying(passes, PassedLimits(stopped))
