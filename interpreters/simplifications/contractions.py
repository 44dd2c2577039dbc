"""Sums of products, taken apart into factors and put together again by the least work.

The operands of a contraction or a sum are followed through products, broadcasts, permutations, masks of diagonals and
other contractions. Every axis that is met becomes an index: what is found is a sum, over some of the indices, of
products of factors that have some of them each, which a `Plan` computes otherwise. A mask `i = j` makes one of two
indices the other. It is written down if that halves the elements computed, or is one contraction: for less, who wrote
the program may have had a reason. Partial sums must neither leave the range of the dtype nor be much larger than what
they are parts of: nothing is done in dtypes of few exponents, nor to differences that are exact.
Source: Bernstein et al. 2020.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import count
from math import prod
from typing import Any

from tapeless.interpreters import simplify
from tapeless.interpreters.simplifications.constants import is_zero
from tapeless.interpreters.simplifications.plans import Factor, Labels, Plan, Product
from tapeless.interpreters.simplify import Writer
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
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
    DIAGONAL = "it says where two positions are equal"


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
        plans = [Plan(self.w, p, out, self.sizes, self.aval, self.precision) for p in products]
        new = sum(plan.cost for plan in plans) + (len(plans) - 1) * self.aval.size
        single = len(plans) == 1 and plans[0].steps == 1
        if new >= self.cost or (2 * new > self.cost and not single):
            return None
        terms = [plan.write() for plan in plans]
        total = terms[0]
        for term in terms[1:]:
            total = self.w.write(e.add_p, total, term)
        return total

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


def _mul(search: _Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    search.cost += eqn.outvars[0].aval.size
    sides = [search.expand(x, labels if x.aval.shape else ()) for x in eqn.invars]
    if all(len(side) > 1 for side in sides) or _is_opaque(sides, eqn):
        return None
    return [a.times(b) for a in sides[0] for b in sides[1]]


def _is_opaque(sides: Sequence[list[Product]], eqn: Equation) -> bool:
    """Whether a product is of two whole arrays: then it is better left alone."""
    return all(
        len(side) == 1 and len(side[0].factors) == 1 and side[0].factors[0].value is x and x.aval.shape
        for side, x in zip(sides, eqn.invars)
    )


def _neg(search: _Search, eqn: Equation, labels: Labels) -> list[Product]:
    search.cost += eqn.outvars[0].aval.size
    return [p._replace(negative=not p.negative) for p in search.expand(eqn.invars[0], labels)]


def _add(search: _Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    """A sum is distributed over, if every addend has factors that lack an index."""
    search.cost += eqn.outvars[0].aval.size
    sides = [search.expand(x, labels) if x.aval.shape == eqn.outvars[0].aval.shape else None for x in eqn.invars]
    if any(side is None or not all(_is_sparse(p, labels) for p in side) for side in sides):
        return None
    if not search.w.linear and dtypes.is_inexact(search.aval.dtype) and all(map(_has_exact, sides)):  # type: ignore[arg-type]
        return None
    left, right = sides
    negative = eqn.primitive is e.sub_p
    return [*left, *[p._replace(negative=p.negative != negative) for p in right]]  # type: ignore[misc,union-attr]


def _is_sparse(p: Product, labels: Labels) -> bool:
    return bool(p.equal) or all(set(f.labels) != set(labels) for f in p.factors)


def _has_exact(side: Sequence[Product]) -> bool:
    """Whether an addend was not rounded: with another it may cancel to what rounded sums of each would drown."""
    return any(sum(type(f.value) is Var for f in p.factors) < 2 for p in side)


def _select(search: _Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    """[i = j] x, where the mask compares two iotas."""
    which, *cases = eqn.invars
    if len(cases) != 2 or not is_zero(search.w, cases[0]):
        return None
    equal = _diagonal(search, which, labels)
    if equal is None:
        return None
    search.cost += eqn.outvars[0].aval.size
    case = cases[1]
    mask = Product((), equal=(equal,))
    return [mask.times(p) for p in search.expand(case, labels if case.aval.shape else ())]


def _convert(search: _Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    """The mask itself, as ones and zeros."""
    equal = _diagonal(search, eqn.invars[0], labels)
    return None if equal is None else [Product((), equal=(equal,))]


def _diagonal(search: _Search, mask: Atom, labels: Labels) -> tuple[int, int] | None:
    """The two indices that a mask says are equal."""
    eqn = search.w.made_by(mask, s.broadcast_in_dim_p)
    if eqn is not None:
        shape, dims = eqn.params["shape"], eqn.params["dims"]
        if any(n != shape[d] for n, d in zip(eqn.invars[0].aval.shape, dims)):
            return None
        return _diagonal(search, eqn.invars[0], tuple([labels[d] for d in dims]))
    eqn = search.w.made_by(mask, e.eq_p)
    if eqn is None or mask.aval.shape != tuple([search.sizes[k] for k in labels]):
        return None
    axes = [_iota_axis(search.w, x) for x in eqn.invars]
    if None in axes or axes[0] == axes[1]:
        return None
    i, j = labels[axes[0]], labels[axes[1]]  # type: ignore[index]
    if search.sizes[i] != search.sizes[j]:
        return None
    search.structured = True
    return i, j


def _iota_axis(w: Writer, x: Atom) -> int | None:
    """The axis along which a value is the index."""
    eqn = w.made_by(x, s.iota_p)
    if eqn is not None:
        return eqn.params["dimension"]
    eqn = w.made_by(x, s.broadcast_in_dim_p)
    inner = w.made_by(eqn.invars[0], s.iota_p) if eqn is not None else None
    if eqn is None or inner is None:
        return None
    d = inner.params["dimension"]
    return eqn.params["dims"][d] if inner.params["shape"][d] == eqn.params["shape"][eqn.params["dims"][d]] else None


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


_ABOUT_INDICES = (_Kind.INDEX, _Kind.DIAGONAL)
_kind_of = Rules("kinds")
_kind_of[s.iota_p] = lambda eqn, kinds: _Kind.INDEX
_kind_of[s.broadcast_in_dim_p] = lambda eqn, kinds: kinds[0] if kinds[0] in _ABOUT_INDICES else _Kind.SPREAD
_kind_of[s.transpose_p] = _kind_of[e.neg_p] = _same_kind
_kind_of[e.eq_p] = lambda eqn, kinds: _Kind.DIAGONAL if kinds[0] is kinds[1] is _Kind.INDEX else None
_kind_of[e.convert_element_type_p] = _kind_of[e.select_n_p] = _if_diagonal
_kind_of[e.mul_p] = _kind_of_product
_kind_of[e.add_p] = _kind_of[e.sub_p] = _kind_of_sum
_kind_of[reduce_sum_p] = _kind_of[dot_general_p] = lambda eqn, kinds: _Kind.SUM
_ROOTS: dict[Primitive, Callable[..., Any]] = {reduce_sum_p: _reduce_sum, dot_general_p: _dot_general}
