"""Count the operations of a program by the user's line; those inside loops and branches by the lines of the bodies."""

from collections import Counter
from collections.abc import Iterator

from tapeless.interpreters.analysis import cost as counting
from tapeless.lowering.optimized_program import SourcePlace
from tapeless.tracer.bodies import bodies_of
from tapeless.tracer.jaxpr import Equation, Jaxpr, subjaxprs


def operations_by_line(jaxpr: Jaxpr) -> Counter[SourcePlace | None]:
    """Count the operations of a program, as `tl.cost` does, by the line that they come from; None where none is known.

    Of branches the dearest counts, of a `while` loop one step; values that nobody reads are of no line.
    """
    found = Counter[SourcePlace | None]()
    for eqn in jaxpr.eqns:
        found.update(_of_equation(eqn))
    found[None] += counting.work(jaxpr) - found.total()
    return found


def _of_equation(eqn: Equation) -> Counter[SourcePlace | None]:
    place = SourcePlace(eqn.source.file.replace("\\", "/"), eqn.source.line) if eqn.source else None
    found = Counter[SourcePlace | None]()
    for body, times in _programs_that_count(eqn):
        found.update({at: times * n for at, n in operations_by_line(body).items() if at})
    found[place] += counting.equation_cost(eqn).work - found.total()
    return found


def _programs_that_count(eqn: Equation) -> Iterator[tuple[Jaxpr, int]]:
    """Yield the programs that an equation carries, and how often they count in its cost."""
    bodies = bodies_of(eqn)
    if bodies is None:
        yield from ((program, 1) for program in subjaxprs(eqn.params))
    elif bodies.selector is not None:
        yield max([body.jaxpr for body in bodies.each], key=counting.work), 1
    else:
        yield from ((body.jaxpr, 1 if bodies.steps is None else len(bodies.steps)) for body in bodies.each)
