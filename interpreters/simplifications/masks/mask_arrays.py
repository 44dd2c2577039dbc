"""Write masks as boolean arrays, each equation once (value numbering).

A reduction by `or` of a mask that compares affine indices is an existential quantifier over integers. It is decided by
elimination: of equalities by `terms.solve`, of an inequality by its best value. Left out: results that are neither
everywhere true nor everywhere false.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from tapeless.interpreters.index_rows import index_row
from tapeless.interpreters.random_bits import RandomVariables
from tapeless.interpreters.simplifications.common_subexpressions import key_of
from tapeless.interpreters.simplifications.constant_values import number
from tapeless.interpreters.simplifications.fusion.affine_values import Definition, brackets_where
from tapeless.interpreters.simplifications.masks.mask import Mask, compose_views, is_of_each, plan_of
from tapeless.interpreters.simplifications.masks.regions import Region
from tapeless.interpreters.terms.lower_steps import running
from tapeless.interpreters.terms.lower_views import arrange_axes, place_in_box, read_view
from tapeless.interpreters.terms.steps import RunningSum
from tapeless.interpreters.terms.tiles import whole_box
from tapeless.interpreters.writer import Writer, fill_array, literal
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.bits import and_p, not_p, or_p
from tapeless.tracer.primitives.operands import without
from tapeless.tracer.primitives.reduction import reduce_or_p
from tapeless.tracer.terms.affine import Affine, Variable, variables
from tapeless.tracer.terms.map import Map
from tapeless.tracer.terms.solve import solve_term
from tapeless.tracer.terms.term import Bracket, NotNegative, Term, indices_of, term, with_indices
from tapeless.tracer.types import ShapedArray

_MOVEMENTS = frozenset((s.broadcast_in_dim_p, s.reshape_p, s.transpose_p, s.rev_p))
BOOL, COUNTS = np.dtype(bool), np.dtype(np.int32)


class MaskWriter(Writer):
    """A writer of known values that writes no equation twice, by value numbering: equal masks are one variable."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        super().__init__(jaxpr)
        self._numbered: dict[Any, Atom] = {}
        self._plain: dict[Mask, Mask | bool] = {}
        self.random: Final = RandomVariables(self.definition)

    def keep(self, eqn: Equation) -> None:
        super().keep(eqn)
        if not eqn.linear and len(eqn.outvars) == 1:
            self._numbered.setdefault(key_of(eqn.primitive, eqn.invars, eqn.params), eqn.outvars[0])

    def write(self, primitive: Primitive, /, *operands: Atom, **params: Any) -> Atom:
        key = key_of(primitive, operands, params)
        if key not in self._numbered:
            self._numbered[key] = super().write(primitive, *operands, **params)
        return self._numbered[key]

    def array(self, region: Region) -> Atom:
        """Write a region of masks without views, neither everywhere nor nowhere, as a boolean array."""
        return self._folded(or_p, [self._folded(and_p, list(map(self._truth, a))) for a in region])

    def _folded(self, primitive: Primitive, xs: Sequence[Atom]) -> Atom:
        return reduce(lambda total, x: self.write(primitive, total, x), xs)

    def truth(self, mask: Mask) -> Atom:
        """Write a mask as a boolean array."""
        found = self.plain(mask)
        return self._truth(found) if isinstance(found, Mask) else fill_array(self, found, ShapedArray(mask.shape, BOOL))

    def plain(self, mask: Mask) -> Mask | bool:
        """Write the views of a mask; return a mask without views, or a bool if it holds everywhere or nowhere."""
        if mask not in self._plain:
            found = self._without_views(mask)
            known = number(self, found.which)
            self._plain[mask] = found if known is None else bool(known == found.case)
        return self._plain[mask]

    def _without_views(self, mask: Mask) -> Mask:
        x, case, cases = mask.which, mask.case, mask.cases
        if not all(is_of_each(view) for view in mask.views):
            x, case, cases = self._truth(mask), 1, 2
        for view in mask.views:
            x = self._viewed(x, view)
        return Mask(x, case, cases)

    def _truth(self, mask: Mask) -> Atom:
        """Write the predicate of a mask as a boolean array, without its views."""
        which, case = mask.which, mask.case
        if which.aval.dtype == BOOL:
            return which if case else self.write(not_p, which)
        return self.write(e.eq_p, which, literal(case, which.aval))

    def conjunction(self, masks: Sequence[Mask]) -> Mask:
        """Write the conjunction of masks of one shape: before they are moved, if the same views move all of them."""
        if len(masks) == 1:
            return masks[0]
        if len({(mask.which.aval.shape, mask.views) for mask in masks}) == 1:
            return Mask(self._folded(and_p, list(map(self._truth, masks))), 1, 2, masks[0].views)
        return Mask(self._folded(and_p, list(map(self.truth, masks))), 1, 2)

    def origin(self, mask: Mask) -> Mask:
        """Rewrite a mask to read the array that its predicate was broadcast or moved from."""
        while (eqn := self.definition(mask.which)) is not None and (made := movement(eqn)) is not None:
            before = mask._replace(which=eqn.invars[0], views=()).read(made)
            before = before and before.viewed(mask.views)
            if before is None:
                break
            mask = before
        return mask

    # ---- views -------------------------------------------------------------------------------------------------

    def _viewed(self, x: Atom, view: Map) -> Atom:
        """Write a view of an array, or if this was broadcast or moved, a view of the array that it comes from."""
        while (eqn := self.definition(x)) is not None and (made := movement(eqn)) is not None:
            before = compose_views(made, view)
            if before is None or not before.term.factors:
                break
            x, view = eqn.invars[0], before
        plan = None if view.is_identity else plan_of(view)
        if plan is None:
            return x if view.is_identity else self.write(s.reshape_p, x, shape=view.shape)
        x, order = read_view(self, x, plan.factors[0], plan.sizes)
        for step in [step for step in plan.steps.factors[0] if isinstance(step, RunningSum)]:  # there are no others
            sums, order = running(self, self.counts(x), order, step, plan.sizes[step.upto])
            x = self.are_counted(sums)
        wanted = tuple([d.variable for a in plan.out for d in a.digits])
        x = self._anywhere(x, tuple([axis for axis, v in enumerate(order) if v not in wanted]))
        x = arrange_axes(self, x, tuple([v for v in order if v in wanted]), wanted, plan.sizes)
        return place_in_box(self, x, plan.out, plan.sizes, whole_box(view.shape), literal(False, x.aval))

    def _anywhere(self, x: Atom, axes: tuple[int, ...]) -> Atom:
        """Reduce a mask by `or` along axes; to a constant if the affine indices that it compares decide it."""
        holds = holds_somewhere(x, axes, self.definition) if axes else None
        if holds is None:
            return self.write(reduce_or_p, x, axes=axes) if axes else x
        return fill_array(self, holds, x.aval.update(shape=without(x.aval.shape, axes)))

    def counts(self, x: Atom) -> Atom:
        """Convert a mask to integers, which can be added up."""
        return self.write(e.convert_element_type_p, x, dtype=COUNTS, weak_type=False)

    def are_counted(self, x: Atom) -> Atom:
        """Convert counts to the mask where they are positive."""
        return self.write(e.gt_p, x, literal(0, x.aval))


