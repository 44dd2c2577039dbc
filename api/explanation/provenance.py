"""Provenance of equations across transformations, by the source lines that they carry.

Transforms run the rule of an equation under its line, so that what the rule builds has that line. A mark is a line that
also knows its equation: of a program whose lines are marks, every program that is derived says equation by equation
what it is made from, however it was simplified since.
"""

from typing import Final

from tapeless.tracer.jaxpr import Equation, Jaxpr, map_subjaxprs
from tapeless.tracer.source import Source


class Mark(Source):
    """The place of an equation, and the equation."""

    __slots__ = ("equation",)

    def __init__(self, place: Source, equation: Equation) -> None:
        super().__init__(place.code, place.instruction)
        self.equation: Final = equation


def marked(jaxpr: Jaxpr, known: dict[Jaxpr, Jaxpr] | None = None) -> Jaxpr:
    """Mark the equations of a program, and of the programs it carries, so that provenance can be told.

    Args:
      known: programs that were marked already, which stay shared.
    """
    known = {} if known is None else known
    if jaxpr not in known:
        known[jaxpr] = jaxpr.replace(eqns=[_marked_equation(eqn, known) for eqn in jaxpr.eqns])
    return known[jaxpr]


def made_from(eqn: Equation) -> Equation | None:
    """Return the equation of a marked program that `eqn` was made from, if its source line says so."""
    return eqn.source.equation if isinstance(eqn.source, Mark) else None


def _marked_equation(eqn: Equation, known: dict[Jaxpr, Jaxpr]) -> Equation:
    params = map_subjaxprs(lambda inner: marked(inner, known), eqn.params)
    return eqn.replace(params=params, source=Mark(eqn.source, eqn) if eqn.source else None)
