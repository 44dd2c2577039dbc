"""Lower sums of terms to array primitives.

Search terms: code generation of tensor comprehensions, sparse tensor compiler. For each term, in this order: its
factors are read, with an axis for each variable (`lower_accesses.py`); brackets become masks over their variables,
except that index arrays become gathers and scatters, and `[i >= j]` with j in one factor a cumulative sum (`steps.py`);
the factors are contracted where the masks hold (`lower_products.py`); the result is written in its place.
Terms that tile the result are concatenated, others added.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.simplifications.constant_values import count
from tapeless.interpreters.terms import lower_steps
from tapeless.interpreters.terms.index_arrays import WIDE, index_array, where
from tapeless.interpreters.terms.lower_accesses import Accesses
from tapeless.interpreters.terms.lower_products import Indexed, MaskedProduct, select_where, write_product_sum
from tapeless.interpreters.terms.lower_views import Order, arrange_axes, pad_value, place_in_box
from tapeless.interpreters.terms.plan import placed_axes
from tapeless.interpreters.terms.steps import Indexing, Labels, RunningSum, TermSteps, steps_of
from tapeless.interpreters.terms.tiles import Box, Tile, Tiling, tiling, whole_box, written_box
from tapeless.interpreters.writer import Writer, convert_type, fill_array, literal
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives import bits
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.terms.affine import Affine, Symbol, indices
from tapeless.tracer.terms.term import (
    Bracket,
    Coefficient,
    IsZero,
    Lookup,
    NotNegative,
    Read,
    Sum,
    Term,
    Use,
    is_case,
    variables_in,
    variables_of,
)
from tapeless.tracer.types import ShapedArray


def lower_sum(
    w: Writer, terms: Sum, atoms: Callable[[int], Atom], aval: ShapedArray, precision: Any, guarded: bool = False
) -> Atom | None:
    """Write a sum of terms as an array of type `aval`; None if a coefficient is no number of its dtype.

    Args:
      atoms: returns the value of an operand.
      precision: of contractions; None for the full one.
      guarded: no product is evaluated where its brackets fail. Else each term must have a plan (`plan.plan_term`).
    """
    if not terms:
        return fill_array(w, 0, aval)
    lowerings = [_TermLowering(w, t, atoms, aval, precision, guarded) for t in terms]
    if not all(each.has_number for each in lowerings):
        return None
    return convert_type(
        w, _tiled(w, tiling([each.box for each in lowerings]), whole_box(aval.shape), lowerings, aval), aval
    )


def _tiled(w: Writer, tiles: Tiling, box: Box, lowerings: "Sequence[_TermLowering]", aval: ShapedArray) -> Atom:
    """Write the terms of tiles in a box, with zeros around."""
    if isinstance(tiles, Tile):
        if not tiles.terms:
            return fill_array(w, 0, aval.update(shape=tuple([high - low for low, high in box])))
        return _added(w, [lowerings[k] for k in tiles.terms], tiles.box, box)
    parts = [_tiled(w, inner, own, lowerings, aval) for own, inner in tiles.parts]
    return _within(w, w.write(s.concatenate_p, *parts, dimension=tiles.axis), tiles.box, box)


def _added(w: Writer, lowerings: "Sequence[_TermLowering]", inner: Box, box: Box) -> Atom:
    """Add up terms in the box around all of them; negative ones are subtracted, not negated."""
    ordered = sorted(lowerings, key=lambda each: each.is_negative)
    if len(ordered) == 1:
        return ordered[0].result(1, box)
    total = ordered[0].result(1, inner)
    for each in ordered[1:]:
        found = each.result(-1 if each.is_negative else 1, inner)
        total = w.write(e.sub_p if each.is_negative else e.add_p, total, found)
    return _within(w, total, inner, box)


def _within(w: Writer, x: Atom, box: Box, outer: Box) -> Atom:
    """Pad the value of a box with zeros to the box `outer`."""
    if box == outer:
        return x
    config = [(low - first, last - high, 0) for (low, high), (first, last) in zip(box, outer)]
    return pad_value(w, x, config, literal(0, x.aval))


class _TermLowering:
    """The lowering of one term."""

    def __init__(
        self, w: Writer, t: Term, atoms: Callable[[int], Atom], aval: ShapedArray, precision: Any, guarded: bool
    ) -> None:
        self.w, self._term, self._atoms, self._aval = w, t, atoms, aval
        self._precision, self._guarded, self._scalar = precision, guarded, aval.update(shape=())
        self._symbols: dict[Symbol, Atom] = {}
        place = placed_axes(t, aval.shape)
        self._accesses = Accesses(w, place.sizes, self._symbol)
        self._place = place if self._accesses.is_place(t.out, aval.shape) else None
        self._wanted: Order = tuple([d.variable for a in place.out or () for d in a.digits])
        self.sizes: tuple[int, ...] = place.sizes
        self.kept: Labels = variables_in(t.out)

    @property
    def is_negative(self) -> bool:
        """Tell whether the coefficient, or its real part, is negative."""
        return np.real(self._term.coefficient) < 0

    @property
    def box(self) -> Box:
        """Return the box that the term writes into."""
        return whole_box(self._aval.shape) if self._place is None else written_box(self._place.out or ())

    @property
    def has_number(self) -> bool:
        """Tell whether the dtype holds the coefficient, so that multiplying by it equals repeated addition."""
        c, factors = self._term.coefficient, any(f.use is not Use.DIVIDED for f in self._term.factors)
        if self._guarded or c in (1, -1):
            return True
        if factors or dtypes.is_integer(self._aval.dtype):
            return count(self.w, c, self._scalar) is not None
        with np.errstate(over="ignore"):
            return c != c or complex(literal(c, self._scalar).value) == c

    def result(self, sign: int, box: Box) -> Atom:
        """Write the term times `sign` (1 or -1), in a box that contains `self.box`."""
        found, t = self._summed(self._term.coefficient * sign), self._term
        if self._place is None:
            return self._accesses.written(*found, t.out, self._aval.shape)
        x = self.arranged(found, self._wanted)
        for b in self._place.brackets:
            x = select_where(self.w, where(self.w, b, self._wanted, x.aval.shape), x)
        return place_in_box(self.w, x, self._place.out or (), self.sizes, box, literal(0, x.aval))

    def _summed(self, coefficient: Coefficient) -> Indexed:
        factors, masks = self._factors(), self._masks()
        lookups = [self._looked_up(b) for b in self._term.brackets if isinstance(b, Lookup) and not is_case(b)]
        inequalities = [b for b in self._term.brackets if isinstance(b, NotNegative)]
        choice = _StepChoice(self, factors, masks, lookups, inequalities)
        steps = choice.steps
        factors = [self._stepped(x, own, choice) for x, own in zip(choice.factors, steps.factors)]
        masks = [self._stepped(x, own, choice) for x, own in zip(choice.masks, steps.factors[len(factors) :])]
        scaled = self._scaled(factors, coefficient)
        kept = [v for v in self._wanted if v in steps.kept]
        kept = (*kept, *sorted(steps.kept.difference(kept)))
        p = MaskedProduct(tuple(scaled), tuple(masks), kept, self.sizes, self._scalar, self._precision, self._guarded)
        found = write_product_sum(self.w, p)
        return found if steps.scatter is None else self._scattered(found, steps.scatter, choice)

    # factors

    def _symbol(self, s: Symbol) -> Atom:
        """Write the value of a symbol: an integer scalar, clamped to its bounds."""
        if s not in self._symbols:
            x = lower_steps.wide(self.w, self._atoms(s.operand))
            self._symbols[s] = self._clamped(x, (s.low, s.high))
        return self._symbols[s]

    def _clamped(self, x: Atom, limits: tuple[int, int]) -> Atom:
        low, high = [literal(n, x.aval) for n in limits]
        return self.w.write(e.clamp_p, low, x, high)

    def _factors(self) -> list[Indexed]:
        reads = self._term.factors
        found = [self._factor(f) for f in reads if f.use is not Use.DIVIDED]
        for f in reads:
            if f.use is Use.DIVIDED:
                found = self._divided(found, self._factor(f))
        return found

    def _factor(self, f: Read) -> Indexed:
        x = self._atoms(f.operand)
        if x.aval.dtype != self._aval.dtype or (self._guarded and x.aval.weak_type):
            x = convert_type(self.w, x, self._aval)
        x = self.w.write(e.conj_p, x) if f.use is Use.CONJUGATED and dtypes.is_complex(x.aval.dtype) else x
        return Indexed(*self._accesses.read(x, f.access))

    def _divided(self, factors: list[Indexed], y: Indexed) -> list[Indexed]:
        """Divide the smallest factor with all variables of the divisor, else a factor that has no others, else 1."""
        above = [k for k, x in enumerate(factors) if x.labels >= y.labels]
        below = [k for k, x in enumerate(factors) if x.labels <= y.labels]
        k = min(above, key=lambda k: factors[k].value.aval.size) if above else below[0] if below else None
        x = Indexed(literal(1, self._scalar), ()) if k is None else factors[k]
        order = x.order if above else y.order
        quotient = Indexed(self.w.write(e.div_p, self.arranged(x, order), self.arranged(y, order)), order)
        return [quotient, *[x for n, x in enumerate(factors) if n != k]]

    def arranged(self, x: Indexed, order: Order) -> Atom:
        """Broadcast and transpose a value to the axes `order`."""
        return arrange_axes(self.w, x.value, x.order, order, self.sizes)

    def _scaled(self, factors: list[Indexed], coefficient: Coefficient) -> list[Indexed]:
        """Multiply the smallest factor by the coefficient; without factors, the coefficient becomes one."""
        if coefficient == 1:
            return factors
        if not factors:
            return [Indexed(self._number(coefficient), ())]
        k = min(range(len(factors)), key=lambda k: factors[k].value.aval.size)
        x, order = factors[k]
        x = self.w.write(e.neg_p, x) if coefficient == -1 else self.w.write(e.mul_p, self._number(coefficient), x)
        return [*factors[:k], Indexed(x, order), *factors[k + 1 :]]

    def _number(self, coefficient: Coefficient) -> Atom:
        if dtypes.is_integer(self._aval.dtype):
            number = count(self.w, coefficient, self._scalar)
            assert number is not None
            return number
        with np.errstate(over="ignore"):
            return literal(coefficient, self._scalar)

    # brackets

    def _masks(self) -> list[Indexed]:
        """Write the masks of equalities and of cases."""
        brackets = [b for b in self._term.brackets if isinstance(b, IsZero) or is_case(b)]
        return [self._case(b) if isinstance(b, Lookup) else self.mask(b) for b in brackets]

    def mask(self, b: Bracket) -> Indexed:
        """Write the mask of a comparison of indices, with an axis for each variable of the bracket."""
        order = tuple(variables_of(b.index))
        return Indexed(where(self.w, b, order, tuple([self.sizes[v] for v in order]), self._symbol), order)

    def _case(self, b: Lookup) -> Indexed:
        x, case = self._atoms(b.operand), b.index.constant
        if dtypes.is_bool(x.aval.dtype) and case in (0, 1) and b.limits in (None, (0, 1)):
            x = x if case else self.w.write(bits.not_p, x)
        else:
            x = lower_steps.wide(self.w, x)
            x = x if b.limits is None else self._clamped(x, b.limits)
            x = self.w.write(e.eq_p, x, fill_array(self.w, case, x.aval))
        return Indexed(*self._accesses.read(x, b.access))

    def _looked_up(self, b: Lookup) -> "_LookedUpIndex":
        return _LookedUpIndex(
            b.index, Indexed(*self._accesses.read(self._atoms(b.operand), b.access)), b.limits, b.is_within
        )

    def is_alone(self, place: Affine) -> bool:
        """Tell whether an index is a summed variable that nothing else has: only whether it has a value matters."""
        found = place.signed_variable
        return found is not None and sum(a.coefficient(found[0]) != 0 for a in self._term.indices) == 1

    def clamped(self, found: "_LookedUpIndex") -> Indexed:
        """Clamp looked-up values to their limits."""
        x = lower_steps.wide(self.w, found.value.value)
        return found.value._replace(
            value=x if found.limits is None or found.is_within else self._clamped(x, found.limits)
        )

    def equal(self, found: "_LookedUpIndex") -> Indexed:
        """Write the mask that is true where an index equals the looked-up value."""
        x, own = self.clamped(found), tuple(variables_of(found.place))
        order = (*x.order, *[v for v in own if v not in x.labels])
        shape = tuple([self.sizes[v] for v in order])
        index = index_array(self.w, found.place, order, shape, WIDE, self._symbol)
        return Indexed(self.w.write(e.eq_p, index, self.arranged(x, order)), order)

    def between(self, x: Indexed, low: int, high: int) -> Indexed:
        """Write the mask that is true where positions are from `low` to `high`."""
        aval = x.value.aval
        above = self.w.write(e.ge_p, x.value, fill_array(self.w, low, aval))
        below = self.w.write(e.le_p, x.value, fill_array(self.w, high, aval))
        return Indexed(self.w.write(bits.and_p, above, below), x.order)

    # steps

    def _stepped(self, x: Indexed, steps: Sequence[Any], choice: "_StepChoice") -> Indexed:
        for step in steps:
            if isinstance(step, Indexing):
                found = lower_steps.write_gather(self.w, *x, step, self._positions(step, choice))
            else:
                found = lower_steps.running(self.w, *x, step, self.sizes[step.upto])
            x = Indexed(*found)
        return x

    def _positions(self, step: Indexing, choice: "_StepChoice") -> list[Atom]:
        return [self.arranged(choice.positions[p.number], step.order) for p in step.positions]

    def _scattered(self, x: Indexed, step: Indexing, choice: "_StepChoice") -> Indexed:
        wanted = tuple(sorted(self.kept))
        value = self.arranged(x, lower_steps.windows(wanted, step))
        zeros = fill_array(self.w, 0, value.aval.update(shape=tuple([self.sizes[v] for v in wanted])))
        positions = self._positions(step, choice)
        return Indexed(lower_steps.write_scatter(self.w, value, zeros, wanted, step, positions), wanted)


class _LookedUpIndex(NamedTuple):
    """The bracket [place = value], with the value clamped to limits."""

    place: Affine
    value: Indexed
    limits: tuple[int, int] | None
    is_within: bool = False


class _StepChoice:
    """The choice of brackets that become gathers, scatters and cumulative sums; all others become masks."""

    def __init__(
        self,
        lowering: _TermLowering,
        factors: list[Indexed],
        masks: list[Indexed],
        lookups: Sequence[_LookedUpIndex],
        inequalities: Sequence[NotNegative],
    ) -> None:
        self._lowering, self.factors, self.masks = lowering, factors, masks
        self.positions: list[Indexed] = []
        self._chosen: list[Bracket] = []
        for found in lookups:
            if lowering.is_alone(found.place):
                self.masks.append(lowering.between(lowering.clamped(found), *found.place.bounds(lowering.sizes)))
            elif not self._takes(found):
                self.masks.append(lowering.equal(found))
        late = [b for b in inequalities if self._may_run(b)]
        self.masks += [lowering.mask(b) for b in inequalities if b not in late]
        self._choose_early()
        self._choose_running(late)
        steps = self._steps(self._chosen)
        assert steps is not None and not steps.brackets
        self.steps: TermSteps = steps

    def _steps(self, brackets: Sequence[Bracket], undecided: Sequence[Bracket] = ()) -> TermSteps | None:
        """Find the steps that replace brackets if the `undecided` ones become masks; None if that is impossible."""
        labels = [x.labels for x in (*self.factors, *self.masks)]
        labels += [frozenset(variables_of(b.index)) for b in undecided]
        shapes = [x.value.aval.shape for x in self.positions]
        return steps_of(brackets, shapes, labels, self._lowering.kept, self._lowering.sizes)

    def _takes(self, found: _LookedUpIndex) -> bool:
        """Use a lookup for the positions of gathers or a scatter; tell whether that is possible."""
        index, lowering, sizes = found.place, self._lowering, self._lowering.sizes
        if index.signed_variable is None:
            return False
        limits, (low, high) = found.limits, index.bounds(sizes)
        is_outside = limits is None or limits[0] < low or limits[1] > high
        needs_mask = is_outside and index.variables[0][0] not in lowering.kept
        is_within = found.is_within and not needs_mask
        limits, value = ((low, high), lowering.clamped(found)) if needs_mask else (limits, found.value)
        b = Lookup(index, len(self.positions), indices(value.order), limits, is_within)
        self.positions.append(value)
        if self._steps([*self._chosen, b]) is None:
            self.positions.pop()
            return False
        self._chosen.append(b)
        if needs_mask:
            self.masks.append(lowering.between(value, low, high))
        return True

    def _may_run(self, b: NotNegative) -> bool:
        """Tell whether neither a factor nor the result has all variables of an inequality."""
        own = frozenset(variables_of(b.index))
        return not any(own <= labels for labels in (*[x.labels for x in self.factors], self._lowering.kept))

    def _choose_early(self) -> None:
        """Apply masks whose variables the only factor has as selects in it, before it is summed."""
        if len(self.factors) == 1:
            x, lowering = self.factors[0], self._lowering
            for mask in [m for m in self.masks if m.labels <= x.labels]:
                x = Indexed(select_where(lowering.w, lowering.arranged(mask, x.order), x.value), x.order)
            self.masks = [m for m in self.masks if not m.labels <= x.labels]
            self.factors = [x]

    def _choose_running(self, inequalities: Sequence[NotNegative]) -> None:
        """Turn inequalities into cumulative sums one by one, while that is possible; the others become masks."""
        left = list(inequalities)
        while b := next((b for b in left if self._runs(b, [other for other in left if other is not b])), None):
            self._chosen.append(b)
            left.remove(b)
        self.masks += [self._lowering.mask(b) for b in left]

    def _runs(self, b: NotNegative, undecided: Sequence[Bracket]) -> bool:
        """Tell whether an inequality can be a cumulative sum of a factor, given the brackets that are chosen before."""
        found = self._steps([*self._chosen, b], undecided)
        if found is None or found.brackets:
            return False
        of_masks = found.factors[len(self.factors) :]
        return not any(isinstance(step, RunningSum) for steps in of_masks for step in steps)