def movement(eqn: Equation) -> Map | None:
    """Return the map of an equation that broadcasts or moves elements; None for others."""
    return find_map(eqn) if eqn.primitive in _MOVEMENTS else None


def find_map(eqn: Equation) -> Map | None:
    """Return the map of an equation that moves elements, or reduces masks by `or`; None if it has no row or term."""
    row = index_row(eqn)
    if row is None or not row.results[0]:
        return None
    return Map(row.results[0][0], eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape)


# ---- masks of affine indices -----------------------------------------------------------------------------------


def holds_somewhere(x: Atom, axes: Sequence[int], definition: Definition) -> bool | None:
    """Tell whether a mask holds somewhere along axes: True or False for all indices of other axes; None if unknown.

    Args:
      definition: returns the equation that computes a variable, None for inputs and literals.
    """
    brackets, shape = brackets_where(x, definition), x.aval.shape
    if brackets is None:
        return None
    for v in axes:
        brackets = _at_best(brackets, v, shape[v])
    index, kept = variables(shape), without(range(len(shape)), axes)
    found = solve_term(term([index[d] for d in kept], shape, brackets=brackets))
    if found is None:
        return False
    return True if _is_everywhere(found, [shape[d] for d in kept]) else None


def _at_best(brackets: tuple[Bracket, ...], v: Variable, size: int) -> tuple[Bracket, ...]:
    """Substitute for a variable the value at which its only bracket, an inequality, is largest."""
    read = [b for b in brackets if any(index.coefficient(v) for index in indices_of(b))]
    if len(read) != 1 or not isinstance(read[0], NotNegative):
        return brackets
    best = Affine(size - 1 if read[0].index.coefficient(v) > 0 else 0)
    return tuple([with_indices(b, lambda index: index.substituted(v, best)) for b in brackets])


def _is_everywhere(t: Term, shape: Sequence[int]) -> bool:
    """Tell whether a term without factors writes every element of a result of this shape."""
    found = [a.variable for a in t.out]
    one = [a == Affine() and n == 1 for a, n in zip(t.out, shape)]
    all_along = [v is not None and t.sizes[v] == n for v, n in zip(found, shape)]
    distinct = [v for v in found if v is not None]
    return not t.brackets and len(set(distinct)) == len(distinct) and all(a or b for a, b in zip(one, all_along))
