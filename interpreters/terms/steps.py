"""Brackets as operations on one array (steps of a plan): gathers, scatters and running sums.

Search terms: gather, scatter, prefix sum, Iverson bracket. `[s = t[k]]` replaces the index s of a factor by k: a
gather; in the result, k by s: a scatter. `[i >= j]`, where j is an index of one factor alone, replaces j by i: a
cumulative sum. No step makes elements 0 that would be multiplied by another, possibly infinite factor: positions
of a gather are inside, or the scatter drops them. Left out: variables that two steps replace, or that another bracket
has.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

from tapeless.interpreters.terms.accesses import Shape, axes_of
from tapeless.tracer.terms.affine import Affine, Variable
from tapeless.tracer.terms.term import Bracket, Lookup, NotNegative, indices_of, variables_in, variables_of

Labels = frozenset[Variable]


def size_along(labels: Iterable[Variable], sizes: Sequence[int]) -> int:
    """Count the elements of an array with an axis for each of some variables."""
    return prod([sizes[v] for v in labels])


class Position(NamedTuple):
    """A variable whose values are in an array of positions p: sign (p - first), with p clipped to limits.

    `number` counts the arrays that brackets look up; `order` are the variables of its axes.
    """

    variable: Variable
    number: int
    order: Labels
    sign: int
    first: int
    limits: tuple[int, int] | None
    is_within: bool = False  # all positions are known to be within limits


class Indexing(NamedTuple):
    """Variables whose values are in arrays of positions with the same axes: one gather, or one scatter."""

    positions: tuple[Position, ...]
    order: tuple[Variable, ...]  # the variables of the axes of positions

    def replaced(self, own: Labels) -> Labels:
        """Return the variables of a gather from an array that has the variables `own`."""
        return (own - frozenset([p.variable for p in self.positions])) | frozenset(self.order)


class RunningSum(NamedTuple):
    """Cumulative sums over one variable up to position `upto` + shift, or from there on if `reverse`."""

    variable: Variable
    upto: Variable
    shift: int
    reverse: bool

    def replaced(self, own: Labels) -> Labels:
        """Return the variables of the running sums of an array that has the variables `own`."""
        return (own - {self.variable}) | {self.upto}


Step = Indexing | RunningSum


class TermSteps(NamedTuple):
    """The steps of each factor, in order; the scatter, and the variables that it reads; the brackets that are left."""

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
    """Find the steps that replace brackets; None if one that cannot be a mask has no step.

    Args:
      looked_up: shapes of the arrays that brackets look up, in order.
      factors: the variables of each factor.
      kept: the variables of the result.
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
    """Return the variables of each factor after its steps."""
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
    found = b.index.signed_variable
    if axes is None or found is None:
        return None
    v, sign = found
    if v in _variables([x for x in brackets if x is not b], b.access):
        return None
    order = frozenset([d.variable for a in axes for d in a.digits])
    return Position(v, number, order, sign, b.index.constant, b.limits, b.is_within)


def _variables(brackets: Iterable[Bracket], more: Sequence[Affine] = ()) -> frozenset[Variable]:
    return variables_in((*[a for b in brackets for a in indices_of(b)], *more))


def _looked_up(
    found: TermSteps, positions: Sequence[Position], factors: Sequence[Labels], sizes: Sequence[int]
) -> TermSteps | None:
    """Add gathers of the factors that have variables with positions, and a scatter for the result; None if it fails."""
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
    """Tell whether all positions within the limits are in the range of the variable."""
    if p.limits is None:
        return False
    values = [p.sign * (limit - p.first) for limit in p.limits]
    return min(values) >= 0 and max(values) < sizes[p.variable]


def _indexing(order: Labels, group: Sequence[Position], own: Labels) -> Indexing | None:
    """Return the step for the positions of a group whose variables an array has; None if it has none."""
    positions = tuple([p for p in group if p.variable in own])
    return Indexing(positions, tuple(sorted(order))) if positions else None


# ---- running sums --------------------------------------------------------------------------------------------


def _with_running(
    found: TermSteps, b: NotNegative, factors: Sequence[Labels], sizes: Sequence[int]
) -> TermSteps | None:
    """Replace a bracket by a running sum of the smallest factor that permits one; None if none does."""
    after, options = factors_after(found, factors), list[tuple[int, int, RunningSum]]()
    for running in _runnings(b.index):
        v = running.variable
        having = [k for k, own in enumerate(after) if v in own]
        if len(having) != 1 or v in found.kept or v in _variables([x for x in found.brackets if x is not b]):
            continue
        (k,) = having
        if running.upto not in after[k] and 0 <= running.shift <= sizes[v] - sizes[running.upto]:
            options.append((size_along(after[k], sizes), k, running))
    if not options:
        return None
    _, k, running = min(options)
    steps = tuple([(*steps, running) if n == k else steps for n, steps in enumerate(found.factors)])
    return found._replace(factors=steps, brackets=tuple([x for x in found.brackets if x is not b]))


def _runnings(a: Affine) -> list[RunningSum]:
    """List the running sums that can replace the bracket [a >= 0]."""
    if a.symbols or sorted([c for _, c in a.variables]) != [-1, 1]:
        return []
    (i,), (j,) = [v for v, c in a.variables if c == 1], [v for v, c in a.variables if c == -1]
    return [RunningSum(j, i, a.constant, False), RunningSum(i, j, -a.constant, True)]
