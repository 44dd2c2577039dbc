"""Factors of relations and sparse arrays in bodies: evaluated for the entries of these, not for all indices.

Search terms: sampled dense-dense product, gather before compute, sparse tensor algebra. The read of a sparse array is a
sum over its entries, with a lookup for each coordinate: `Σ e. [i = r[e]] [j = c[e]] v[e]`. Where the lookups hold, i is
r[e] and j is c[e]; so what the read multiplies is evaluated at these, once for each entry. What an index of an outer
body was used for before is gathered along that index first. Source: Bernstein et al. 2020, section 7.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

import numpy as np

from tapeless.interpreters import vmap
from tapeless.interpreters.terms.lower_steps import wide
from tapeless.interpreters.writer import Writer, convert_type, fill_array, literal
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.bits import and_p
from tapeless.tracer.primitives.collective import all_gather_p
from tapeless.tracer.primitives.contraction import canonical_precision
from tapeless.tracer.primitives.ein import ein_p, reduce_terms
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, reshape_p
from tapeless.tracer.terms.affine import Affine, Variable, variable, variables
from tapeless.tracer.terms.term import Bracket, Lookup, Read, Term, is_case, term
from tapeless.tracer.types import ShapedArray

BOOL = np.dtype(bool)


class IndexAxis(NamedTuple):
    """The axis that a body is batched along for all values of an index: their number, and its name."""

    size: int
    name: Hashable


@dataclass(frozen=True)
class BodyIndices:
    """The indices among the inputs of a body, and other inputs with the outer indices that they may depend on."""

    indices: Mapping[Atom, IndexAxis]
    depending: Mapping[Atom, frozenset[Atom]]


NO_INDICES = BodyIndices({}, {})


class EntryPlace(NamedTuple):
    """An index as lookups have it: sign (coordinate - start), and the limits that are known of the coordinate."""

    coordinate: Atom
    sign: int
    start: int
    limits: tuple[int, int] | None

    def is_within(self, size: int) -> bool:
        """Tell whether the index is known to be from 0 to size - 1."""
        if self.limits is None:
            return False
        ends = [self.sign * (limit - self.start) for limit in self.limits]
        return min(ends) >= 0 and max(ends) < size


class SparseValue(NamedTuple):
    """A value of a body that is a sum over entries: its term, over operands, and the indices that these tell."""

    value: Atom
    term: Term
    operands: tuple[Atom, ...]
    entry: Variable
    places: Mapping[Atom, EntryPlace]

    @property
    def entries(self) -> int:
        """Count the entries."""
        return self.term.sizes[self.entry]

    @property
    def at_entry(self) -> tuple[Affine, ...]:
        """Return the access of arrays with an element for each entry."""
        return (variable(self.entry),)

    @property
    def is_truth(self) -> bool:
        return dtypes.is_bool(self.value.aval.dtype)

    @property
    def is_distinct(self) -> bool:
        """Tell whether one product at most is added, for all values of indices."""
        return all(_is_told(v, self) for v in range(len(self.term.sizes)))


def _is_told(v: Variable, s: SparseValue) -> bool:
    """Tell whether lookups are known to hold for one value of a variable at most."""
    access = (variable(v),)
    keyed = [b for b in s.term.brackets if isinstance(b, Lookup) and b.key and b.access == access]
    return bool(keyed) and len({s.operands[b.operand] for b in keyed}) >= keyed[0].key


def sparse_value(w: Writer, x: Atom, body: BodyIndices) -> SparseValue | None:
    """Find how a value, the same along all of its axes, is a sum over entries at an index; None if it is none."""
    eqn = w.made_by(x, broadcast_in_dim_p)
    eqn = w.made_by(eqn.invars[0] if eqn is not None else x, ein_p)
    return None if eqn is None or eqn.outvars[0].aval.shape else sum_over_entries(eqn, body)


def sum_over_entries(eqn: Equation, body: BodyIndices) -> SparseValue | None:
    """Find how what an equation computes, of any shape, is a sum over entries at an index; None if it is none."""
    if eqn.primitive is not ein_p or len(eqn.params["terms"]) != 1:
        return None
    (t,), operands = eqn.params["terms"], tuple(eqn.invars)
    found = [(v, a, p) for b in t.brackets if (told := _told(b, operands, body)) is not None for v, a, p in [told]]
    if not found:
        return None
    entry = found[0][0]
    return SparseValue(eqn.outvars[0], t, operands, entry, {a: p for v, a, p in reversed(found) if v == entry})


def _told(b: object, operands: Sequence[Atom], body: BodyIndices) -> tuple[Variable, Atom, EntryPlace] | None:
    """Find the entry, the index that a lookup tells of it, and what this is."""
    if not isinstance(b, Lookup) or is_case(b) or len(b.access) != 1 or b.index.variables or len(b.index.symbols) != 1:
        return None
    ((s, sign),), entry = b.index.symbols, b.access[0].variable
    index = operands[s.operand]
    axis = body.indices.get(index)
    if axis is None or entry is None or abs(sign) != 1 or s.low > 0 or s.high < axis.size - 1:
        return None
    limits = b.limits if b.is_within else None
    if abs(b.index.constant) >= 2**31 or (b.limits and not b.is_within):
        return None
    return entry, index, EntryPlace(operands[b.operand], sign, b.index.constant, limits)


# ---- values at entries ---------------------------------------------------------------------------------------


def at_entries(
    w: Writer, x: Atom, s: SparseValue, body: BodyIndices, always: bool = False, otherwise: int = 0
) -> Atom | None:
    """Evaluate a value at the entries of a sparse one: [entries, ...], where no entry is `otherwise`.

    None if it does not depend on an index that entries tell; and, unless `always`, if it has no more elements for all
    values of these than there are entries.
    """
    depends = _dependence(w, frozenset(s.places), body)
    on = depends.get(x, frozenset())
    indices = [i for i in s.places if i in on]
    if not indices or (s.entries >= prod([body.indices[i].size for i in indices]) and not always):
        return None
    equations, inputs = _computing(w, x, depends)
    places = {i: _position(w, s.places[i], body.indices[i].size, i.aval) for i in indices}
    mapped, others = [v for v in inputs if v in depends], [v for v in inputs if v not in depends]
    program = Jaxpr([*mapped, *others], equations, [x])
    given = [places[v] if v in places else _gathered(w, v, depends[v], places, body) for v in mapped]
    batched = vmap.batch_jaxpr(program, s.entries, (*[0] * len(mapped), *[None] * len(others)))
    known: dict[Atom, int] = {v: body.indices[i].size for i, v in zip(mapped, batched.invars) if i in places}
    (y,) = w.inlined(_without_clips(batched, known), [*given, *others])
    for i in indices:
        if not s.places[i].is_within(body.indices[i].size):
            y = select_entries(w, _inside(w, s.places[i], body.indices[i].size), y, otherwise)
    others = indices_in(w, x, body).difference(indices)
    return _where_others_hold(w, s, y, indices, otherwise) if others else y


def indices_in(w: Writer, x: Atom, body: BodyIndices) -> frozenset[Atom]:
    """Find the indices that a value may depend on."""
    return _dependence(w, frozenset(body.indices), body).get(x, frozenset())


def _where_others_hold(w: Writer, s: SparseValue, y: Atom, indices: Sequence[Atom], otherwise: int) -> Atom:
    """Choose values at entries where brackets hold that are not lookups of these indices."""
    lookups = [b for b in s.term.brackets if isinstance(b, Lookup) and b.access == s.at_entry]
    told = [b for b in lookups if [s.operands[x.operand] for x, _ in b.index.symbols] in [[i] for i in indices]]
    rest = [b for b in s.term.brackets if b not in told]
    if not rest:
        return y
    t = term(s.at_entry, s.term.sizes, (), rest)
    return select_entries(w, write_sum(w, [t], s.operands, (s.entries,), ShapedArray((), BOOL)), y, otherwise)


def _dependence(w: Writer, indices: frozenset[Atom], body: BodyIndices) -> dict[Atom, frozenset[Atom]]:
    """Map values to those of some indices that they may depend on, if they depend on any."""
    found = {i: frozenset([i]) for i in indices}
    found.update({x: outer & indices for x, outer in body.depending.items() if not outer.isdisjoint(indices)})
    for eqn in w.eqns:
        own = [found[v] for v in eqn.invars if v in found]
        if own:
            found.update(dict.fromkeys(eqn.outvars, frozenset().union(*own)))
    return found


def _computing(w: Writer, x: Atom, within: Mapping[Atom, object]) -> tuple[list[Equation], list[Var]]:
    """List the equations that compute a value, among those with results `within`, and the atoms they read of others."""
    needed, found = {x}, list[Equation]()
    for eqn in reversed(w.eqns):
        if not needed.isdisjoint(eqn.outvars) and not within.keys().isdisjoint(eqn.outvars):
            found.append(eqn)
            needed.update(eqn.invars)
    made = {v for eqn in found for v in eqn.outvars}
    read = dict.fromkeys([x, *[v for eqn in reversed(found) for v in eqn.invars]])
    return found[::-1], [v for v in read if isinstance(v, Var) and v not in made]


def _without_clips(program: Jaxpr, sizes: Mapping[Atom, int]) -> Jaxpr:
    """Note in the lookups of a program which inputs are positions from 0 to a size: these need not be clipped."""

    def noted(eqn: Equation, b: Bracket) -> Bracket:
        size = sizes.get(eqn.invars[b.operand]) if isinstance(b, Lookup) else None
        if size is None or not isinstance(b, Lookup) or b.limits is None or b.limits[0] > 0 or b.limits[1] < size - 1:
            return b
        return replace(b, is_within=True)

    def changed(eqn: Equation) -> Equation:
        if eqn.primitive is not ein_p or sizes.keys().isdisjoint(eqn.invars):
            return eqn
        terms = tuple([t.with_brackets([noted(eqn, b) for b in t.brackets]) for t in eqn.params["terms"]])
        return eqn.replace(params={**eqn.params, "terms": terms})

    return program.replace(eqns=[changed(eqn) for eqn in program.eqns])


def _position(w: Writer, p: EntryPlace, size: int, aval: ShapedArray) -> Atom:
    """The values of an index at entries, of its type; where they are outside of its range, others."""
    x = p.coordinate
    if not p.is_within(size):
        low, high = sorted([p.start, p.start + p.sign * (size - 1)])
        x = wide(w, x)
        x = w.write(e.clamp_p, literal(low, x.aval), x, literal(high, x.aval))
    if x.aval.dtype != aval.dtype:
        x = w.write(e.convert_element_type_p, x, dtype=aval.dtype, weak_type=False)
    x = w.write(e.sub_p, x, literal(p.start, x.aval)) if p.start else x
    return x if p.sign == 1 else w.write(e.neg_p, x)


def _inside(w: Writer, p: EntryPlace, size: int) -> Atom:
    """Tell where an index is in its range."""
    low, high = sorted([p.start, p.start + p.sign * (size - 1)])
    x = wide(w, p.coordinate)
    above, below = w.write(e.ge_p, x, fill_array(w, low, x.aval)), w.write(e.le_p, x, fill_array(w, high, x.aval))
    return w.write(and_p, above, below)


def _gathered(w: Writer, v: Var, on: frozenset[Atom], places: Mapping[Atom, Atom], body: BodyIndices) -> Atom:
    """The values at entries of what was computed for each value of outer indices."""
    indices = [i for i in places if i in on]
    x, shape = v, v.aval.shape
    for i in reversed(indices):
        axis = body.indices[i]
        x = w.write(reshape_p, x, shape=(1, *x.aval.shape))
        x = w.write(all_gather_p, x, axis_names=(axis.name,), axis_size=axis.size, axis=0, groups=None)
    n = len(indices)
    sizes = [places[indices[0]].aval.shape[0], *[body.indices[i].size for i in indices], *shape]
    entry, *every = variables(sizes)
    brackets = [
        Lookup(every[k], k + 1, (entry,), (0, body.indices[i].size - 1), is_within=True) for k, i in enumerate(indices)
    ]
    t = term((entry, *every[n:]), sizes, [Read(0, tuple(every))], brackets)
    return write_sum(w, [t], [x, *[places[i] for i in indices]], (sizes[0], *shape), v.aval)


def select_entries(w: Writer, mask: Atom, y: Atom, otherwise: int = 0, axis: int = 0) -> Atom:
    """Choose what a mask of entries, along an axis, holds for, and a number elsewhere."""
    if y.aval.shape != mask.aval.shape:
        mask = w.write(broadcast_in_dim_p, mask, shape=y.aval.shape, dims=(axis,))
    return w.write(e.select_n_p, mask, fill_array(w, otherwise, y.aval), y)


# ---- sums of terms ----------------------------------------------------------------------------------------------


def write_sum(
    w: Writer, terms: Sequence[Term], operands: Sequence[Atom], shape: tuple[int, ...], of: ShapedArray
) -> Atom:
    """Write a sum of terms over numbered operands, in the dtype of `of`."""
    aval, distinct = of.update(shape=shape, weak_type=False), list(dict.fromkeys(operands))
    numbered = [t.with_operands(lambda k: distinct.index(operands[k])) for t in terms]
    given = [convert_type(w, x, x.aval.update(weak_type=False)) for x in distinct]
    found = reduce_terms(numbered, [x.aval for x in given], shape, aval.dtype)
    if not found.terms:
        return fill_array(w, 0, aval)
    params = found.params(shape, aval.dtype, canonical_precision(None))
    return w.write(ein_p, *[given[k] for k in found.operands], **params)
