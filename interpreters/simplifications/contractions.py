"""Sums of products, taken apart into factors and put together again by the least work.

The operands of a contraction or a sum are followed through products, broadcasts, permutations, reshapes, parts, zeros
around, masks of diagonals and other contractions. Every axis that is met becomes an index: what is found is a sum,
over some of the indices, of products of factors that have some of them each, which a `Plan` computes otherwise. A mask
`i = j + 1`, a part or zeros around make one of two indices the other; a reshape that joins axes makes several of one.
It is written down if that halves the elements computed, or is one contraction: for less, who wrote the program may
have had a reason. Partial sums must neither leave the range of the dtype nor be much larger than what they are parts
of: nothing is done in dtypes of few exponents, nor to differences that are exact, unless they are on diagonals apart.
Source: Bernstein et al. 2020.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import count
from math import prod
from typing import Any

from tapeless.interpreters import simplify
from tapeless.interpreters.simplifications.constants import filled, is_zero, number
from tapeless.interpreters.simplifications.indices import Equal, Indices
from tapeless.interpreters.simplifications.plans import Factor, Labels, Plan, Product
from tapeless.interpreters.simplifications.shape import after_ones
from tapeless.interpreters.simplifications.views import reshape_groups
from tapeless.interpreters.simplify import Writer
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.operands import without
from tapeless.tracer.primitives.reduction import reduce_sum_p
from tapeless.tracer.rules import Rules

BUDGET = 32  # equations that are followed from one
RANGE = 1e30  # what a float must be able to hold: with less, like 65504 of float16, partial sums are soon infinite
FACTORS = 8  # of one product, at most: with more, others than the first are left as they are


class _Kind(Enum):
    """What makes a value worth following."""

    SPREAD = "some of its factors lack an index, or have two that must be equal"
    SUM = "it is a sum of products itself"
    INDEX = "its elements are their positions along an axis"
    DIAGONAL = "it says where a position is equal to another, or to a number"


def factored(jaxpr: Jaxpr) -> Jaxpr:
    """The pass."""
    if not any(eqn.primitive in _ROOTS for eqn in jaxpr.eqns):
        return jaxpr
    kinds = _kinds(jaxpr.eqns, {})
    if not any(eqn.primitive in _ROOTS and any(x in kinds for x in eqn.invars) for eqn in jaxpr.eqns):
        return jaxpr
    w, counts = Writer(jaxpr), dict[Any, int](simplify.uses(jaxpr))
    for eqn in jaxpr.eqns:
        w.place = eqn.source
        n = len(w.eqns)
        promising = eqn.primitive in _ROOTS and any(w.now(x) in kinds for x in eqn.invars)
        found = _Search(w, counts, kinds, eqn).found() if promising else None
        if found is not None and w.replace(eqn, found):
            kinds.update(_kinds(w.eqns[n:], kinds))
            counts[found] = counts.get(found, 0) + counts.get(eqn.outvars[0], 0)
            continue
        w.keep(w.renamed(eqn))
    return w.finish()


def _kinds(eqns: Sequence[Equation], before: dict[Atom, _Kind]) -> dict[Atom, _Kind]:
    """Of more values that are worth following, why: found forwards, so that no search is in vain for long."""
    kinds: dict[Atom, _Kind] = {}
    for eqn in eqns:
        rule = _kind_of.get(eqn.primitive)
        if rule is not None:
            kind = rule(eqn, [kinds.get(x) or before.get(x) for x in eqn.invars])
            if kind is not None:
                kinds[eqn.outvars[0]] = kind
    return kinds


class _Search:
    """The attempt on one equation: `cost` is that of what is taken apart."""

    def __init__(self, w: Writer, counts: dict[Any, int], kinds: dict[Atom, _Kind], eqn: Equation) -> None:
        self.w, self._counts, self._kinds, self._eqn = w, counts, kinds, eqn
        self.sizes: dict[int, int] = {}
        self._split: dict[int, Labels] = {}  # indices that are made of others, which count in row-major order
        self.precision: Any = None
        self.cost, self.structured = 0, False
        self.aval = eqn.outvars[0].aval
        self._fresh, self._budget = count(), BUDGET

    def found(self) -> Atom | None:
        """The result by less work, or None."""
        if not _is_wide(self.aval.dtype):
            return None
        out = self.labels(self.aval.shape)
        products = self._root(out)
        if not products or not self.structured or any(len(p.factors) > FACTORS for p in products):
            return None
        return self._written([self._resolved(p) for p in products], out)

    def _written(self, products: Sequence[Product | None], out: Labels) -> Atom | None:
        """The sum of products, if that is less work than what was taken apart."""
        kept = [p for p in products if p is not None and not self._is_empty(p)]
        if None in products:
            return None
        if not kept:
            return filled(self.w, 0, self.aval)
        kept.sort(key=lambda p: p.negative)  # so that they are subtracted, not negated
        plans = [self._plan(p._replace(negative=kept[0].negative), out) for p in kept]
        new = sum(plan.cost for plan in plans) + (len(plans) - 1) * self.aval.size
        single = len(plans) == 1 and plans[0].steps == 1
        if new >= self.cost or (2 * new > self.cost and not single):
            return None
        total, *terms = [plan.write() for plan in plans]
        for term, p in zip(terms, kept[1:]):
            total = self.w.write(e.add_p if p.negative == kept[0].negative else e.sub_p, total, term)
        return self.w.write(s.reshape_p, total, shape=self.aval.shape) if self._split else total

    def _is_empty(self, p: Product) -> bool:
        """Whether there are no indices that are as they must be."""
        return Indices(self.sizes, p.summed, p.equal).is_empty

    def _plan(self, p: Product, out: Labels) -> Plan:
        return Plan(self.w, p, self.parts(out), self.sizes, self.aval, self.precision)

    def labels(self, shape: Sequence[int]) -> Labels:
        """New indices for axes."""
        made = tuple([next(self._fresh) for _ in shape])
        self.sizes.update(zip(made, shape))
        return made

    def _root(self, out: Labels) -> list[Product]:
        found = _ROOTS[self._eqn.primitive](self, self._eqn, out, [self.w.now(v) for v in self._eqn.invars])
        return [] if found is None else found

    def expand(self, x: Atom, labels: tuple[int | None, ...]) -> list[Product]:
        """What a value with these indices is a sum of."""
        eqn = self.w.definition(x) if x in self._kinds else self.w.made_by(x, s.transpose_p)
        rule = _followed.get(eqn.primitive) if eqn is not None else None
        if rule is not None and self._budget and None not in labels:
            self._budget -= 1
            before = self.cost, self.structured, self.precision
            found = rule(self, eqn, labels)
            if found is not None:
                if self._counts.get(x, 1) > 1:
                    self.cost = before[0]  # it is computed anyway: nothing is saved by not reading it
                return found
            self.cost, self.structured, self.precision = before
        return [Product((Factor(x, labels),))]

    def size(self, labels: Any) -> int:
        """Of an array with these indices."""
        return prod([self.sizes[k] for k in labels])

    def regrouped(self, sizes: Sequence[int], labels: Labels) -> Labels | None:
        """Indices of axes of these sizes, which a reshape makes axes that have `labels`; None if that is not seen."""
        if tuple(sizes) == self._shape(labels):
            return labels
        if len(sizes) == 1:
            (whole,) = self.labels(sizes)
            self._split[whole] = labels
            return (whole,)
        if len(labels) != 1:
            return None
        parts = self._split.setdefault(labels[0], self.labels(sizes))
        return parts if self._shape(parts) == tuple(sizes) else None

    def parts(self, labels: Any) -> tuple[Any, ...]:
        """Indices, with those that are made of others replaced by these."""
        return tuple([part for k in labels for part in (self.parts(self._split[k]) if k in self._split else (k,))])

    def _shape(self, labels: Labels) -> tuple[int, ...]:
        return tuple([self.sizes[k] for k in labels])

    def _resolved(self, p: Product) -> Product | None:
        """A product without indices that are made of others; None if two that must be equal are made differently."""
        equal: list[Equal] = []
        for constraint in p.equal:
            one, other = self.parts([constraint.one]), self.parts([constraint.other])
            if len(one) == len(other) == 1:
                equal.append(Equal(*one, *other, constraint.shift))
            elif self._shape(one) == self._shape(other) and not constraint.shift:
                equal += [Equal(i, j, 0) for i, j in zip(one, other)]
            else:
                return None
        factors = tuple([Factor(f.value, self.parts(f.labels)) for f in p.factors])
        return Product(factors, frozenset(self.parts(p.summed)), tuple(equal), p.negative)


def _is_wide(dtype: Any) -> bool:
    return not dtypes.is_inexact(dtype) or float(dtypes.finfo(dtype).max) > RANGE


# ---- what is followed: rule(search, eqn, labels) -> products, or None ------------------------------------------


def _broadcast(search: _Search, eqn: Equation, labels: Labels) -> list[Product]:
    (x,), shape = eqn.invars, eqn.params["shape"]
    inner = [labels[d] if n == shape[d] else None for d, n in zip(eqn.params["dims"], x.aval.shape)]
    search.structured = True
    return search.expand(x, tuple(inner))


def _transpose(search: _Search, eqn: Equation, labels: Labels) -> list[Product]:
    permutation = eqn.params["permutation"]
    return search.expand(eqn.invars[0], tuple([labels[permutation.index(d)] for d in range(len(labels))]))


def _reshape(search: _Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    (x,), inner = eqn.invars, list[int]()
    for before, after in reshape_groups(x.aval.shape, eqn.params["shape"]):
        found = search.regrouped(x.aval.shape[before], labels[after])
        if found is None:
            return None
        inner += found
    products = search.expand(x, tuple(inner))
    return None if _is_left(products, x) else products


def _pad(search: _Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    """Zeros around."""
    x, value = eqn.invars
    config = eqn.params["padding_config"]
    if not is_zero(search.w, value) or any(between for _, _, between in config):
        return None
    mostly = _is_mostly_zeros(eqn)
    search.structured |= mostly
    found = _moved(search, x, [before for before, _, _ in config], labels)
    return None if _is_left(found, x) and not mostly else found


def _is_mostly_zeros(eqn: Equation) -> bool:
    """Of what is padded."""
    return 2 * eqn.invars[0].aval.size <= eqn.outvars[0].aval.size


def _slice(search: _Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    if any(n != 1 for n in eqn.params["strides"]):
        return None
    found = _moved(search, eqn.invars[0], [-start for start in eqn.params["start_indices"]], labels)
    return None if _is_left(found, eqn.invars[0]) else found


def _moved(search: _Search, x: Atom, shifts: Sequence[int], labels: Labels) -> list[Product]:
    """[i = k + shift] x of k, summed over k, for each index i of which not all is that of x."""
    inner, equal = list(labels), list[Equal]()
    for d, (i, n, shift) in enumerate(zip(labels, x.aval.shape, shifts)):
        if n != search.sizes[i] or shift:
            (inner[d],) = search.labels([n])
            equal.append(Equal(i, inner[d], shift))
    mask = Product((), frozenset([k for _, k, _ in equal]), tuple(equal))
    return [mask.times(p) for p in search.expand(x, tuple(inner))]


def _is_left(products: Sequence[Product], x: Atom) -> bool:
    """Whether a value was not taken apart."""
    return len(products) == 1 and [f.value for f in products[0].factors] == [x]


def _mul(search: _Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    search.cost += eqn.outvars[0].aval.size
    sides = [search.expand(x, labels if x.aval.shape else ()) for x in eqn.invars]
    if all(len(side) > 1 for side in sides) or _is_opaque(sides, eqn):
        return None
    return [a.times(b) for a in sides[0] for b in sides[1]]


def _is_opaque(sides: Sequence[list[Product]], eqn: Equation) -> bool:
    """Whether a product is of two whole arrays: then it is better left alone."""
    return all(x.aval.shape and _is_left(side, x) for side, x in zip(sides, eqn.invars))


def _neg(search: _Search, eqn: Equation, labels: Labels) -> list[Product]:
    search.cost += eqn.outvars[0].aval.size
    return [p._replace(negative=not p.negative) for p in search.expand(eqn.invars[0], labels)]


def _add(search: _Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    """A sum is distributed over, if every addend has factors that lack an index."""
    search.cost += eqn.outvars[0].aval.size
    sides = [search.expand(x, labels) if x.aval.shape == eqn.outvars[0].aval.shape else None for x in eqn.invars]
    if any(side is None or not all(_is_sparse(search, p, labels) for p in side) for side in sides):
        return None
    left, right = sides
    exact = not search.w.linear and dtypes.is_inexact(search.aval.dtype) and all(map(_has_exact, sides))  # type: ignore[arg-type]
    if exact and not all(_are_apart(search, p, q) for p in left for q in right):  # type: ignore[union-attr]
        return None
    negative = eqn.primitive is e.sub_p
    return [*left, *[p._replace(negative=p.negative != negative) for p in right]]  # type: ignore[misc,union-attr]


def _is_sparse(search: _Search, p: Product, labels: Labels) -> bool:
    return bool(p.equal) or all(set(search.parts(f.labels)) != set(search.parts(labels)) for f in p.factors)


def _are_apart(search: _Search, p: Product, q: Product) -> bool:
    """Whether no element is one of both products: they are on diagonals that are not the same."""
    return Indices(search.sizes, p.summed | q.summed, p.equal + q.equal).is_empty


def _has_exact(side: Sequence[Product]) -> bool:
    """Whether an addend was not rounded: with another it may cancel to what rounded sums of each would drown."""
    return any(sum(type(f.value) is Var for f in p.factors) < 2 for p in side)


def _select(search: _Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    """[i = j] x, where the mask compares indices."""
    which, *cases = eqn.invars
    if len(cases) != 2 or not is_zero(search.w, cases[0]):
        return None
    mask = _mask(search, which, labels)
    if mask is None:
        return None
    search.cost += eqn.outvars[0].aval.size
    case = cases[1]
    return [mask.times(p) for p in search.expand(case, labels if case.aval.shape else ())]


def _convert(search: _Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    """The mask itself, as ones and zeros."""
    mask = _mask(search, eqn.invars[0], labels)
    return None if mask is None else [mask]


def _mask(search: _Search, mask: Atom, labels: tuple[int | None, ...]) -> Product | None:
    """That two indices are equal but for a shift, or one is a number; no label is that of what is repeated."""
    eqn = search.w.made_by(mask, s.broadcast_in_dim_p)
    if eqn is not None:
        (x,), shape, dims = eqn.invars, eqn.params["shape"], eqn.params["dims"]
        return _mask(search, x, tuple([labels[d] if n == shape[d] else None for n, d in zip(x.aval.shape, dims)]))
    eqn = search.w.made_by(mask, e.eq_p)
    sides = [] if eqn is None else [_position(search.w, x) for x in eqn.invars]
    if not sides or None in sides or sides[0][0] == sides[1][0]:  # type: ignore[index]
        return None
    (one, of_one), (other, of_other) = sides  # type: ignore[misc]
    constant = search.labels([1]) if None in (one, other) else ()
    i, j = [labels[axis] if axis is not None else constant[0] for axis in (one, other)]
    if i is None or j is None:
        return None
    search.structured = True
    return Product((), frozenset(constant), (Equal(i, j, of_other - of_one),))


def _position(w: Writer, x: Atom) -> tuple[int | None, int] | None:
    """The axis along which a value is the index, and what is added to that; no axis if it is a number everywhere."""
    known = number(w, x)
    if known is not None:
        return (None, int(known)) if known.dtype.kind in "iu" else None
    eqn = w.definition(x)
    if eqn is None:
        return None
    if eqn.primitive is s.iota_p:
        return eqn.params["dimension"], 0
    if eqn.primitive in (e.add_p, e.sub_p):
        return _shifted(w, eqn)
    moved = _axes_after(eqn)
    found = _position(w, eqn.invars[0]) if moved else None
    return (moved[found[0]], found[1]) if found is not None and found[0] in moved else None


def _axes_after(eqn: Equation) -> dict[int | None, int]:
    """Which axes of the operand are axes of the result, of what repeats or reshapes; none of others."""
    (out,) = eqn.outvars
    if eqn.primitive is s.reshape_p:
        return dict(after_ones(eqn.invars[0].aval.shape, out.aval.shape) or {})
    if eqn.primitive is s.broadcast_in_dim_p:
        sizes = zip(eqn.invars[0].aval.shape, eqn.params["dims"])
        return {k: d for k, (n, d) in enumerate(sizes) if n == out.aval.shape[d]}
    return {}


def _shifted(w: Writer, eqn: Equation) -> tuple[int | None, int] | None:
    """The same of a sum or difference of an index and a number, in a dtype that holds it."""
    aval = eqn.outvars[0].aval
    sides = [_position(w, v) for v in eqn.invars]
    numbers = [side is not None and side[0] is None for side in sides]
    if (
        None in sides
        or not any(numbers)
        or not dtypes.is_integer(aval.dtype)
        or (numbers[0] and eqn.primitive is e.sub_p)
    ):
        return None
    (axis, one), (other_axis, other) = sides  # type: ignore[misc]
    shift = one + other if eqn.primitive is e.add_p else one - other
    axis = other_axis if axis is None else axis
    last = shift + (aval.shape[axis] - 1 if axis is not None else 0)
    limits = dtypes.iinfo(aval.dtype)
    return (axis, shift) if limits.min <= shift and last <= limits.max else None


def _reduce_sum(search: _Search, eqn: Equation, labels: Labels, operands: Any = None) -> list[Product]:
    (x,) = operands or eqn.invars
    search.cost += x.aval.size
    kept = iter(labels)
    axes = eqn.params["axes"]
    new = iter(search.labels([x.aval.shape[a] for a in axes]))
    all_labels = tuple([next(new) if d in axes else next(kept) for d in range(x.aval.ndim)])
    return [p.over([all_labels[a] for a in axes]) for p in search.expand(x, all_labels)]


def _dot_general(
    search: _Search, eqn: Equation, labels: Labels, operands: Sequence[Atom] | None = None
) -> list[Product] | None:
    params = eqn.params
    if params["preferred_element_type"] is not None or search.precision not in (None, params["precision"]):
        return None
    search.precision = params["precision"]
    (cx, cy), (bx, by) = params["dimension_numbers"]
    x, y = operands or eqn.invars
    contracted = search.labels([x.aval.shape[a] for a in cx])
    search.cost += search.size(labels) * search.size(contracted)
    own_x, own_y = [_arranged(z, c, b) for z, c, b in ((x, cx, bx), (y, cy, by))]
    batch, rest = labels[: len(bx)], labels[len(bx) :]
    at = x.aval.ndim - len(cx) - len(bx)
    sides = [
        search.expand(z, tuple([(*batch, *free, *contracted)[k] for k in own]))
        for z, free, own in ((x, rest[:at], own_x), (y, rest[at:], own_y))
    ]
    if all(len(side) > 1 for side in sides):
        return None
    if operands is None:
        search.structured = True
    return [a.times(b).over(contracted) for a in sides[0] for b in sides[1]]


def _arranged(x: Atom, contracted: Sequence[int], batch: Sequence[int]) -> list[int]:
    """For each axis, its place among those of the batch, the free and the contracted ones."""
    free = without(range(x.aval.ndim), (*contracted, *batch))
    return [(*batch, *free, *contracted).index(d) for d in range(x.aval.ndim)]


_followed = Rules("factors")
_followed[s.broadcast_in_dim_p] = _broadcast
_followed[s.transpose_p] = _transpose
_followed[s.reshape_p] = _reshape
_followed[s.pad_p] = _pad
_followed[s.slice_p] = _slice
_followed[e.mul_p] = _mul
_followed[e.neg_p] = _neg
_followed[e.add_p] = _add
_followed[e.sub_p] = _add
_followed[e.select_n_p] = _select
_followed[e.convert_element_type_p] = _convert
_followed[reduce_sum_p] = _reduce_sum
_followed[dot_general_p] = _dot_general


def _same_kind(eqn: Equation, kinds: Sequence[_Kind | None]) -> _Kind | None:
    return kinds[0]


def _kind_of_product(eqn: Equation, kinds: Sequence[_Kind | None]) -> _Kind | None:
    scalar = any(type(x) is Var and not x.aval.shape for x in eqn.invars) and eqn.outvars[0].aval.shape
    return _Kind.SPREAD if _Kind.SPREAD in kinds or scalar else None


def _kind_of_sum(eqn: Equation, kinds: Sequence[_Kind | None]) -> _Kind | None:
    return _Kind.SPREAD if all(kind is _Kind.SPREAD for kind in kinds) else None


def _if_diagonal(eqn: Equation, kinds: Sequence[_Kind | None]) -> _Kind | None:
    return _Kind.SPREAD if kinds[0] is _Kind.DIAGONAL else None


def _kind_of_sum_of_indices(eqn: Equation, kinds: Sequence[_Kind | None]) -> _Kind | None:
    numbers = [type(x) is Literal for x in eqn.invars]
    return _Kind.INDEX if _Kind.INDEX in kinds and any(numbers) else _kind_of_sum(eqn, kinds)


def _kind_of_mask(eqn: Equation, kinds: Sequence[_Kind | None]) -> _Kind | None:
    positions = [kind is _Kind.INDEX or type(x) is Literal for kind, x in zip(kinds, eqn.invars)]
    return _Kind.DIAGONAL if all(positions) else None


def _kind_of_padded(eqn: Equation, kinds: Sequence[_Kind | None]) -> _Kind | None:
    return _Kind.SPREAD if _is_mostly_zeros(eqn) else kinds[0]


_ABOUT_INDICES = (_Kind.INDEX, _Kind.DIAGONAL)
_kind_of = Rules("kinds")
_kind_of[s.iota_p] = lambda eqn, kinds: _Kind.INDEX
_kind_of[s.broadcast_in_dim_p] = lambda eqn, kinds: kinds[0] if kinds[0] in _ABOUT_INDICES else _Kind.SPREAD
_kind_of[s.transpose_p] = _kind_of[s.reshape_p] = _kind_of[s.slice_p] = _kind_of[e.neg_p] = _same_kind
_kind_of[s.pad_p] = _kind_of_padded
_kind_of[e.eq_p] = _kind_of_mask
_kind_of[e.convert_element_type_p] = _kind_of[e.select_n_p] = _if_diagonal
_kind_of[e.mul_p] = _kind_of_product
_kind_of[e.add_p] = _kind_of[e.sub_p] = _kind_of_sum_of_indices
_kind_of[reduce_sum_p] = _kind_of[dot_general_p] = lambda eqn, kinds: _Kind.SUM
_ROOTS: dict[Primitive, Callable[..., Any]] = {reduce_sum_p: _reduce_sum, dot_general_p: _dot_general}
