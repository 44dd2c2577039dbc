"""Maxima and minima over indices of sums over the entries of a relation: of these, and of the number that is elsewhere.

Search terms: segment maximum, masked reduction, sparse reduction with an implicit fill value. Elsewhere a product with
a relation is 0, and a choice by one is the other case, if that is a number. It counts as one element, however many
there are, and as none if a relation holds everywhere.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.index.entries import write_sum
from tapeless.interpreters.simplifications.constant_values import number
from tapeless.interpreters.writer import Writer
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.jaxpr import Atom, Equation
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.elementwise import select_n_p
from tapeless.tracer.primitives.reduction import reduce_max_p
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.terms.affine import Variable, indices
from tapeless.tracer.terms.term import Lookup, Term, is_case, term, variables_in


class _Filled(NamedTuple):
    """An array by entries of distinct places: values, by a term without masks; masks of them; what is elsewhere."""

    term: Term
    operands: tuple[Atom, ...]
    masks: tuple[Atom, ...]
    elsewhere: Any


def extreme_of_entries(w: Writer, eqn: Equation) -> Atom | None:
    """Write a maximum or minimum over axes along which entries are looked up; None if it is no such."""
    found = _filled(w, eqn.invars[0])
    if found is None:
        return None
    t, operands, axes = found.term, found.operands, eqn.params["axes"]
    out, entry = [a.variable for a in t.out if a.variable is not None], _entry_of(t)
    if entry is None or len(set(out)) < len(t.out) or any(a.symbols for a in t.indices):
        return None
    lookups = {v: b for v, b in _lookups(t, entry) if v in out}
    others = [b for b in t.brackets if isinstance(b, Lookup) and b not in lookups.values()]
    if others or lookups.keys().isdisjoint([out[d] for d in axes]):
        return None
    rest = [v for v in out if v not in lookups]
    values = term(indices((entry, *rest)), t.sizes, t.factors, t.brackets, t.coefficient)
    z = write_sum(w, [values], operands, tuple([t.sizes[v] for v in (entry, *rest)]), eqn.outvars[0].aval)
    given = [z, *[operands[b.operand] for b in lookups.values()], *found.masks]
    plan = _Extreme(eqn.primitive is reduce_max_p, lookups, rest, [out[d] for d in axes], out, t.sizes, found.elsewhere)
    program = trace_closed(plan.computed, [x.aval for x in given])
    return w.inlined(program, given)[0]


class _Extreme(NamedTuple):
    """A maximum or minimum: the variables of the term that stand for axes, and the reduced ones of these."""

    is_max: bool
    lookups: dict[Variable, Lookup]
    rest: Sequence[Variable]
    reduced: Sequence[Variable]
    out: Sequence[Variable]
    sizes: Sequence[int]
    elsewhere: Any

    def computed(self, z: Any, *given: Any) -> Sequence[Any]:
        """Compute the extreme, of values [entries, ...], coordinates, and masks of values."""
        for mask in given[len(self.lookups) :]:
            z = tnp.where(mask.reshape(-1, *[1] * (z.ndim - 1)), z, self.elsewhere)
        reduce = tnp.max if self.is_max else tnp.min
        z = reduce(z, axis=tuple([1 + k for k, v in enumerate(self.rest) if v in self.reduced]))
        places = {v: _place(b, x) for (v, b), x in zip(self.lookups.items(), given)}
        inside = True
        for v, p in places.items():
            inside = inside & (p >= 0) & (p < self.sizes[v])
        kept = [v for v in places if v not in self.reduced]
        first, *others = [places[v] for v in kept] or [tnp.zeros_like(inside, dtype=np.int32)]
        shape = tuple([self.sizes[v] for v in kept]) or (1,)
        at = (tnp.where(inside, first, shape[0]), *others)  # beyond the end nothing is written
        total = prod([self.sizes[v] for v in places if v in self.reduced])
        count = tnp.zeros(shape, np.int32).at[at].add(1, mode="drop")
        least, greatest = (-np.inf, np.inf) if dtypes.is_inexact(z.dtype) else dtypes.limits(z.dtype)
        limit = least if self.is_max else greatest
        before = tnp.where(count < total, self.elsewhere, limit).astype(z.dtype)
        before = tnp.broadcast_to(before.reshape(*shape, *[1] * (z.ndim - 1)), (*shape, *z.shape[1:]))
        found = before.at[at].max(z, mode="drop") if self.is_max else before.at[at].min(z, mode="drop")
        found = found if kept else found[0]
        order = [*kept, *[v for v in self.rest if v not in self.reduced]]
        return (tnp.transpose(found, [order.index(v) for v in self.out if v not in self.reduced]),)


def _place(b: Lookup, x: Any) -> Any:
    """The value of a variable that a lookup finds."""
    ((_, sign),) = b.index.variables
    x = tnp.minimum(x, 2**63 - 1) if x.dtype == np.uint64 else x
    return (x.astype(np.int64) - b.index.constant) * sign


def _filled(w: Writer, x: Atom) -> _Filled | None:
    """Find how an array is made of entries: by a product with a relation, or a choice by one."""
    chosen = w.made_by(x, select_n_p)
    if chosen is None:
        eqn = w.made_by(x, ein_p)
        found = None if eqn is None else _distinct(eqn)
        return None if eqn is None or found is None else _Filled(found, tuple(eqn.invars), (), 0)
    mask, values = w.made_by(chosen.invars[0], ein_p), w.made_by(chosen.invars[-1], ein_p)
    elsewhere = number(w, chosen.invars[1])
    if mask is None or values is None or elsewhere is None or len(chosen.invars) != 3:
        return None
    of_mask, found = _distinct(mask), _distinct(values)
    if of_mask is None or found is None or set(_places(mask, of_mask)) != set(_places(values, found)):
        return None
    cases = [b for b in found.brackets if is_case(b)]
    found = found.with_brackets([b for b in found.brackets if b not in cases])
    return _Filled(found, tuple(values.invars), tuple([mask.invars[f.operand] for f in of_mask.factors]), elsewhere)


def _distinct(eqn: Equation) -> Term | None:
    """Return the only term of an equation, if at most one entry is written to each place; else None."""
    (t, *others), entry = eqn.params["terms"], _entry_of(eqn.params["terms"][0])
    keyed = [b for _, b in _lookups(t, entry) if b.key] if entry is not None else []
    is_distinct = bool(keyed) and len({eqn.invars[b.operand] for b in keyed}) >= keyed[0].key
    return t if is_distinct and not others else None


def _entry_of(t: Term) -> Variable | None:
    """Return the only variable that a term is summed over."""
    summed_over = set(range(len(t.sizes))) - variables_in(t.out)
    return summed_over.pop() if len(summed_over) == 1 else None


def _lookups(t: Term, entry: Variable) -> list[tuple[Variable, Lookup]]:
    """List the variables whose values entries hold, each with the lookup of its values."""
    found = list[tuple[Variable, Lookup]]()
    for b in t.brackets:
        place = b.index.signed_variable if isinstance(b, Lookup) and b.access == indices((entry,)) else None
        if isinstance(b, Lookup) and place is not None:
            found.append((place[0], b))
    return found


def _places(eqn: Equation, t: Term) -> list[Any]:
    """Describe the lookups of entries by what they look up, and the axis of the result."""
    entry, axes = _entry_of(t), {a.variable: d for d, a in enumerate(t.out)}
    found = [] if entry is None else _lookups(t, entry)
    return [(eqn.invars[b.operand], axes.get(v), b.index.constant, b.index.coefficient(v)) for v, b in found]
