"""The pass that writes every `ein` as other operations: the last before a program is lowered, which knows no `ein`.

Search terms: code generation of tensor comprehensions, sparse tensor compiler. Each term, in this order: its factors
are read, with an axis for each variable (`lower_accesses.py`); brackets become masks over the variables that they have,
but for index arrays, which are gathers and scatters, and `[i >= j]` with j in one factor, which is a cumulative sum
(`steps.py`); the factors are contracted where the masks hold (`lower_products.py`); the result is written in its place.
Terms that tile the result are joined, others added (`lower_terms.py`).
"""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.simplifications.constants import count
from tapeless.interpreters.simplifications.fusion import lower_steps
from tapeless.interpreters.simplifications.fusion.bands import in_bands, result_variables
from tapeless.interpreters.simplifications.fusion.lower_accesses import Accesses
from tapeless.interpreters.simplifications.fusion.lower_products import Indexed, MaskedProduct, summed
from tapeless.interpreters.simplifications.fusion.lower_terms import lowered
from tapeless.interpreters.simplifications.fusion.lower_views import Order, arranged
from tapeless.interpreters.simplifications.fusion.steps import Indexing, RunningSum, TermSteps, steps_of
from tapeless.interpreters.simplifications.index_arrays import WIDE, index_array, where
from tapeless.interpreters.simplify import Writer, filled, literal
from tapeless.tracer import core, dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, carried, map_carried
from tapeless.tracer.primitives import bits
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.ein import ein_p, operands_of
from tapeless.tracer.terms.affine import Access, Affine, Symbol, indices, variables
from tapeless.tracer.terms.term import (
    Bracket,
    IsZero,
    Lookup,
    NotNegative,
    Read,
    Term,
    Use,
    is_case,
    term,
    variables_of,
)
from tapeless.tracer.types import ShapedArray

_COUNTS = np.dtype(np.float32)  # of truth values: sums of these are 0 only if all are


def without_ein(jaxpr: Jaxpr) -> Jaxpr:
    """Write every `ein` of a program, and of the programs inside, as other operations.

    The same object if there is none. Remembered for as long as `jaxpr` lives.
    """
    if not _has_ein(jaxpr):
        return jaxpr
    cache = _written.setdefault(jaxpr, {})
    if not cache:
        cache[None] = _without_ein(jaxpr)
    return cache[None]


def _has_ein(jaxpr: Jaxpr) -> bool:
    cache = _having.setdefault(jaxpr, {})
    if not cache:
        cache[None] = ein_p in jaxpr.primitives or any(map(_has_ein, jaxpr.programs))
    return cache[None]


def _without_ein(jaxpr: Jaxpr) -> Jaxpr:
    w = Writer(jaxpr)
    for eqn in jaxpr.eqns:
        now = w.renamed(eqn)
        if eqn.primitive is ein_p:
            w.place = eqn.source
            w.substitute(eqn.outvars[0], _written_out(w, now))
        elif any(map(_has_ein, carried(eqn))):
            w.changed = True
            w.keep(now.replace(params=map_carried(without_ein, eqn)))
        else:
            w.keep(now)
    return w.finish()


_written, _having = core.program_cache(), core.program_cache()

# ---- one equation --------------------------------------------------------------------------------------------


def _written_out(w: Writer, eqn: Equation) -> Atom:
    (out,) = [v.aval for v in eqn.outvars]
    is_truth = dtypes.is_bool(out.dtype)
    aval = out.update(dtype=_COUNTS) if is_truth else out
    places, values = list[Term](), list[Atom]()
    for t in eqn.params["terms"]:
        after = in_bands(t)
        if after is None or 0 in out.shape or any(0 in eqn.invars[k].aval.shape for k in operands_of(after)):
            continue
        placed = _TermLowering(w, after.unit if is_truth else after, eqn.invars, aval, eqn.params["precision"]).placed()
        places.append(placed.at(len(values)))
        values.append(placed.value.value)
    total = lowered(w, tuple(places), values.__getitem__, aval, None)
    assert total is not None
    return w.write(e.ne_p, total, filled(w, 0, total.aval)) if is_truth else total


