"""Masks: the predicate that a `select_n` selects a certain case, moved to other arrays by terms.

Search terms: existential quantifier, image of an access. Moving a mask adds a term that reads it (a view); two terms
are composed to one if the composition has a plan. Left out: accesses with symbols and lookups, which data determine
(`operand_regions.py`).
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from tapeless.interpreters.index_rows import rows
from tapeless.interpreters.terms.accesses import DigitAxis, Shape, axes_of
from tapeless.interpreters.terms.plan import Plan, planned
from tapeless.interpreters.terms.steps import RunningSum
from tapeless.tracer.jaxpr import Atom, Equation, Literal
from tapeless.tracer.primitives.shape import reshape_p
from tapeless.tracer.terms.affine import Access, Affine, Variable, variable, variables
from tapeless.tracer.terms.solve import composed, solved
from tapeless.tracer.terms.term import Read, Term, term, variables_in, variables_of
from tapeless.tracer.types import ShapedArray


class MaskView(NamedTuple):
    """A boolean array of a shape: true where a term that reads a true element of an array of shape `of` writes."""

    term: Term
    of: Shape
    shape: Shape

    def stacked(self, n: int) -> "MaskView":
        """Return the view that reads each of `n` stacked arrays, along a first axis, through this one."""
        t, each = self.term, variable(len(self.term.sizes))
        read = [Read(0, (each, *t.factors[0].access))]
        return MaskView(term((each, *t.out), (*t.sizes, n), read, t.brackets), (n, *self.of), (n, *self.shape))


class Mask(NamedTuple):
    """The predicate that `which`, the index of a select_n among `cases`, equals `case`; read through views, in order.

    `cases` is 0 if `which` is compared with a number and does not index cases.
    """

    which: Atom
    case: int
    cases: int
    views: tuple[MaskView, ...] = ()

    @property
    def shape(self) -> Shape:
        """Return the shape of the arrays that it is a mask of."""
        return self.views[-1].shape if self.views else self.which.aval.shape

    def read(self, reader: Term, shape: Shape) -> "Mask | None":
        """Read the mask through a term: the result holds where the term writes and reads an element where this holds.

        Returns: a mask of arrays of a shape; `NEVER` if the term is 0; None if the view has no plan.
        """
        if self is NEVER:
            return self
        found, views, joint = None, self.views, _joint(reader, self.views, shape)
        while joint is not None:
            found, views, joint = joint, views[:-1], _joint(joint.term, views[:-1], shape)
        found = found or _view_by(reader, self.shape, shape)
        if found is _NOTHING:
            return NEVER
        return None if found is None else self._replace(views=(*views, found) if is_change(found) else views)

    def viewed(self, views: Sequence[MaskView]) -> "Mask | None":
        """Read the mask through views, one after another; None if one of them has no plan."""
        found: Mask | None = self
        for view in views:
            found = found and found.read(view.term, view.shape)
        return found

    @property
    def is_reduced(self) -> bool:
        """Tell whether its last view takes a reduction to write."""
        plan = plan_of(self.views[-1]) if self.views else None
        return plan is not None and _sums(plan)

    def along_whole_axes(self) -> "Mask":
        """Enlarge a mask that holds only in a part of axes that it does not depend on, to hold all along these."""
        found = _along_whole_axes(self.views[-1]) if self.views else None
        return self if found is None else self._replace(views=(*self.views[:-1], found))

    def repeated(self, shape: Shape, dims: Sequence[int]) -> "Mask":
        """Broadcast the mask to a shape, in which its axes are `dims`."""
        out = variables(shape)
        return self.read(term(out, shape, [Read(0, tuple([out[d] for d in dims]))]), shape) or self

    def anywhere_along_first_axis(self) -> "Mask":
        """Reduce the mask by `or` along the first axis."""
        each = variables(self.shape)
        return self.read(term(each[1:], self.shape, [Read(0, each)]), self.shape[1:]) or self


NEVER = Mask(Literal(False), 1, 2)  # holds nowhere


def mask_of(eqn: Equation, case: int) -> Mask:
    """Make the mask of one case of a select_n, in the shape of its result."""
    which, shape = eqn.invars[0], eqn.outvars[0].aval.shape
    mask = Mask(which, case, len(eqn.invars) - 1)
    return mask if which.aval.shape == shape else mask.repeated(shape, ())


# ---- views -----------------------------------------------------------------------------------------------------

_NOTHING = MaskView(term((), ()), (), ())


def further(view: MaskView, producer: Term, of: Shape) -> MaskView | None:
    """Compose a view with the term that moved its array from one of shape `of`; None if that view has no plan."""
    found = _view(_composed(view.term, producer), of, view.shape)
    return None if found is _NOTHING else found


@lru_cache(maxsize=4096)
def plan_of(view: MaskView) -> Plan | None:
    """Plan a view as a slice, running sums, reductions, a pad; None if it is a reshape, needs masks, or has no plan."""
    plan = planned(view.term, (view.of,), view.shape)
    if plan is None or plan.is_masked or plan.steps.scatter is not None:
        return None
    return plan if all(isinstance(step, RunningSum) for step in plan.steps.factors[0]) else None


@lru_cache(maxsize=4096)
def is_of_each(view: MaskView) -> bool:
    """Tell whether each element of a view is copied from one that is read, so that integers can be viewed, too."""
    plan = plan_of(view)
    if plan is None:
        return True
    written = prod([plan.sizes[v] for v in _variables(plan.out)])
    return written == prod(view.shape) and not _sums(plan)


def _sums(plan: Plan) -> bool:
    """Tell whether a plan reduces elements that are read."""
    return bool(plan.steps.factors[0]) or not _variables(plan.factors[0]) <= _variables(plan.out)


def _variables(axes: Sequence[DigitAxis]) -> set[Variable]:
    return {d.variable for a in axes for d in a.digits}


@lru_cache(maxsize=4096)
def is_change(view: MaskView) -> bool:
    """Tell whether a view is not the identity."""
    each = variables(view.shape)
    return view.of != view.shape or view.term is not solved(term(each, view.shape, [Read(0, each)]))


@lru_cache(maxsize=4096)
def _composed(reader: Term, producer: Term) -> Term | None:
    return composed(reader, 0, producer)


def _joint(reader: Term, views: Sequence[MaskView], shape: Shape) -> MaskView | None:
    """Compose a term with the last of some views; None if there are none, or the composition has no plan."""
    if not views or not reader.factors:
        return None
    return _view(_composed(reader, views[-1].term), views[-1].of, shape)


@lru_cache(maxsize=4096)
def _view_by(reader: Term, of: Shape, shape: Shape) -> MaskView | None:
    if reader.brackets and reader is _reshaping(of, shape):
        return MaskView(reader, of, shape)
    return _view(solved(reader), of, shape)


@lru_cache(maxsize=1024)
def _reshaping(of: Shape, shape: Shape) -> Term | None:
    found = rows[reshape_p]({"shape": shape}, [ShapedArray(of, np.dtype(bool))]) if prod(of) == prod(shape) else None
    return found.results[0][0] if found is not None and found.results[0] else None


@lru_cache(maxsize=4096)
def _view(t: Term | None, of: Shape, shape: Shape) -> MaskView | None:
    """Return the view by a term, `_NOTHING` if the term is None; None if the view has no plan."""
    if t is None:
        return _NOTHING
    found = MaskView(t.unit, of, shape)
    return None if plan_of(found) is None else found


@lru_cache(maxsize=4096)
def _along_whole_axes(view: MaskView) -> MaskView | None:
    t, of, shape = view
    read = variables_in((*t.factors[0].access, *[b.index for b in t.brackets]))
    wide = [read.isdisjoint(variables_of(a)) for a in t.out]
    return _view(_widened(t, shape, wide, of, [False] * len(of)), of, shape) if any(wide) else None


@lru_cache(maxsize=4096)
def larger(t: Term, of: Shape, shape: Shape) -> Term | None:
    """Enlarge a term: drop its brackets, and widen indices that are no view to whole axes; None if no index is left."""
    unknown = [[axes_of((a,), (n,), t.sizes) is None for a, n in zip(access, each)]
               for access, each in ((t.out, shape), (t.factors[0].access, of))]  # fmt: skip
    found = _widened(term(t.out, t.sizes, t.factors), shape, unknown[0], of, unknown[1])
    out, read = [variables_in(access) for access in (found.out, found.factors[0].access)]
    return None if out.isdisjoint(read) else found


def _widened(t: Term, shape: Shape, out: Sequence[bool], of: Shape, read: Sequence[bool]) -> Term:
    """Widen a term to write, and to read, all along some axes, with a new variable for each."""
    sizes = list(t.sizes)

    def along(access: Access, each: Shape, wide: Sequence[bool]) -> Iterator[Affine]:
        for a, n, is_wide in zip(access, each, wide, strict=True):
            sizes.extend([n] if is_wide else [])
            yield variable(len(sizes) - 1) if is_wide else a

    to, at = tuple(along(t.out, shape, out)), tuple(along(t.factors[0].access, of, read))
    found = solved(term(to, sizes, [Read(0, at)], t.brackets))
    return t.unit if found is None else found.unit
