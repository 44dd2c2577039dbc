"""Masks: the predicate that a `select_n` selects a certain case, moved to other arrays by terms.

Search terms: existential quantifier, image of an access. Moving a mask adds a map that reads it (a view): an element is
true where the map writes and reads a true one. Two maps are composed to one if that has a plan. Left out: maps with
symbols and lookups, which data determine (`operand_regions.py`).
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from tapeless.interpreters.index_rows import rows
from tapeless.interpreters.terms.accesses import DigitAxis, axes_of
from tapeless.interpreters.terms.plan import Plan, plan_term
from tapeless.interpreters.terms.steps import RunningSum
from tapeless.tracer.jaxpr import Atom, Equation, Literal
from tapeless.tracer.primitives.shape import reshape_p
from tapeless.tracer.terms.affine import Access, Affine, Variable, variable, variables
from tapeless.tracer.terms.map import Map, Shape, make_map, make_view
from tapeless.tracer.terms.solve import solve_term
from tapeless.tracer.terms.term import Read, Term, term, variables_in, variables_of
from tapeless.tracer.types import ShapedArray


class Mask(NamedTuple):
    """The predicate that `which`, the index of a select_n among `cases`, equals `case`; read through views, in order.

    `cases` is 0 if `which` is compared with a number and does not index cases.
    """

    which: Atom
    case: int
    cases: int
    views: tuple[Map, ...] = ()

    @property
    def shape(self) -> Shape:
        """Return the shape of the arrays that it is a mask of."""
        return self.views[-1].shape if self.views else self.which.aval.shape

    def read(self, reader: Map) -> "Mask | None":
        """Read the mask through a map: the result holds where the map writes and reads an element where this holds.

        Returns: a mask of arrays of the map's shape; `NEVER` if the map is 0; None if the view has no plan.
        """
        if self is NEVER:
            return self
        found, views, joint = None, self.views, _joint(self.views, reader)
        while joint is not None:
            found, views, joint = joint, views[:-1], _joint(views[:-1], joint)
        found = found or _usable(reader)
        if found is _NOTHING:
            return NEVER
        return None if found is None else self._replace(views=views if found.is_identity else (*views, found))

    def viewed(self, views: Sequence[Map]) -> "Mask | None":
        """Read the mask through views, one after another; None if one of them has no plan."""
        found: Mask | None = self
        for view in views:
            found = found and found.read(view)
        return found

    @property
    def is_reduced(self) -> bool:
        """Tell whether its last view takes a reduction to write."""
        plan = plan_of(self.views[-1]) if self.views else None
        return plan is not None and _sums(plan)

    def along_whole_axes(self) -> "Mask":
        """Enlarge a mask to hold all along the axes that it does not depend on, not only in a part of them."""
        found = _along_whole_axes(self.views[-1]) if self.views else None
        return self if found is None else self._replace(views=(*self.views[:-1], found))

    def repeated(self, shape: Shape, dims: Sequence[int]) -> "Mask":
        """Broadcast the mask to a shape, in which its axes are `dims`."""
        out = variables(shape)
        return self.read(make_view(tuple([out[d] for d in dims]), self.shape, shape)) or self

    def anywhere_along_first_axis(self) -> "Mask":
        """Reduce the mask by `or` along the first axis."""
        each = variables(self.shape)
        return self.read(Map(term(each[1:], self.shape, [Read(0, each)]), self.shape, self.shape[1:])) or self


NEVER = Mask(Literal(False), 1, 2)  # holds nowhere


def mask_of(eqn: Equation, case: int) -> Mask:
    """Make the mask of one case of a select_n, in the shape of its result."""
    which, shape = eqn.invars[0], eqn.outvars[0].aval.shape
    mask = Mask(which, case, len(eqn.invars) - 1)
    return mask if which.aval.shape == shape else mask.repeated(shape, ())


# ---- views -----------------------------------------------------------------------------------------------------

_NOTHING = Map(term((), ()), (), ())


@lru_cache(maxsize=4096)
def plan_of(view: Map) -> Plan | None:
    """Plan a view as a slice, running sums, reductions, a pad; None if it is a reshape, needs masks, or has no plan."""
    plan = plan_term(view.term, (view.of,), view.shape)
    if plan is None or plan.is_masked or plan.steps.scatter is not None:
        return None
    return plan if all(isinstance(step, RunningSum) for step in plan.steps.factors[0]) else None


@lru_cache(maxsize=4096)
def is_of_each(view: Map) -> bool:
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


def _joint(views: Sequence[Map], reader: Map) -> Map | None:
    """Compose a map with the last of some views; None if there are none, or the composition has no plan."""
    return compose_views(views[-1], reader) if views and reader is not _NOTHING else None


def compose_views(view: Map, reader: Map) -> Map | None:
    """Compose a view with a map that reads its result; `_NOTHING` if that is 0, None if it has no plan."""
    found = view.then(reader)
    return _NOTHING if found is None else found if plan_of(found) is not None else None


@lru_cache(maxsize=4096)
def _usable(reader: Map) -> Map | None:
    """Return a map in normal form, `_NOTHING` if it is 0; None if it has no plan."""
    if reader.term.brackets and reader.term is _reshaping(reader.of, reader.shape):
        return reader
    found = solve_term(reader.term)
    if found is None:
        return _NOTHING
    view = make_map(found.unit, reader.of, reader.shape)
    return None if plan_of(view) is None else view


@lru_cache(maxsize=1024)
def _reshaping(of: Shape, shape: Shape) -> Term | None:
    found = rows[reshape_p]({"shape": shape}, [ShapedArray(of, np.dtype(bool))]) if prod(of) == prod(shape) else None
    return found.results[0][0] if found is not None and found.results[0] else None


@lru_cache(maxsize=4096)
def _along_whole_axes(view: Map) -> Map | None:
    t = view.term
    read = variables_in((*view.access, *[b.index for b in t.brackets]))
    wide = [read.isdisjoint(variables_of(a)) for a in t.out]
    return _usable(_widened(view, wide, [False] * len(view.of))) if any(wide) else None


@lru_cache(maxsize=4096)
def larger(view: Map) -> Map | None:
    """Enlarge a map: drop its brackets, and widen indices that are no view to whole axes; None if no index is left."""
    t = view.term
    unknown = [[axes_of((a,), (n,), t.sizes) is None for a, n in zip(access, each)]
               for access, each in ((t.out, view.shape), (view.access, view.of))]  # fmt: skip
    found = _widened(view._replace(term=t.with_brackets(())), *unknown)
    return None if variables_in(found.term.out).isdisjoint(variables_in(found.access)) else found


def _widened(view: Map, out: Sequence[bool], read: Sequence[bool]) -> Map:
    """Widen a map to write, and to read, all along some axes, with a new variable for each."""
    t, of, shape = view.term, view.of, view.shape
    sizes = list(t.sizes)

    def along(access: Access, each: Shape, wide: Sequence[bool]) -> Iterator[Affine]:
        for a, n, is_wide in zip(access, each, wide, strict=True):
            sizes.extend([n] if is_wide else [])
            yield variable(len(sizes) - 1) if is_wide else a

    to, at = tuple(along(t.out, shape, out)), tuple(along(view.access, of, read))
    found = solve_term(term(to, sizes, [Read(0, at)], t.brackets))
    return Map(t.unit if found is None else found.unit, of, shape)
