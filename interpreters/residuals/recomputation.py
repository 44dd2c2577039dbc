"""Residuals within a number of bytes: save the values for which the fewest operations are computed again.

A half that is no derivative reads its residuals at once, so that what is live is their sum. For a price of a byte, in
operations, the best choice is a minimum cut: an equation is done again at the price of its operations, or its results
are saved at that of their bytes. The price is searched for which the bytes fit (Lagrangian relaxation), and what they
leave is filled with single values. Optimal on the lower convex hull of bytes against operations.
Left out: parts of loops, branches and calls, which are done again as a whole.
Source: Lawler 1976, "Combinatorial optimization", chapter 4, for selection by minimum cuts; Everett 1963.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tapeless.interpreters.analysis.cost import equation_cost
from tapeless.interpreters.residuals import cut, rematerialization
from tapeless.interpreters.residuals.budget import Budget
from tapeless.interpreters.residuals.rematerialization import RematerializationPlan
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, effects


def within(budget: Budget, known: Jaxpr, n: int) -> RematerializationPlan:
    """Choose the values of a program to save, of at most so many bytes, and the equations that compute its last `n`
    results from them.

    A part limits to that part of the bytes of these results; 0 asks for the fewest bytes.
    Raises: ValueError naming the fewest bytes and the largest value if the limit cannot be kept.
    """
    wanted = known.outvars[len(known.outvars) - n :]
    choices = _Choices(known, wanted)
    most = choices.saving([v for v in wanted if type(v) is Var])
    limit = int(budget.limit * most.nbytes) if isinstance(budget.limit, float) else budget.limit
    if most.nbytes <= limit:
        return most.plan
    fewest = choices.cheapest(choices.operations + 1, 1)
    if fewest.nbytes > limit > 0:
        raise ValueError(_cannot_be_met(budget, limit, fewest))
    return fewest.plan if not limit else choices.filled(choices.on_hull(most, fewest, limit), limit).plan


class _Choice(NamedTuple):
    """A choice of saved values: their bytes, the operations that are computed again, and the plan."""

    nbytes: int
    operations: int
    plan: RematerializationPlan


class _Choices:
    """The choices of what to save of a program, so that some `wanted` values can be computed again.

    operations: those of all equations that they depend on.
    """

    def __init__(self, known: Jaxpr, wanted: Sequence[Atom]) -> None:
        self._known, self._wanted = known, wanted
        self._values = dict.fromkeys([v for v in wanted if type(v) is Var])
        again = list[Equation]()
        for eqn in reversed(known.eqns):
            if not self._values.keys().isdisjoint(eqn.outvars) and _may_be_done_again(eqn):
                again.append(eqn)
                self._values.update(dict.fromkeys([v for v in eqn.invars if type(v) is Var]))
        self._again = again[::-1]
        self._works = {eqn: equation_cost(eqn).work for eqn in self._again}
        self.operations = sum(self._works.values())

    def saving(self, values: Collection[Atom]) -> _Choice:
        """Return the choice that saves values, of which only those that are needed."""
        needed, again, saved = set[Atom](self._wanted), list[Equation](), set(values)
        for eqn in reversed(self._again):
            if any(v in needed and v not in saved for v in eqn.outvars):
                again.append(eqn)
                needed.update(eqn.invars)
        made = {v for eqn in again for v in eqn.outvars} - saved
        available = [*self._known.invars, *[v for eqn in self._known.eqns for v in eqn.outvars]]
        kept = tuple([v for v in available if v in needed and v not in made])
        plan = RematerializationPlan(self._known.eqns, kept, tuple(again[::-1]), tuple(self._wanted))
        return _Choice(sum([v.aval.nbytes for v in kept]), sum([self._works[eqn] for eqn in again]), plan)

    def cheapest(self, per_byte: int, per_operation: int) -> _Choice:
        """Return the cheapest choice at prices for a byte that is saved and an operation that is computed again."""
        number = {v: k for k, v in enumerate(self._values)}
        prices = [per_byte * v.aval.nbytes for v in self._values]
        never = sum(prices) + per_operation * self.operations + 1
        made = {v for eqn in self._again for v in eqn.outvars}
        edges, sinks = list[tuple[int, int]](), [k for v, k in number.items() if v not in made]
        for eqn in self._again:
            at = len(prices)
            prices += [never, per_operation * self._works[eqn]]
            edges += [(number[v], at) for v in eqn.outvars if v in number]
            edges += [(at, number[v]) for v in dict.fromkeys(eqn.invars) if v in number]
            edges.append((at, at + 1))
            sinks.append(at + 1)
        sources = [number[v] for v in dict.fromkeys(self._wanted) if v in number]
        values = list(self._values)
        found = cut.minimum_vertex_cut(prices, edges, sources, sinks)
        return self.saving([values[k] for k in found if k < len(values)])

    def on_hull(self, most: _Choice, fits: _Choice, limit: int) -> _Choice:
        """Search the lower convex hull between a choice of too many bytes and one that fits, for the best that fits."""
        while most.nbytes > fits.nbytes:
            found = self.cheapest(fits.operations - most.operations, most.nbytes - fits.nbytes)
            if found[:2] in (most[:2], fits[:2]) or not _is_below(found, most, fits):
                break
            most, fits = (most, found) if found.nbytes <= limit else (found, fits)
        return fits

    def filled(self, choice: _Choice, limit: int) -> _Choice:
        """Save more values, those of the most operations first, as long as they fit and fewer are computed again."""
        while True:
            left, more = limit - choice.nbytes, list[Atom]()
            for eqn in sorted(choice.plan.again, key=lambda eqn: -self._works[eqn]):
                for v in [v for v in eqn.outvars if v in self._values and v.aval.nbytes <= left]:
                    more.append(v)
                    left -= v.aval.nbytes
            found = self.saving({*choice.plan.saved, *more})
            if found.nbytes > limit or found.operations >= choice.operations:
                return choice
            choice = found


def _is_below(found: _Choice, most: _Choice, fits: _Choice) -> bool:
    """Tell whether a choice is below the line between two others."""
    rise, run = fits.operations - most.operations, most.nbytes - fits.nbytes
    return (found.operations - most.operations) * run < rise * (most.nbytes - found.nbytes)


def _may_be_done_again(eqn: Equation) -> bool:
    return not effects(eqn) and eqn.primitive not in rematerialization.names


def _cannot_be_met(budget: Budget, limit: int, fewest: _Choice) -> str:
    largest = max(fewest.plan.saved, key=lambda v: v.aval.nbytes)
    return (
        f"{budget!r}: {limit} bytes are too few for the residuals, which take at least {fewest.nbytes}. The largest of "
        f"them is {largest.aval}. Allow more; budget(0) saves as few bytes as it can."
    )
