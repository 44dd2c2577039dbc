"""Lowering of sums of terms to library primitives: views of factors, contractions in the planned order, masks, places.

Search terms: code generation of tensor comprehensions. A view is a slice, a reverse, a reshape and a diagonal; a place
is a transpose, a broadcast, a reshape and a pad; a bracket is a choice by a comparison of iotas; a factor that two
others do not need any more is contracted by `dot_general`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.interpreters.simplifications.constants import count
from tapeless.interpreters.simplifications.fusion import lower_steps
from tapeless.interpreters.simplifications.fusion.lower_views import Order, arranged, padded, placed, viewed
from tapeless.interpreters.simplifications.fusion.plan import Plan, Tree, planned
from tapeless.interpreters.simplifications.fusion.steps import Indexing, Labels
from tapeless.interpreters.simplifications.fusion.tiles import Box, Tile, Tiling, tiling
from tapeless.interpreters.simplifications.index_arrays import where
from tapeless.interpreters.simplify import Writer, filled, literal
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.contraction import Precision, dot_general_p
from tapeless.tracer.primitives.reduction import reduce_sum_p
from tapeless.tracer.terms.affine import Variable
from tapeless.tracer.terms.term import Bracket, Coefficient, Lookup, Sum, Term
from tapeless.tracer.types import ShapedArray

_FULL = Precision.HIGHEST, Precision.HIGHEST


def lowered(w: Writer, terms: Sum, atoms: Callable[[int], Atom], aval: ShapedArray, precision: Any) -> Atom | None:
    """Write the sum of terms as an array of type `aval`; None if a factor in front is no number of its dtype.

    Args:
      atoms: the value of each operand.
      precision: that of contractions, None for the full one.
    """
    if not terms:
        return filled(w, 0, aval)
    lowerings = [_Lowering(w, t, atoms, aval, precision or _FULL) for t in terms]
    whole = tuple([(0, n) for n in aval.shape])
    return _typed(w, _tiled(w, tiling([each.box for each in lowerings]), whole, lowerings, aval), aval)


def _tiled(w: Writer, tiles: Tiling, box: Box, lowerings: "Sequence[_Lowering]", aval: ShapedArray) -> Atom | None:
    """The value of tiles in a box, zeros around."""
    if isinstance(tiles, Tile):
        if not tiles.terms:
            return filled(w, 0, aval.update(shape=tuple([high - low for low, high in box])))
        return _added(w, [lowerings[k] for k in tiles.terms], tiles.box, box)
    parts: list[Atom] = []
    for own, inner in tiles.parts:
        part = _tiled(w, inner, own, lowerings, aval)
        if part is None:
            return None
        parts.append(part)
    return _within(w, w.write(s.concatenate_p, *parts, dimension=tiles.axis), tiles.box, box)


def _added(w: Writer, lowerings: "Sequence[_Lowering]", inner: Box, box: Box) -> Atom | None:
    """The sum of terms, added in the box around all of them; those with a minus are subtracted, not negated."""
    ordered = sorted(lowerings, key=lambda each: each.is_negative)
    if len(ordered) == 1:
        return ordered[0].result(1, box)
    total: Atom | None = None
    for each in ordered:
        subtracted = each.is_negative and (total is not None or not ordered[0].is_negative)
        found = each.result(-1 if subtracted else 1, inner)
        if found is None:
            return None
        total = found if total is None else w.write(e.sub_p if subtracted else e.add_p, total, found)
    return None if total is None else _within(w, total, inner, box)


def _within(w: Writer, x: Atom, box: Box, outer: Box) -> Atom:
    """The value of a box as that of one around it, with zeros around."""
    config = [(low - first, last - high, 0) for (low, high), (first, last) in zip(box, outer)]
    return padded(w, x, config, literal(0, x.aval))


def _typed(w: Writer, x: Atom | None, aval: ShapedArray) -> Atom | None:
    """A value in a dtype and weakness."""
    if x is None or (x.aval.dtype == aval.dtype and x.aval.weak_type == aval.weak_type):
        return x
    return w.write(e.convert_element_type_p, x, dtype=aval.dtype, weak_type=aval.weak_type)


class _Lowering:
    """The operations of one term."""

    def __init__(
        self, w: Writer, t: Term, atoms: Callable[[int], Atom], aval: ShapedArray, precision: tuple[Any, Any]
    ) -> None:
        self._w, self._aval, self._precision = w, aval, precision
        given = [atoms(f.operand) for f in t.factors]
        self._looked_up = [atoms(b.operand) for b in t.brackets if isinstance(b, Lookup)]
        plan = planned(t, tuple([x.aval.shape for x in (*given, *self._looked_up)]), aval.shape)
        if plan is None:
            raise ValueError(f"lowered: no operations are known for {t}.")
        self._plan: Plan = plan
        self._wanted: Order = tuple([d.variable for a in plan.out for d in a.digits])
        self._coefficient = t.coefficient
        self._given, self._factors = given, list[tuple[Atom, Order]]()

    @property
    def is_negative(self) -> bool:
        """Tell whether the number in front is, or its real part."""
        return np.real(self._coefficient) < 0

    @property
    def box(self) -> Box:
        """The box that the term writes into."""
        return tuple([(a.start, a.stop) for a in self._plan.out])

    def result(self, sign: int, box: Box) -> Atom | None:
        """The value of the term times 1 or -1, in a box with what it writes."""
        coefficient = self._coefficient * sign
        self._factors = [self._read(k, x) for k, x in enumerate(self._given)]
        has_number = self._scale(coefficient) if self._factors else self._begin_with(coefficient)
        return self._put(*self._joined(self._plan.tree, self._plan.steps.kept), box) if has_number else None

    def _begin_with(self, coefficient: Coefficient) -> bool:
        """Take a number, which may be true, complex or nan, for the only factor; whether the dtype has it."""
        number: Atom | None = count(self._w, coefficient, self._aval)
        if not dtypes.is_integer(self._aval.dtype):
            with np.errstate(over="ignore"):
                found = literal(coefficient, self._aval)
            is_nan = coefficient != coefficient
            number = found if is_nan or complex(found.value) == coefficient else None
        self._factors += [] if number is None else [(number, ())]
        return number is not None

    def _scale(self, coefficient: Coefficient) -> bool:
        """Multiply the least factor by a number; whether the dtype has the number."""
        if coefficient == 1:
            return True
        k = min(range(len(self._factors)), key=lambda k: self._factors[k][0].aval.size)
        x, order = self._factors[k]
        if coefficient == -1:
            self._factors[k] = self._w.write(e.neg_p, x), order
            return True
        number = count(self._w, coefficient, self._aval)
        if number is not None:
            self._factors[k] = self._w.write(e.mul_p, number, x), order
        return number is not None

    # factors

    def _read(self, k: int, x: Atom) -> tuple[Atom, Order]:
        """A factor as it is read, with an axis for each of its variables."""
        x = _typed(self._w, x, self._aval) if x.aval.dtype != self._aval.dtype else x  # type: ignore[assignment]
        x, order = viewed(self._w, x, self._plan.factors[k], self._plan.sizes)
        for step in self._plan.steps.factors[k]:
            if isinstance(step, Indexing):
                x, order = lower_steps.gathered(self._w, x, order, step, self._positions(step))
            else:
                x, order = lower_steps.running(self._w, x, order, step, self._plan.sizes[step.upto])
        for mask in self._plan.masks:
            x = self._masked(x, order, mask.bracket) if mask.factor == k else x
        return x, order

    def _positions(self, step: Indexing) -> list[Atom]:
        """The positions of a step, over its variables."""
        sizes = self._plan.sizes
        found = [viewed(self._w, self._looked_up[p.number], p.axes, sizes) for p in step.positions]
        return [self._arranged(x, order, step.order) for x, order in found]

    def _masked(self, x: Atom, order: Order, bracket: Bracket) -> Atom:
        """A value where a bracket holds, else 0."""
        holds = where(self._w, bracket, order, x.aval.shape)
        return self._w.write(e.select_n_p, holds, literal(0, x.aval), x)

    # products

    def _joined(self, tree: Tree, needed: Labels) -> tuple[Atom, Order]:
        """The product of the factors of a tree, summed over what is not needed outside."""
        if isinstance(tree, int):
            return self._summed(*self._factors[tree], needed)
        of_a, of_b = self._labels(tree[0]), self._labels(tree[1])
        a, b = self._joined(tree[0], needed | of_b), self._joined(tree[1], needed | of_a)
        over = [v for v in a[1] if v in b[1] and v not in needed]
        return self._contracted(a, b, over) if over else self._multiplied(a, b)

    def _labels(self, tree: Tree) -> Labels:
        if isinstance(tree, int):
            return frozenset(self._factors[tree][1])
        return self._labels(tree[0]) | self._labels(tree[1])

    def _summed(self, x: Atom, order: Order, needed: Labels) -> tuple[Atom, Order]:
        axes = tuple([d for d, v in enumerate(order) if v not in needed])
        if not axes:
            return x, order
        return self._w.write(reduce_sum_p, x, axes=axes), tuple([v for v in order if v in needed])

    def _contracted(self, a: tuple[Atom, Order], b: tuple[Atom, Order], over: Sequence[Variable]) -> tuple[Atom, Order]:
        (x, of_x), (y, of_y) = (b, a) if self._is_behind(a[1], b[1]) else (a, b)
        batch = [v for v in of_x if v in of_y and v not in over]
        gone = {*over, *batch}
        order = (*batch, *[v for v in of_x if v not in gone], *[v for v in of_y if v not in gone])
        dims = tuple([tuple([tuple([own.index(v) for v in some]) for own in (of_x, of_y)]) for some in (over, batch)])
        params = {"dimension_numbers": dims, "precision": self._precision, "preferred_element_type": None}
        return self._w.write(dot_general_p, x, y, **params), order

    def _is_behind(self, order: Order, other: Order) -> bool:
        """Tell whether the result has variables of `other` alone before those of `order` alone."""
        first, second = [[self._wanted.index(v) for v in p if v in self._wanted and v not in q]
                         for p, q in ((order, other), (other, order))]  # fmt: skip
        return bool(first) and bool(second) and min(second) < min(first)

    def _multiplied(self, a: tuple[Atom, Order], b: tuple[Atom, Order]) -> tuple[Atom, Order]:
        (x, of_x), (y, of_y) = a, b
        every = {*of_x, *of_y}
        first = of_x if len(of_x) >= len(of_y) else of_y
        known = [v for v in self._wanted if v in every]
        order = first if len(first) == len(every) else (*known, *sorted(every.difference(known)))
        x, y = [self._arranged(z, own, order) if own else z for z, own in ((x, of_x), (y, of_y))]
        return self._w.write(e.mul_p, x, y), order

    # the place

    def _put(self, x: Atom, order: Order, box: Box) -> Atom:
        """A value in its place in a box of the result, zeros around."""
        scatter = self._plan.steps.scatter
        if scatter is not None:
            x = self._arranged(x, order, lower_steps.windows(self._wanted, scatter))
            zeros = filled(self._w, 0, x.aval.update(shape=tuple([self._plan.sizes[v] for v in self._wanted])))
            x = lower_steps.scattered(self._w, x, zeros, self._wanted, scatter, self._positions(scatter))
        else:
            x = self._arranged(x, order, self._wanted)
        for mask in self._plan.masks:
            x = self._masked(x, self._wanted, mask.bracket) if mask.factor is None else x
        return placed(self._w, x, self._plan.out, self._plan.sizes, box, literal(0, x.aval))

    def _arranged(self, x: Atom, order: Order, wanted: Order) -> Atom:
        return arranged(self._w, x, order, wanted, self._plan.sizes)
