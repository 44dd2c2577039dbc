"""Brackets in the bodies of the index language: products with conditions become choices, or sums over entries.

Search terms: Iverson bracket, predicate. Where p is false, `p * e` is 0 whatever e is: it becomes `select_n(p, 0, e)`.
The derivatives of this are as safe as those of any choice (`simplifications/masks/`), and the simplifier reads it as a
bracket of indices if p compares these. If p reads a relation, alone or in a conjunction, the product is a sum over the
entries of that, for which e is evaluated (`index/entries.py`); so is a product with a sparse array. What a disjunction
of relations multiplies is the sum over the entries of one and over those of the other that are not in the first.
Source: Bernstein et al. 2020, section 4.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tapeless.interpreters.index.entries import (
    NO_INDICES,
    BodyIndices,
    SparseValue,
    at_entries,
    indices_in,
    select_entries,
    sparse_value,
    sum_over_entries,
    write_sum,
)
from tapeless.interpreters.index.entry_products import (
    keep_entries,
    match_entries,
    multiply_sums,
    neutral,
    summed_entries,
    times,
)
from tapeless.interpreters.index_rows import Combination, index_row
from tapeless.interpreters.simplifications.constant_values import number
from tapeless.interpreters.writer import Writer, convert_type, fill_array
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive, memoize_by_program
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, effects, map_carried
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.bits import and_p, not_p, or_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.terms.term import Use


class _BracketedProduct(NamedTuple):
    """A product with conditions: its value where they hold, 1 if `value` is None."""

    conditions: tuple[Atom, ...]
    value: Atom | None


class _Alternatives(NamedTuple):
    """A condition as two that do not hold together, each a conjunction."""

    of: Atom
    first: tuple[Atom, ...]
    second: tuple[Atom, ...]


_CHOSEN = frozenset((e.mul_p, e.div_p))
_MOVES = frozenset((e.neg_p, e.convert_element_type_p, broadcast_in_dim_p))


def with_brackets(jaxpr: Jaxpr, body: BodyIndices = NO_INDICES) -> Jaxpr:
    """Write products with booleans as choices, and quotients of these; whatever the order, all factors are chosen.

    Args:
      body: the indices that the program is to be evaluated for all values of. Relations read at them are summed over
        their entries.
    """
    brackets = _Brackets(jaxpr, body)
    for eqn in jaxpr.eqns:
        brackets.visit(eqn)
    return brackets.w.finish()


@memoize_by_program
def _of_called(jaxpr: Jaxpr) -> Jaxpr:
    """Write the brackets of a program that a body calls: of a branch, a loop, a checkpoint, a jitted function."""
    return jaxpr if any(jaxpr.linear_in) else with_brackets(jaxpr)


class _Brackets:
    """The rewriting of one body."""

    def __init__(self, jaxpr: Jaxpr, body: BodyIndices) -> None:
        self.w, self._body = Writer(jaxpr), body
        self._products = dict[Atom, _BracketedProduct]()
        self._products_of_sparse = dict[Atom, tuple[SparseValue, Atom]]()

    def visit(self, eqn: Equation) -> None:
        """Write an equation of the body."""
        w, now = self.w, self.w.renamed(eqn)
        w.source = eqn.source
        product = self._product(now)
        found = self._written(now, product)
        if found is None or not w.replace(eqn, convert_type(w, found, eqn.outvars[0].aval)):
            params = map_carried(_of_called, now)
            w.changed |= params is not now.params
            w.keep(now if params is now.params else now.replace(params=params))
        if product is not None:
            self._products[w.now(eqn.outvars[0])] = product

    def _written(self, eqn: Equation, product: _BracketedProduct | None) -> Atom | None:
        """Write what an equation computes in another way; None if there is none that is better."""
        primitive = eqn.primitive
        if product is not None and (primitive in _CHOSEN or self._counts(eqn, product)):
            value = fill_array(self.w, 1, eqn.outvars[0].aval) if product.value is None else product.value
            return self._chosen(product.conditions, value)
        if primitive is and_p and dtypes.is_bool(eqn.outvars[0].aval.dtype):
            return self._conjunction(*eqn.invars)
        if primitive is e.select_n_p and len(eqn.invars) == 3:
            return self._choice(*eqn.invars)
        if primitive is or_p and dtypes.is_bool(eqn.outvars[0].aval.dtype):
            return self._implication(*eqn.invars)
        if primitive in _CHOSEN:
            return self._product_of_sparse(primitive, *eqn.invars)
        return self._sum_of_sparse(eqn) if primitive in (e.add_p, e.sub_p) else None

    # ---- products with conditions

    def _product(self, eqn: Equation) -> _BracketedProduct | None:
        """Find the conditions in what an equation computes; None if there are none."""
        w, primitive = self.w, eqn.primitive
        if primitive not in _CHOSEN | _MOVES:
            return None
        x, *others = [self._products.get(v, _BracketedProduct((), v)) for v in eqn.invars]
        if primitive is e.convert_element_type_p and dtypes.is_bool(eqn.invars[0].aval.dtype):
            return _BracketedProduct((eqn.invars[0],), None)
        if primitive is e.mul_p and others[0].conditions:
            return _BracketedProduct((*x.conditions, *others[0].conditions), self._multiplied(x.value, others[0].value))
        if not x.conditions:
            return None
        conditions = x.conditions
        if primitive is broadcast_in_dim_p:
            conditions = tuple([w.write(primitive, c, **eqn.params) for c in conditions])
        if x.value is None and primitive in (broadcast_in_dim_p, e.convert_element_type_p):
            return _BracketedProduct(conditions, None)
        if primitive is e.mul_p:
            return _BracketedProduct(conditions, self._multiplied(x.value, eqn.invars[1]))
        value = fill_array(w, 1, eqn.invars[0].aval) if x.value is None else x.value
        return _BracketedProduct(conditions, w.write(primitive, value, *eqn.invars[1:], **eqn.params))

    def _multiplied(self, x: Atom | None, y: Atom | None) -> Atom | None:
        if x is None or y is None:
            return y if x is None else x
        return self._product_of_sparse(e.mul_p, x, y) or self.w.write(e.mul_p, x, y)

    def _counts(self, eqn: Equation, product: _BracketedProduct) -> bool:
        """Tell whether an equation makes a number of the read of a relation."""
        is_number = eqn.primitive is e.convert_element_type_p and product.value is None
        return is_number and not eqn.outvars[0].aval.shape and self._relation(product.conditions[0]) is not None

    def _chosen(self, conditions: Sequence[Atom], x: Atom) -> Atom:
        """Write a value where conditions hold, 0 elsewhere: as a sum over entries of a relation, or as choices."""
        w, alternatives = self.w, next((a for c in conditions if (a := self._alternatives(c))), None)
        if alternatives is not None:
            others = [c for c in conditions if c is not alternatives.of]
            first, second = [self._chosen((*others, *parts), x) for parts in (alternatives.first, alternatives.second)]
            return w.write(e.add_p, first, second)
        relations = [(c, s) for c in conditions if (s := self._relation(c)) is not None]
        relations.sort(key=lambda relation: relation[1].entries)
        others = [c for c in conditions if all(c is not relation for relation, _ in relations)]
        sparse, factor = self._factored(x)
        if sparse is not None and others:
            sparse = self._kept(sparse, others)
            x = self._times(sparse, self._where(others, fill_array(w, 1, x.aval) if factor is None else factor))
        elif sparse is None:
            x = self._where(others, x)
        for _, s in relations:
            other = self._sparse(x)
            x = self._times(s, x) if other is None else self._both(other, s)
        return x

    def _factored(self, x: Atom) -> tuple[SparseValue | None, Atom | None]:
        """Take a value apart into a sum over entries, if it has such a factor, and what that is multiplied by."""
        return self._products_of_sparse[x] if x in self._products_of_sparse else (self._sparse(x), None)

    def _where(self, conditions: Sequence[Atom], x: Atom) -> Atom:
        for condition in conditions:
            x = self._within(x, condition)
            x = self.w.write(e.select_n_p, condition, fill_array(self.w, 0, x.aval), x)
        return x

    def _times(self, s: SparseValue, x: Atom, use: Use = Use.PLAIN) -> Atom:
        """Multiply a sum over entries by a value.

        A function such as log, whose derivative may be infinite where there is no entry, is evaluated at these alone.
        """
        w, is_safe = self.w, use is Use.PLAIN and _is_polynomial(self.w, x)
        x = x if is_safe else self._within(x, s)
        y = at_entries(w, x, s, self._body) if is_safe else self._where_met(s, x, neutral(use))
        found = times(w, s, x, y, use)
        if not x.aval.shape:
            self._products_of_sparse[found] = (
                s,
                x if use is Use.PLAIN else w.write(e.div_p, fill_array(w, 1, x.aval), x),
            )
        return found

    def _where_met(self, s: SparseValue, x: Atom, otherwise: int) -> Atom:
        """Evaluate a value at the entries of a sum where all of its brackets hold."""
        w, body = self.w, self._body
        y = at_entries(w, x, s, body, always=True, otherwise=otherwise)
        if y is None:
            shape = (s.entries, *x.aval.shape)
            y = w.write(broadcast_in_dim_p, x, shape=shape, dims=tuple(range(1, len(shape))))
        if len(s.term.sizes) == 1 and len(s.term.brackets) == len(s.places):
            return y
        fixed = indices_in(w, x, body).difference(s.places)
        return select_entries(w, match_entries(w, s, (), body, fixed), y, otherwise)

    def _both(self, x: SparseValue, y: SparseValue) -> Atom:
        """Multiply two sums over entries; what may be infinite in one is evaluated only where the other is not 0."""
        w, parts = self.w, ((x, y), (y, x))
        x, y = [
            s if self._is_safe(s) else keep_entries(w, s, match_entries(w, s, (other,), self._body))
            for s, other in parts
        ]
        return multiply_sums(w, x, y)

    def _kept(self, s: SparseValue, conditions: Sequence[Atom]) -> SparseValue:
        """Leave out of a sum over entries what may be infinite where conditions do not hold."""
        if self._is_safe(s):
            return s
        for mask in [self._mask_at(s, c) for c in conditions]:
            s = s if mask is None else keep_entries(self.w, s, mask)
        return s

    def _within(self, x: Atom, condition: Atom | SparseValue) -> Atom:
        """Compute a value again for where a condition holds: leave what may be infinite elsewhere out of sums in it."""
        w, needed, computing = self.w, {x}, list[Equation]()
        for eqn in reversed(w.eqns):
            if not needed.isdisjoint(eqn.outvars):
                computing.append(eqn)
                needed.update(eqn.invars)
        again = dict[Atom, Atom]()
        for eqn in reversed(computing):
            now = eqn.replace(invars=[again.get(v, v) for v in eqn.invars])
            s = sum_over_entries(now, self._body)
            mask = None if s is None or self._is_safe(s) else self._mask_at(s, condition)
            if s is not None and mask is not None:
                s, aval = keep_entries(w, s, mask), s.value.aval
                again[s.value] = write_sum(w, [s.term], s.operands, aval.shape, aval)
            elif not again.keys().isdisjoint(eqn.invars) and not effects(eqn):
                now = now.replace(outvars=[Var(v.aval) for v in eqn.outvars])
                w.keep(now)
                again.update(zip(eqn.outvars, now.outvars))
        return again.get(x, x)

    def _mask_at(self, s: SparseValue, condition: Atom | SparseValue) -> Atom | None:
        """Tell for each entry of a sum whether a condition holds, too; None if entries do not tell its indices."""
        w, body = self.w, self._body
        if isinstance(condition, SparseValue):
            return match_entries(w, s, (condition,), body)
        other = sparse_value(w, condition, body)
        if other is not None:
            return match_entries(w, s, (other,), body)
        spread = w.made_by(condition, broadcast_in_dim_p)
        c = condition if spread is None else spread.invars[0]
        if c.aval.shape:
            return None
        mask = at_entries(w, c, s, body, always=True)
        is_fixed = mask is None and not indices_in(w, c, body)
        return w.write(broadcast_in_dim_p, c, shape=(s.entries,), dims=()) if is_fixed else mask

    def _is_safe(self, s: SparseValue) -> bool:
        return all(f.use is Use.PLAIN and _is_polynomial(self.w, s.operands[f.operand]) for f in s.term.factors)

    # ---- relations

    def _sparse(self, x: Atom) -> SparseValue | None:
        """Find how a number is a sum over entries."""
        is_number = not dtypes.is_bool(x.aval.dtype) and not x.aval.shape
        return sparse_value(self.w, x, self._body) if is_number else None

    def _relation(self, condition: Atom) -> SparseValue | None:
        """Find the entries of a relation where alone a condition holds, once each."""
        found = sparse_value(self.w, condition, self._body)
        return found if found is not None and found.is_distinct else None

    def _alternatives(self, condition: Atom) -> _Alternatives | None:
        """Find the alternatives of a disjunction of relations."""
        w = self.w
        spread = w.made_by(condition, broadcast_in_dim_p)
        eqn = w.made_by(condition if spread is None else spread.invars[0], or_p)
        if eqn is None or eqn.outvars[0].aval.shape or not all(map(self._is_of_relations, eqn.invars)):
            return None
        x, y = eqn.invars
        parts = [x, y, w.write(not_p, x)]
        if spread is not None:
            parts = [w.write(broadcast_in_dim_p, c, **spread.params) for c in parts]
        return _Alternatives(condition, (parts[0],), (parts[1], parts[2]))

    def _is_of_relations(self, condition: Atom) -> bool:
        eqn = self.w.made_by(condition, or_p)
        if eqn is not None:
            return all(map(self._is_of_relations, eqn.invars))
        return self._relation(condition) is not None

    def _conjunction(self, x: Atom, y: Atom) -> Atom | None:
        """Write a conjunction with a sum over entries as one of these."""
        w = self.w
        if x.aval.shape or y.aval.shape:
            return None
        for one, other in ((x, y), (y, x)):
            eqn = w.made_by(one, or_p)
            if eqn is not None and self._is_of_relations(one):
                parts = [self._conjunction(c, other) or w.write(and_p, c, other) for c in eqn.invars]
                return w.write(or_p, *parts)
        a, b = [sparse_value(w, c, self._body) for c in (x, y)]
        if a is not None and b is not None:
            return multiply_sums(w, a, b)
        for s, other in ((a, y), (b, x)):
            if s is not None:
                return times(w, s, other, at_entries(w, other, s, self._body, always=True))
        return None

    def _implication(self, x: Atom, y: Atom) -> Atom | None:
        """Write `not R or p` as what does not hold at entries of R: not (R and not p)."""
        for one, other in ((x, y), (y, x)):
            eqn = self.w.made_by(one, not_p)
            if eqn is not None and sparse_value(self.w, eqn.invars[0], self._body) is not None:
                counterexample = self._conjunction(eqn.invars[0], self.w.write(not_p, other))
                return None if counterexample is None else self.w.write(not_p, counterexample)
        return None

    # ---- choices, products and sums of what is sparse

    def _choice(self, which: Atom, otherwise: Atom, x: Atom) -> Atom | None:
        """Write a choice by a relation between a number and a value that matters only at entries."""
        w = self.w
        negated = w.made_by(which, not_p)
        if negated is not None:
            which, otherwise, x = negated.invars[0], x, otherwise
        known = number(w, otherwise)
        if not dtypes.is_bool(which.aval.dtype):
            return None
        if known is None or (self._relation(which) is None and self._alternatives(which) is None):
            other = otherwise if known is not None else self._within(otherwise, w.write(not_p, which))
            within = self._within(x, which)
            is_same = other is otherwise and within is x
            return None if is_same else w.write(e.select_n_p, which, other, within)
        if dtypes.is_bool(x.aval.dtype):
            return self._conjunction(which, x) if not known else None
        found = self._chosen((which,), x)
        return found if known == 0 else w.write(e.select_n_p, which, otherwise, found)

    def _product_of_sparse(self, primitive: Primitive, x: Atom, y: Atom) -> Atom | None:
        """Write a product with a sparse array, or a quotient of it, as a sum over entries."""
        (s, of_s), (other, of_other) = self._factored(x), self._factored(y)
        if primitive is e.div_p and s is not None:
            return self._times(s, y, Use.DIVIDED) if of_s is None else self._times(s, self.w.write(e.div_p, of_s, y))
        if primitive is e.div_p:
            return None
        if s is not None and other is not None:
            return self._both(s, other) if of_s is None and of_other is None else None
        for sparse, own, factor in ((s, of_s, y), (other, of_other, x)):
            if sparse is not None:
                return self._times(sparse, factor if own is None else self.w.write(e.mul_p, own, factor))
        return None

    def _sum_of_sparse(self, eqn: Equation) -> Atom | None:
        """Write a sum over the same entries, or a difference, as the sum of one array."""
        w, (x, y) = self.w, [self._sparse(v) for v in eqn.invars]
        return None if x is None or y is None else summed_entries(w, x, y, eqn.primitive)


def _is_polynomial(w: Writer, x: Atom) -> bool:
    """Tell whether a value is made of sums and products of others alone: its derivative is finite where they are."""
    todo, met = [x], set[Atom]()
    while todo:
        v = todo.pop()
        eqn = w.definition(v)
        if eqn is None or v in met:
            continue
        row = index_row(eqn)
        terms = row.results if row is not None and row.combination is Combination.TERMS else None
        if terms is None or any(f.use is Use.DIVIDED for found in terms for t in found for f in t.factors):
            return False
        met.add(v)
        todo += eqn.invars
    return True
