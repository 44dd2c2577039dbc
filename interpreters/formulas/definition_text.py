"""Definitions of let forms as text and LaTeX: sums of terms, and applications of primitives: `y1 = exp(y)`."""

from collections.abc import Callable
from typing import Any

from tapeless.interpreters.formulas.let_form import Computed, Definition
from tapeless.tracer.formulas.text import (
    EVERY,
    LARGEST,
    LATEX,
    PRODUCT_OF,
    SMALLEST,
    SOME,
    Notation,
    Operands,
    Reduction,
    equation,
    latex_name,
    reduction_equation,
)
from tapeless.tracer.jaxpr import Literal
from tapeless.tracer.primitives import reduction
from tapeless.tracer.primitives.elementwise import integer_pow_p, pow_p
from tapeless.tracer.primitives.opaque import derivative_name, opaque_p
from tapeless.tracer.rules import Table

_reductions: Table[Reduction] = Table("reductions in formulas", "its sign", absent="it prints by its name")
_reductions[reduction.reduce_or_p], _reductions[reduction.reduce_and_p] = SOME, EVERY
_reductions[reduction.reduce_max_p], _reductions[reduction.reduce_min_p] = LARGEST, SMALLEST
_reductions[reduction.reduce_prod_p] = PRODUCT_OF


def definition_text(name: str, d: Definition, operands: Operands, notation: Notation) -> str:
    """Write a definition as an equation."""
    if not isinstance(d.value, Computed):
        return equation(name, d.value, d.aval.shape, operands, notation)
    c = d.value
    how, operand = _reductions.get(c.primitive), c.operands[0] if c.operands else None
    if how is not None and isinstance(operand, int):
        return reduction_equation(name, how, operand, c.params["axes"], operands, notation)
    written = latex_name if notation.nabla == LATEX.nabla else str
    return f"{written(name)} = {application_text(d.value, operands, notation)}"


def application_text(c: Any, operands: Operands, notation: Notation) -> str:
    """Write an application of a primitive, or of an opaque function."""
    is_latex = notation.nabla == LATEX.nabla
    written: Callable[[str], str] = latex_name if is_latex else str
    given = [str(x.value) if isinstance(x, Literal) else written(operands.names[int(x)]) for x in c.operands]
    if c.primitive is opaque_p:
        name, ranks, orders = written(c.params["function"]), c.params["ranks"], c.params["orders"]
        return f"{derivative_name(name, ranks, orders, is_latex=is_latex)}({', '.join(given)})"
    if c.primitive in (pow_p, integer_pow_p):
        base, exponent = (*given, *map(str, c.params.values()))
        return notation.power(f"({base})" if base.startswith("-") else base, exponent)
    given += [f"{key}={value}" for key, value in c.params.items()]
    text = f"{written(c.primitive.name)}({', '.join(given)})"
    return text + (f"[{c.result}]" if c.result else "")
