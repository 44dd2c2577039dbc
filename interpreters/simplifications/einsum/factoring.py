"""Sum-product optimisation (factoring of einsums): rewrite a contraction over the factors of its operands.

The operands of a contraction or a sum are followed through what rules.py has a rule for. Every axis that is
met becomes an index: what is found is a sum, over some of the indices, of products of factors that have some of them
each, which a `Plan` computes otherwise. A mask `i = j + 1`, a part or zeros around make one of two indices the other;
a reshape that joins axes makes several of one. It is written down if that halves the elements computed, or is one
contraction: for less, who wrote the program may have had a reason. Partial sums must neither leave the range of the
dtype nor be much larger than what they are parts of: nothing is done in dtypes of few exponents, nor to differences
that are exact, unless they are on diagonals apart.
Source: Bernstein et al. 2020.
"""

from collections.abc import Sequence
from enum import Enum
from itertools import count
from math import prod
from typing import Any

from tapeless.interpreters import simplify
from tapeless.interpreters.simplifications.einsum.indices import Equal, Indices
from tapeless.interpreters.simplifications.einsum.plans import Factor, Labels, Plan, Product
from tapeless.interpreters.simplify import Writer, filled
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.rules import Rules, Table

BUDGET = 32  # equations that are followed from one
RANGE = 1e30  # what a float must be able to hold: with less, like 65504 of float16, partial sums are soon infinite
FACTORS = 8  # of one product, at most: with more, others than the first are left as they are


rules = Rules(
    "contractions",
    "rule(search, eqn, an index for each axis of its result) -> the products that its result is a sum of, or None",
    absent="its result is a factor, not taken apart",
)
kinds = Rules(
    "contraction kinds",
    "rule(eqn, kind of each operand) -> kind of the result, or None",
    absent="its result is not worth following",
)
roots: Table[None] = Table(
    "contraction roots", "it is a sum of products, where a search begins", absent="no search begins at it"
)


class Kind(Enum):
    """The structure for which a search follows a value."""

    SPREAD = "some of its factors lack an index, or have two that must be equal"
    SUM = "it is a sum of products itself"
    INDEX = "its elements are their positions along an axis"
    DIAGONAL = "it says where a position is equal to another, or to a number"


def factor_contractions(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite every contraction and sum of a program that is cheaper over the factors of its operands."""
    if not any(eqn.primitive in roots for eqn in jaxpr.eqns):
        return jaxpr
    known = _kinds(jaxpr.eqns, {})
    if not any(eqn.primitive in roots and any(x in known for x in eqn.invars) for eqn in jaxpr.eqns):
        return jaxpr
    w, counts = Writer(jaxpr), dict[Any, int](simplify.uses(jaxpr))
    for eqn in jaxpr.eqns:
        w.place = eqn.source
        n = len(w.eqns)
        promising = eqn.primitive in roots and any(w.now(x) in known for x in eqn.invars)
        found = Search(w, counts, known, eqn).found() if promising else None
        if found is not None and w.replace(eqn, found):
            known.update(_kinds(w.eqns[n:], known))
            counts[found] = counts.get(found, 0) + counts.get(eqn.outvars[0], 0)
            continue
        w.keep(w.renamed(eqn))
    return w.finish()


def _kinds(eqns: Sequence[Equation], before: dict[Atom, Kind]) -> dict[Atom, Kind]:
    """Classify the results of equations that a search can exploit, forwards, so that hopeless searches end at once."""
    found: dict[Atom, Kind] = {}
    for eqn in eqns:
        rule = kinds.get(eqn.primitive)
        kind = rule(eqn, [found.get(x) or before.get(x) for x in eqn.invars]) if rule is not None else None
        if kind is not None:
            found[eqn.outvars[0]] = kind
    return found


class Search:
    """Backward search from one reduction; `cost` counts the operations of the equations that it would replace."""

    def __init__(self, w: Writer, counts: dict[Any, int], kinds: dict[Atom, Kind], eqn: Equation) -> None:
        self.w, self._counts, self._kinds, self.root = w, counts, kinds, w.renamed(eqn)
        self.sizes: dict[int, int] = {}
        self._split: dict[int, Labels] = {}  # indices that are made of others, which count in row-major order
        self.precision: Any = None
        self.cost, self.structured = 0, False
        self.aval = eqn.outvars[0].aval
        self._fresh, self._budget = count(), BUDGET

    def found(self) -> Atom | None:
        """Search from the root; return the cheaper result, or None."""
        if not _is_wide(self.aval.dtype):
            return None
        out = self.labels(self.aval.shape)
        products = rules[self.root.primitive](self, self.root, out)
        if not products or not self.structured or any(len(p.factors) > FACTORS for p in products):
            return None
        return self._written([self._resolved(p) for p in products], out)

    def _written(self, products: Sequence[Product | None], out: Labels) -> Atom | None:
        """Write the sum of products, if it is less work than the equations that it replaces."""
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
        """Tell whether the equality constraints leave an empty index range: the product is zero."""
        return Indices(self.sizes, p.summed, p.equal).is_empty

    def _plan(self, p: Product, out: Labels) -> Plan:
        return Plan(self.w, p, self.parts(out), self.sizes, self.aval, self.precision)

    def labels(self, shape: Sequence[int]) -> Labels:
        """Make a new index for each axis of `shape`."""
        made = tuple([next(self._fresh) for _ in shape])
        self.sizes.update(zip(made, shape))
        return made

    def expand(self, x: Atom, labels: tuple[int | None, ...]) -> list[Product]:
        """Expand a value with these indices into a sum of products, of factors further up."""
        eqn = self.w.definition(x) if x in self._kinds else self.w.made_by(x, s.transpose_p)
        rule = rules.get(eqn.primitive) if eqn is not None else None
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
        """Count the elements of an array with these indices."""
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
        """Expand every merged index into the indices that a reshape merged."""
        return tuple([part for k in labels for part in (self.parts(self._split[k]) if k in self._split else (k,))])

    def _shape(self, labels: Labels) -> tuple[int, ...]:
        return tuple([self.sizes[k] for k in labels])

    def _resolved(self, p: Product) -> Product | None:
        """Rewrite a product over unmerged indices; None if two equated indices were merged in different ways."""
        equal: list[Equal] = []
        for constraint in p.equal:
            one, other = self.parts([constraint.one]), self.parts([constraint.other])
            if len(one) == len(other) == 1:
                equal.append(Equal(one[0], other[0], constraint.shift))
            elif self._shape(one) == self._shape(other) and not constraint.shift:
                equal += [Equal(i, j, 0) for i, j in zip(one, other)]
            else:
                return None
        factors = tuple([Factor(f.value, self.parts(f.labels)) for f in p.factors])
        return Product(factors, frozenset(self.parts(p.summed)), tuple(equal), p.negative)


def _is_wide(dtype: Any) -> bool:
    return not dtypes.is_inexact(dtype) or float(dtypes.finfo(dtype).max) > RANGE
