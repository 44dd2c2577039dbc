"""Brackets that operations on one array stand for: indices that an array holds, and running sums.

Search terms: gather, scatter, prefix sum, Iverson bracket. `[s = t[k]]` replaces the index s of a factor by k, which is
a gather; of the result, k by s, which is a scatter. `[i >= j]`, where j is an index of one factor alone, replaces j by
i, which is a cumulative sum. Nothing is made 0 that another factor, which may be infinite, is multiplied by: what is
gathered is there, or dropped by the scatter. Left out: variables that are replaced twice, or that another bracket has.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tapeless.interpreters.simplifications.fusion.accesses import Shape, axes_of
from tapeless.tracer.terms.affine import Affine, Variable
from tapeless.tracer.terms.term import Bracket, Lookup, NotNegative, indices_of, variables_of

Labels = frozenset[Variable]


class Position(NamedTuple):
    """The values of a variable that an array of positions holds: sign (p - first), p being within limits.

    `number` is that of the array among those that brackets look up, `order` the variables that it is read along.
    """

    variable: Variable
    number: int
    order: Labels
    sign: int
    first: int
    limits: tuple[int, int] | None
    is_within: bool = False  # nothing need be clipped


class Indexing(NamedTuple):
    """Variables whose values are held by arrays of other variables, the same of all: one gather, or one scatter."""

    positions: tuple[Position, ...]
    order: tuple[Variable, ...]  # of the variables of positions

    def replaced(self, own: Labels) -> Labels:
        """The variables of what is read at the positions."""
        return (own - frozenset([p.variable for p in self.positions])) | frozenset(self.order)


class RunningSum(NamedTuple):
    """Sums over one variable up to position `upto` + shift, or from there on if `reverse`."""

    variable: Variable
    upto: Variable
    shift: int
    reverse: bool

    def replaced(self, own: Labels) -> Labels:
        """The variables of the sums."""
        return (own - {self.variable}) | {self.upto}


Step = Indexing | RunningSum


class TermSteps(NamedTuple):
    """Steps for each factor, in order; a scatter, and the variables of what it writes; brackets that are left."""

    factors: tuple[tuple[Step, ...], ...]
    scatter: Indexing | None
    kept: Labels
    brackets: tuple[Bracket, ...]


def steps_of(
    brackets: Sequence[Bracket],
    looked_up: Sequence[Shape],
    factors: Sequence[Labels],
    kept: Labels,
    sizes: Sequence[int],
) -> TermSteps | None:
    """Find the steps that stand for brackets; None if no operation is known for one of them.

    Args:
      looked_up: shapes of the arrays that brackets look up, in order.
      factors: the variables of each factor.
      kept: those of the result.
    """
    lookups = [b for b in brackets if isinstance(b, Lookup)]
    others = tuple([b for b in brackets if not isinstance(b, Lookup)])
    found = TermSteps(((),) * len(factors), None, kept, others)
    if lookups:
        positions = [
            _position(k, b, brackets, shape, sizes) for k, (b, shape) in enumerate(zip(lookups, looked_up, strict=True))
        ]
        found = _looked_up(found, [p for p in positions if p is not None], factors, sizes)
        if found is None or None in positions:
            return None
    for b in others:
        known = [*factors_after(found, factors), kept]
        if isinstance(b, NotNegative) and not any(labels.issuperset(variables_of(b.index)) for labels in known):
            found = _with_running(found, b, factors, sizes)
            if found is None:
                return None
    return found


def factors_after(found: TermSteps, factors: Sequence[Labels]) -> list[Labels]:
    """The variables of each factor after its steps."""
    after = list(factors)
    for k, steps in enumerate(found.factors):
        for step in steps:
            after[k] = step.replaced(after[k])
    return after


# ---- positions -----------------------------------------------------------------------------------------------


def _position(
    number: int, b: Lookup, brackets: Sequence[Bracket], shape: Shape, sizes: Sequence[int]
) -> Position | None:
    axes = axes_of(b.access, shape, sizes)
    if axes is None or b.index.symbols or [abs(c) for _, c in b.index.variables] != [1]:
        return None
    ((v, sign),) = b.index.variables
    if v in _variables([x for x in brackets if x is not b], b.access):
        return None
    order = frozenset([d.variable for a in axes for d in a.digits])
    return Position(v, number, order, sign, b.index.constant, b.limits, b.is_within)


def _variables(brackets: Iterable[Bracket], more: Sequence[Affine] = ()) -> set[Variable]:
    return {v for a in (*[a for b in brackets for a in indices_of(b)], *more) for v in variables_of(a)}


def _looked_up(
    found: TermSteps, positions: Sequence[Position], factors: Sequence[Labels], sizes: Sequence[int]
) -> TermSteps | None:
    """Gather the factors that have variables whose positions are known, and scatter the result if it has some."""
    groups = dict[Labels, list[Position]]()
    for p in positions:
        groups.setdefault(p.order, []).append(p)
    gathers = list[tuple[Step, ...]]()
    for own in factors:
        gathers.append(tuple([step for order, group in groups.items() if (step := _indexing(order, group, own))]))
    inside = all(p.variable in found.kept or _is_inside(p, sizes) for p in positions)
    scatters = [step for order, group in groups.items() if (step := _indexing(order, group, found.kept))]
    used = {p.variable for steps in (*gathers, scatters) for step in steps for p in step.positions}  # type: ignore[union-attr]
    if not inside or len(scatters) > 1 or used.symmetric_difference([p.variable for p in positions]):
        return None
    scatter = scatters[0] if scatters else None
    kept = found.kept if scatter is None else scatter.replaced(found.kept)
    return found._replace(factors=tuple(gathers), scatter=scatter, kept=kept)


def _is_inside(p: Position, sizes: Sequence[int]) -> bool:
    """Tell whether all positions are values of the variable."""
    if p.limits is None:
        return False
    values = [p.sign * (limit - p.first) for limit in p.limits]
    return min(values) >= 0 and max(values) < sizes[p.variable]


def _indexing(order: Labels, group: Sequence[Position], own: Labels) -> Indexing | None:
    """Replace those of a group of positions that an array has."""
    positions = tuple([p for p in group if p.variable in own])
    return Indexing(positions, tuple(sorted(order))) if positions else None


# ---- running sums --------------------------------------------------------------------------------------------


def _with_running(
    found: TermSteps, b: NotNegative, factors: Sequence[Labels], sizes: Sequence[int]
) -> TermSteps | None:
    """A running sum of the least factor that makes a bracket hold."""
    after, options = factors_after(found, factors), list[tuple[int, int, RunningSum]]()
    for running in _runnings(b.index):
        v = running.variable
        having = [k for k, own in enumerate(after) if v in own]
        if len(having) != 1 or v in found.kept or v in _variables([x for x in found.brackets if x is not b]):
            continue
        (k,) = having
        if running.upto not in after[k] and 0 <= running.shift <= sizes[v] - sizes[running.upto]:
            size = 1
            for u in after[k]:
                size *= sizes[u]
            options.append((size, k, running))
    if not options:
        return None
    _, k, running = min(options)
    steps = tuple([(*steps, running) if n == k else steps for n, steps in enumerate(found.factors)])
    return found._replace(factors=steps, brackets=tuple([x for x in found.brackets if x is not b]))


def _runnings(a: Affine) -> list[RunningSum]:
    """The running sums that a >= 0 may stand for."""
    if a.symbols or sorted([c for _, c in a.variables]) != [-1, 1]:
        return []
    (i,), (j,) = [v for v, c in a.variables if c == 1], [v for v, c in a.variables if c == -1]
    return [RunningSum(j, i, a.constant, False), RunningSum(i, j, -a.constant, True)]
