"""Plan and cost of a term: the order in which its factors are summed and multiplied (contraction path), and its masks.

Search terms: einsum path, matrix chain order. The order is that of `einsum` (tracer/numpy/contraction_order.py).
Brackets that become neither indices nor steps (`steps.py`: gathers, running sums) are masks, on the smallest factor
that has their variables, else on the result. They are not counted: they compare indices, which need no array.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple, TypeAlias

from tapeless.interpreters.terms.accesses import DigitAxis, Shape, axes_of
from tapeless.interpreters.terms.steps import (
    Labels,
    RunningSum,
    TermSteps,
    factors_after,
    size_along,
    steps_of,
)
from tapeless.tracer.numpy.contraction_order import contraction_path
from tapeless.tracer.terms.affine import Affine, Variable, variable
from tapeless.tracer.terms.term import Bracket, IsZero, Lookup, Sum, Term, Use, indices_of, variables_in, variables_of

Tree: TypeAlias = "int | tuple[Tree, Tree]"  # the number of a factor, or the product of two


class ContractionCost(NamedTuple):
    """Scalar operations; elements of intermediates and of the result; array operations. Compared in this order."""

    work: int
    held: int
    steps: int

    def plus(self, other: "ContractionCost") -> "ContractionCost":
        return ContractionCost(self.work + other.work, self.held + other.held, self.steps + other.steps)

    def minus(self, other: "ContractionCost") -> "ContractionCost":
        return ContractionCost(self.work - other.work, self.held - other.held, self.steps - other.steps)


NOTHING = ContractionCost(0, 0, 0)


class Plan(NamedTuple):
    """A way to compute a term: views of the factors, steps, whether it has masks, the view that it writes.

    `sizes` has the size of each variable, also of those that `placed_axes` adds; `least` is the size of the smallest
    factor, which a coefficient would be multiplied by; `cost` leaves the coefficient out.
    """

    sizes: tuple[int, ...]
    factors: tuple[tuple[DigitAxis, ...], ...]
    steps: TermSteps
    is_masked: bool
    out: tuple[DigitAxis, ...]
    least: int
    cost: ContractionCost

    @property
    def uses_views_only(self) -> bool:
        """Tell whether the term reads and writes views, without masks, gathers, scatters and running sums."""
        return not self.is_masked and not any(self.steps.factors) and self.steps.scatter is None


@lru_cache(maxsize=4096)
def plan_term(t: Term, shapes: tuple[Shape, ...], shape: Shape) -> Plan | None:
    """Find the cheapest plan of a term; None if an access, a bracket or a use of a factor has no known operation.

    Args:
      shapes: the shapes of its factors, in order, then of the arrays that its brackets look up.
      shape: the shape of the result.
    """
    if any(f.use is not Use.PLAIN for f in t.factors):
        return None
    placed = placed_axes(t, shape)
    factors = [axes_of(f.access, n, placed.sizes) for f, n in zip(t.factors, shapes)]
    if placed.out is None or None in factors:
        return None
    labels = [frozenset([d.variable for a in axes for d in a.digits]) for axes in factors if axes is not None]
    kept = frozenset([d.variable for a in placed.out for d in a.digits])
    steps = steps_of((*t.brackets, *placed.brackets), shapes[len(factors) :], labels, kept, placed.sizes)
    if steps is None:
        return None
    after = factors_after(steps, labels)
    if not all(_is_mask(b, (*after, kept)) for b in steps.brackets):
        return None
    _, cost = order_contraction(tuple(after), steps.kept, placed.sizes)
    cost = cost.plus(_cost_of_steps(steps, labels, placed.sizes))
    least = min([size_along(own, placed.sizes) for own in after], default=prod(shape))
    cost = cost.plus(ContractionCost(0, prod(shape), 0))
    return Plan(placed.sizes, tuple(factors), steps, bool(steps.brackets), placed.out, least, cost)  # type: ignore[arg-type]


def _cost_of_steps(steps: TermSteps, factors: Sequence[Labels], sizes: Sequence[int]) -> ContractionCost:
    """Count the elements that gathers, running sums and the scatter hold, and an addition for each summed element."""
    total = NOTHING
    for own, of_factor in zip(factors, steps.factors):
        for step in of_factor:
            work = size_along(own, sizes) if isinstance(step, RunningSum) else 0
            own = step.replaced(own)
            total = total.plus(ContractionCost(work, size_along(own, sizes), 1 if work else 0))
    written = 0 if steps.scatter is None else size_along(steps.kept, sizes)
    return total.plus(ContractionCost(written, written, 1 if written else 0))


@lru_cache(maxsize=4096)
def cost_of(
    terms: Sum, shapes: tuple[tuple[Shape, ...], ...], shape: Shape, guarded: bool = False
) -> ContractionCost | None:
    """Compute the cost of a sum of terms; None if one of them has no plan.

    Args:
      guarded: an `ein` computes them; the cost of a term without a plan is estimated by the variables of its factors.
    """
    total = ContractionCost(max(len(terms) - 1, 0) * prod(shape), 0 if terms else prod(shape), 0)
    for t, of_factors in zip(terms, shapes, strict=True):
        plan = plan_term(t, of_factors, shape)
        if plan is None and not guarded:
            return None
        total = total.plus(_estimated(t, shape) if plan is None else plan.cost)
        if plan is not None and t.coefficient != 1:
            # A scalar factor takes the sign; else the term is subtracted, even where a factor has fewer elements.
            is_subtracted = t.coefficient == -1 and len(terms) > 1 and plan.least > 1
            total = total.plus(ContractionCost(prod(shape) if is_subtracted else plan.least, 0, 1))
    return total


@lru_cache(maxsize=4096)
def cost_over(terms: Sum, operands: tuple[Shape, ...], shape: Shape, guarded: bool = False) -> ContractionCost | None:
    """Compute the cost of a sum of terms over operands of these shapes, as `cost_of` does."""
    shapes = tuple([tuple([operands[k] for k, _ in t.reads]) for t in terms])
    return cost_of(terms, shapes, shape, guarded)


def _estimated(t: Term, shape: Shape) -> ContractionCost:
    """Estimate the cost of a term as if brackets were free; looked-up variables count as those of their arrays."""
    given = {v: variables_in(b.access) for b in t.brackets if isinstance(b, Lookup)
             for v in variables_of(b.index)}  # fmt: skip
    labels = tuple(
        [frozenset(u for a in f.access for v in variables_of(a) for u in given.get(v, (v,))) for f in t.factors]
    )
    kept = frozenset(u for a in t.out for v in variables_of(a) for u in given.get(v, (v,)))
    _, cost = order_contraction(labels, kept, t.sizes)
    return cost.plus(ContractionCost(0, prod(shape), 0))


# ---- where the result is written -----------------------------------------------------------------------------


class PlacedAxes(NamedTuple):
    """Sizes of variables, also of new ones; digits of each axis of the result, None if unknown; additional brackets."""

    sizes: tuple[int, ...]
    out: tuple[DigitAxis, ...] | None
    brackets: tuple[Bracket, ...]


@lru_cache(maxsize=4096)
def placed_axes(t: Term, shape: Shape) -> PlacedAxes:
    """Decompose the axes of the result; one that shares a variable with an earlier one gets a new, equal variable."""
    sizes, out, brackets, used = list(t.sizes), list[Affine](), list[Bracket](), set[Variable]()
    for a, n in zip(t.out, shape):
        own = set(variables_of(a))
        if own & used:
            new = variable(len(sizes))
            sizes.append(n)
            brackets.append(IsZero(a - new))
            a, own = new, set(variables_of(new))
        used |= own
        out.append(a)
    return PlacedAxes(tuple(sizes), axes_of(tuple(out), shape, sizes), tuple(brackets))


def _is_mask(bracket: Bracket, labels: Sequence[Labels]) -> bool:
    """Tell whether a bracket can be a mask of a factor or of the result: `labels` has the variables of each."""
    if any(a.symbols for a in indices_of(bracket)) or isinstance(bracket, Lookup):
        return False
    return any(own.issuperset(variables_of(bracket.index)) for own in labels)


# ---- order ---------------------------------------------------------------------------------------------------


class _PartialProduct(NamedTuple):
    """The product of some factors, summed over the variables that nothing else has."""

    cost: ContractionCost
    tree: Tree
    labels: Labels


@lru_cache(maxsize=4096)
def order_contraction(
    factors: tuple[Labels, ...], kept: Labels, sizes: tuple[int, ...]
) -> tuple[Tree, ContractionCost]:
    """Find the cheapest order to contract factors, and its cost; without factors, tree 0 at no cost."""
    if not factors:
        return 0, NOTHING
    parts = [_summed(factors, k, kept, sizes) for k in range(len(factors))]
    path = contraction_path("optimal", list(map(tuple, factors)), tuple(kept), dict(enumerate(sizes)))
    for first, second in path:
        b, a = parts.pop(second), parts.pop(first)
        parts.append(_joined(a, b, kept.union(*[part.labels for part in parts]), sizes))
    (every,) = parts
    last = size_along(every.labels, sizes) if every.cost.steps else 0  # the result itself, which the caller counts
    return every.tree, every.cost.minus(ContractionCost(0, last, 0))


def _summed(factors: Sequence[Labels], k: int, kept: Labels, sizes: Sequence[int]) -> _PartialProduct:
    """Sum factor number `k` over the variables that only it has."""
    left = factors[k] & kept.union(*factors[:k], *factors[k + 1 :])
    if left == factors[k]:
        return _PartialProduct(NOTHING, k, left)
    return _PartialProduct(ContractionCost(size_along(factors[k], sizes), size_along(left, sizes), 1), k, left)


def _joined(a: _PartialProduct, b: _PartialProduct, needed: Labels, sizes: Sequence[int]) -> _PartialProduct:
    every = a.labels | b.labels
    left = every & needed
    work = size_along(every, sizes) * (1 if left == every else 2)  # a contraction multiplies and adds
    cost = a.cost.plus(b.cost).plus(ContractionCost(work, size_along(left, sizes), 1))
    return _PartialProduct(cost, (a.tree, b.tree), left)