class _PlacedValue(NamedTuple):
    """A value, added to the result or subtracted from it, where an access writes it."""

    value: Indexed
    access: Access
    sizes: Sequence[int]
    sign: int

    def at(self, number: int) -> Term:
        """Make the term of this value, as an operand of this number."""
        used = {*self.value.order, *[v for a in self.access for v in variables_of(a)]}
        return term(
            self.access,
            {v: self.sizes[v] for v in used},
            [Read(number, indices(self.value.order))],
            (),
            self.sign,
        )


class _TermLowering:
    """The operations of one term."""

    def __init__(self, w: Writer, t: Term, operands: Sequence[Atom], aval: ShapedArray, precision: Any) -> None:
        self._w, self._term, self._operands, self._aval, self._precision = w, t, operands, aval, precision
        self._scalar = aval.update(shape=())
        self._symbols: dict[Symbol, Atom] = {}
        self._accesses = Accesses(w, t.sizes, self._symbol)
        self._kept = result_variables(t)

    def placed(self) -> _PlacedValue:
        """Write the sum of products, and find its place."""
        t, shape = self._term, self._aval.shape
        sign = -1 if np.real(t.coefficient) < 0 else 1
        found = self._summed(sign * t.coefficient)
        if any(a.symbols for a in t.out) or not self._accesses.is_place(t.out, shape):
            whole = self._accesses.written(found.value, found.order, t.out, shape)
            return _PlacedValue(Indexed(whole, tuple(range(len(shape)))), variables(shape), shape, sign)
        return _PlacedValue(found, t.out, t.sizes, sign)

    def _summed(self, coefficient: Any) -> Indexed:
        factors, masks = self._factors(), self._masks()
        lookups = [self._looked_up(b) for b in self._term.brackets if isinstance(b, Lookup) and not is_case(b)]
        inequalities = [b for b in self._term.brackets if isinstance(b, NotNegative)]
        choice = _StepChoice(self, factors, masks, lookups, inequalities)
        steps = choice.steps
        factors = [self._stepped(x, own, choice) for x, own in zip(choice.factors, steps.factors)]
        masks = [self._stepped(x, own, choice) for x, own in zip(choice.masks, steps.factors[len(factors) :])]
        kept = tuple(sorted(steps.kept))
        factors = self._scaled(factors, coefficient, prod([self.sizes[v] for v in kept]))
        p = MaskedProduct(tuple(factors), tuple(masks), kept, self.sizes, self._scalar, self._precision)
        found = summed(self._w, p)
        return found if steps.scatter is None else self._scattered(found, steps.scatter, choice)

    @property
    def w(self) -> Writer:
        return self._w

    @property
    def sizes(self) -> Sequence[int]:
        return self._term.sizes

    @property
    def kept(self) -> frozenset[int]:
        """The variables of the result."""
        return self._kept

    # factors

    def _symbol(self, s: Symbol) -> Atom:
        """The integer scalar that a symbol is."""
        if s not in self._symbols:
            x = lower_steps.wide(self._w, self._operands[s.operand])
            self._symbols[s] = self._clamped(x, (s.low, s.high))
        return self._symbols[s]

    def _clamped(self, x: Atom, limits: tuple[int, int]) -> Atom:
        low, high = [literal(n, x.aval) for n in limits]
        return self._w.write(e.clamp_p, low, x, high)

    def _factors(self) -> list[Indexed]:
        reads = self._term.factors
        found = [self._factor(f) for f in reads if f.use is not Use.DIVIDED]
        for f in reads:
            if f.use is Use.DIVIDED:
                found = self._divided(found, self._factor(f))
        return found

    def _factor(self, f: Read) -> Indexed:
        x = self._operands[f.operand]
        if x.aval.dtype != self._aval.dtype or x.aval.weak_type:
            x = self._w.write(e.convert_element_type_p, x, dtype=self._aval.dtype, weak_type=False)
        x = self._w.write(e.conj_p, x) if f.use is Use.CONJUGATED and dtypes.is_complex(x.aval.dtype) else x
        return Indexed(*self._accesses.read(x, f.access))

    def _divided(self, factors: list[Indexed], y: Indexed) -> list[Indexed]:
        """Divide a factor that has all variables of the divisor, or else one that has no others, or 1."""
        above = [k for k, x in enumerate(factors) if x.labels >= y.labels]
        below = [k for k, x in enumerate(factors) if x.labels <= y.labels]
        k = min(above, key=lambda k: factors[k].value.aval.size) if above else below[0] if below else None
        x = Indexed(literal(1, self._scalar), ()) if k is None else factors[k]
        order = x.order if above else y.order
        quotient = Indexed(self._w.write(e.div_p, self.arranged(x, order), self.arranged(y, order)), order)
        return [quotient, *[x for n, x in enumerate(factors) if n != k]]

    def arranged(self, x: Indexed, order: Order) -> Atom:
        """Give a value an axis for each of these variables."""
        return arranged(self._w, x.value, x.order, order, self.sizes)

    def _scaled(self, factors: list[Indexed], coefficient: Any, size: int) -> list[Indexed]:
        """Multiply the least factor by a number, or let the number be one."""
        if coefficient == 1:
            return factors
        number = self._number(coefficient)
        if not factors:
            return [Indexed(number, ())]
        k = min(range(len(factors)), key=lambda k: factors[k].value.aval.size)
        x = factors[k]
        return [*factors[:k], Indexed(self._w.write(e.mul_p, number, x.value), x.order), *factors[k + 1 :]]

    def _number(self, coefficient: Any) -> Atom:
        if dtypes.is_integer(self._aval.dtype):
            number = count(self._w, coefficient, self._scalar)
            assert number is not None
            return number
        with np.errstate(over="ignore"):
            return literal(coefficient, self._scalar)

    # brackets

    def _masks(self) -> list[Indexed]:
        """Masks of equalities and of cases."""
        found = list[Indexed]()
        for b in self._term.brackets:
            if isinstance(b, IsZero):
                found.append(self.mask(b))
            elif is_case(b):
                found.append(self._case(b))
        return found

    def mask(self, b: Bracket) -> Indexed:
        """Compare indices: with an axis for each variable that a bracket has."""
        order = tuple(variables_of(b.index))
        return Indexed(where(self._w, b, order, tuple([self.sizes[v] for v in order]), self._symbol), order)

    def _case(self, b: Lookup) -> Indexed:
        x, case = self._operands[b.operand], b.index.constant
        if dtypes.is_bool(x.aval.dtype) and case in (0, 1) and b.limits in (None, (0, 1)):
            x = x if case else self._w.write(bits.not_p, x)
        else:
            x = lower_steps.wide(self._w, x)
            x = x if b.limits is None else self._clamped(x, b.limits)
            x = self._w.write(e.eq_p, x, filled(self._w, case, x.aval))
        return Indexed(*self._accesses.read(x, b.access))

    def _looked_up(self, b: Lookup) -> "_LookedUpIndex":
        x = lower_steps.wide(self._w, self._operands[b.operand])
        x = x if b.limits is None else self._clamped(x, b.limits)
        return _LookedUpIndex(b.index, Indexed(*self._accesses.read(x, b.access)), b.limits)

    def equal(self, found: "_LookedUpIndex") -> Indexed:
        """Compare an index with what was looked up."""
        own = tuple(variables_of(found.place))
        order = (*found.value.order, *[v for v in own if v not in found.value.labels])
        shape = tuple([self.sizes[v] for v in order])
        index = index_array(self._w, found.place, order, shape, WIDE, self._symbol)
        return Indexed(self._w.write(e.eq_p, index, self.arranged(found.value, order)), order)

    def between(self, x: Indexed, low: int, high: int) -> Indexed:
        """Compare positions with the least and the greatest that there may be."""
        aval = x.value.aval
        above = self._w.write(e.ge_p, x.value, filled(self._w, low, aval))
        below = self._w.write(e.le_p, x.value, filled(self._w, high, aval))
        return Indexed(self._w.write(bits.and_p, above, below), x.order)

    # steps

    def _stepped(self, x: Indexed, steps: Sequence[Any], choice: "_StepChoice") -> Indexed:
        for step in steps:
            if isinstance(step, Indexing):
                found = lower_steps.gathered(self._w, *x, step, self._positions(step, choice))
            else:
                found = lower_steps.running(self._w, *x, step, self.sizes[step.upto])
            x = Indexed(*found)
        return x

    def _positions(self, step: Indexing, choice: "_StepChoice") -> list[Atom]:
        return [self.arranged(choice.positions[p.number], step.order) for p in step.positions]

    def _scattered(self, x: Indexed, step: Indexing, choice: "_StepChoice") -> Indexed:
        wanted = tuple(sorted(self._kept))
        value = self.arranged(x, lower_steps.windows(wanted, step))
        zeros = filled(self._w, 0, value.aval.update(shape=tuple([self.sizes[v] for v in wanted])))
        positions = self._positions(step, choice)
        return Indexed(lower_steps.scattered(self._w, value, zeros, wanted, step, positions), wanted)


class _LookedUpIndex(NamedTuple):
    """The bracket [place = value], the value being within limits."""

    place: Affine
    value: Indexed
    limits: tuple[int, int] | None


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
            if not self._takes(found):
                self.masks.append(lowering.equal(found))
        waiting = [b for b in inequalities if not self._may_run(b)]
        self.masks += [lowering.mask(b) for b in waiting]
        self._choose_early()
        for b in inequalities:
            if b not in waiting and not self._runs(b):
                self.masks.append(lowering.mask(b))
        steps = self._steps(self._chosen)
        assert steps is not None
        self.steps: TermSteps = steps

    def _steps(self, brackets: Sequence[Bracket]) -> TermSteps | None:
        labels = [x.labels for x in (*self.factors, *self.masks)]
        shapes = [x.value.aval.shape for x in self.positions]
        return steps_of(brackets, shapes, labels, self._lowering.kept, self._lowering.sizes)

    def _takes(self, found: _LookedUpIndex) -> bool:
        """Take what was looked up for positions, if gathers or a scatter have them."""
        index, sizes = found.place, self._lowering.sizes
        if index.symbols or [abs(c) for _, c in index.variables] != [1]:
            return False
        limits, (low, high) = found.limits, index.bounds(sizes)
        is_outside = limits is None or limits[0] < low or limits[1] > high
        needs_mask = is_outside and index.variables[0][0] not in self._lowering.kept
        limits = (low, high) if needs_mask else limits
        b = Lookup(index, len(self.positions), indices(found.value.order), limits)
        self.positions.append(found.value)
        if self._steps([*self._chosen, b]) is None:
            self.positions.pop()
            return False
        self._chosen.append(b)
        if needs_mask:
            self.masks.append(self._lowering.between(found.value, low, high))
        return True

    def _may_run(self, b: NotNegative) -> bool:
        """Tell whether an inequality is of indices that no factor has together."""
        own = frozenset(variables_of(b.index))
        return not any(own <= labels for labels in (*[x.labels for x in self.factors], self._lowering.kept))

    def _choose_early(self) -> None:
        """Choose from the only factor, where it has all indices of a mask, before it is summed."""
        if len(self.factors) == 1:
            x, lowering = self.factors[0], self._lowering
            for mask in [m for m in self.masks if m.labels <= x.labels]:
                chosen = lowering.w.write(
                    e.select_n_p, lowering.arranged(mask, x.order), filled(lowering.w, 0, x.value.aval), x.value
                )
                x = Indexed(chosen, x.order)
            self.masks = [m for m in self.masks if not m.labels <= x.labels]
            self.factors = [x]

    def _runs(self, b: NotNegative) -> bool:
        """Take an inequality for a cumulative sum, if this is of a factor."""
        found = self._steps([*self._chosen, b])
        if found is None or b in found.brackets:
            return False
        of_masks = found.factors[len(self.factors) :]
        if any(isinstance(step, RunningSum) for steps in of_masks for step in steps):
            return False
        self._chosen.append(b)
        return True
