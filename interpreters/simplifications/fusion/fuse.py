"""Fusion of contractions (sum-product optimisation): substitute sums of products into the sums that read them.

Search terms: producer-consumer fusion, factoring of einsums, distributive law. A value is a sum of products at affine
indices, a `Statement`. Moves come first, then values by falling cost. A value is substituted into all of its readers
and dropped, or into none: it is dropped if that is less work, or equal work with less memory. So a value that function
and gradient share is not computed twice. Values substituted into one another form a group. It is rewritten only if that
is less work, and halves work or memory or leaves one contraction; or if it is equal work, halves memory, and drops a
value that is larger than all others, as the array of products summed by a contraction. For smaller gains the program
stays as its author wrote it.

Only the equations near a sum or a mask of a broadcast, masked or summed value are examined, and of the values that
these depend on only those with such structure, or moves. So ordinary networks are left after a glance, and among
thousands of elementwise operations only the neighbourhood of a contraction is examined. Source: Bernstein et al. 2020.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

from tapeless.interpreters import limits
from tapeless.interpreters.simplifications.common_subexpressions import equal_but_for_names
from tapeless.interpreters.simplifications.fusion import licence
from tapeless.interpreters.simplifications.fusion.promising import StructuredValues, structure
from tapeless.interpreters.simplifications.fusion.statements import (
    MOVES,
    Statement,
    composition,
    reads_in_order,
    statement,
)
from tapeless.interpreters.terms.accesses import Shape
from tapeless.interpreters.terms.compose import NumberedAtoms
from tapeless.interpreters.terms.plan import NOTHING, ContractionCost, cost_over
from tapeless.interpreters.terms.recorded_lowering import lower_alike
from tapeless.interpreters.writer import Writer, convert_type, fill_array
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives.contraction import canonical_precision
from tapeless.tracer.primitives.ein import ein_p, operands_of, reduce_terms
from tapeless.tracer.terms.term import Sum, Term, term
from tapeless.tracer.terms.term_limits import Limit
from tapeless.tracer.types import ShapedArray


def fuse_contractions(jaxpr: Jaxpr) -> Jaxpr:
    """Substitute values into the sums of products that read them where that gains; the same object if nowhere."""
    found = structure(jaxpr)
    return _Fusion(jaxpr).run(found) if found.roots else jaxpr


def as_ein(w: Writer, eqn: Equation) -> Atom | None:
    """Rewrite an equation as an `ein`, or as zeros; None if it is no sum of terms, or must be summed in its order."""
    operands = NumberedAtoms(eqn.invars)
    found = statement(eqn, w.definition, operands.number)
    if found is None:
        return None
    given = [operands.atoms[k] for k in found.operands]
    return as_one_ein(w, found.terms, given, eqn.outvars[0].aval, found.precision)


class _Fusion:
    """One run of the pass: statements of the values of a program, as they are substituted into one another."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self._jaxpr = jaxpr
        self._linear = any(jaxpr.linear_in) and all(v.linear for v in jaxpr.outvars)
        self._made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
        self._read_by: dict[Var, list[Equation]] = {}  # the readers of each value that is examined
        self._kept = set(jaxpr.outvars)
        operands = NumberedAtoms()
        self._number, self._atoms = operands.number, operands.atoms
        self._first: dict[Var, Statement | None] = {}  # statements of the given program; None: it has none
        self._now: dict[Var, Statement] = {}  # current statements, of values that were not dropped
        self._costs: dict[Var, ContractionCost] = {}  # of these
        self._readers: dict[int, dict[Var, None]] = {}  # values whose current statements read an operand
        self._groups: dict[Var, Var] = {}  # union-find of the values that were substituted into one another

    def run(self, within: StructuredValues) -> Jaxpr:
        """Substitute values until nothing is gained; return the same object if no group gains enough."""
        todo = _Queue(self._order)
        todo.update(self._near(within))
        while (v := todo.pop()) is not None:
            todo.update(self._inline(v))
        changed = self._worth_it()
        return self._written(changed) if changed else self._jaxpr

    # statements

    def _near(self, within: StructuredValues) -> set[Var]:
        """Make the statements of the roots, and of the structured values and moves that they depend on; return these.

        Each addition on the path to a root adds a term to the fused statement, so there are fewer than `TERMS`.
        """
        todo, additions = [(eqn, 0) for eqn in within.roots], dict[Var, int]()  # the fewest on a path to a root
        while todo:
            eqn, n = todo.pop()
            (v,) = eqn.outvars
            if additions.get(v, limits.TERMS) <= n or self._statement(v) is None:
                continue
            additions[v] = n
            n += len(self._now[v].terms) > 1
            made = [(x, self._made[x]) for x in self._operands(v)]
            todo += [(eqn, n) for x, eqn in made if x in within.values or eqn.primitive in MOVES]
        found = set(additions)
        for eqn in self._jaxpr.eqns if len(found) > 1 else ():
            for x in found.intersection(eqn.invars) if not found.isdisjoint(eqn.invars) else ():  # type: ignore[arg-type]
                self._read_by.setdefault(x, []).append(eqn)
        return found

    def _statement(self, v: Var) -> Statement | None:
        """Return the current statement of a value; None if it has no terms that `cost_of` knows, or was dropped."""
        if v not in self._first:
            found = statement(self._made[v], self._definition, self._number) if v in self._made else None
            cost = self._cost(v, found) if found is not None else None
            if found is not None and cost is not None:
                self._set(v, found, cost)
            else:
                found = None
            self._first[v] = found
        return self._now.get(v)

    def _set(self, v: Var, found: Statement, cost: ContractionCost) -> None:
        self._unset(v)
        self._now[v], self._costs[v] = found, cost
        for k in found.operands:
            self._readers.setdefault(k, {})[v] = None

    def _unset(self, v: Var) -> None:
        if v in self._now:
            for k in self._now.pop(v).operands:
                self._readers[k].pop(v, None)

    def _operands(self, v: Var) -> Iterator[Var]:
        """Yield the values that the statement of `v` reads and that equations compute."""
        found = self._now[v]
        for k in reads_in_order(found.terms):
            x = self._atoms[found.operands[k]]
            if type(x) is Var and x in self._made:
                yield x

    def _definition(self, x: Atom) -> Equation | None:
        return self._made.get(x) if type(x) is Var else None

    def _cost(self, v: Var, found: Statement) -> ContractionCost | None:
        return cost_over(found.terms, self._shapes(found), v.aval.shape, found.guarded)

    def _shapes(self, found: Statement) -> tuple[Shape, ...]:
        return tuple([self._atoms[k].aval.shape for k in found.operands])

    def _order(self, v: Var) -> tuple[bool, int, int, int]:
        """Return the priority of a value: moves first, since their readers depend on them; then by falling cost."""
        cost = self._costs[v] if v in self._now else NOTHING
        return cost.work > 0, -cost.work, -cost.held, self._number(v)

    # one value

    def _inline(self, v: Var) -> list[Var]:
        """Substitute a value into all of its readers if that lowers the cost; return the values to examine again."""
        if not self._is_read_by_statements(v):
            return []
        readers = list(self._readers.get(self._number(v), ()))
        if not readers or limits.READERS.is_passed(len(readers), self._made[v].source):
            return []
        before, after, new = self._costs[v], NOTHING, dict[Var, tuple[Statement, ContractionCost]]()
        for r in readers:
            found = self._with(r, v)
            cost = self._cost(r, found) if found is not None else None
            if found is None or cost is None:
                return []
            new[r] = found, cost
            before, after = before.plus(self._costs[r]), after.plus(cost)
        if not after < before:
            return []
        self._unset(v)
        for r, (found, cost) in new.items():
            self._set(r, found, cost)
            self._join(v, r)
        near = [*readers, *[x for r in readers for x in self._operands(r)]]
        return [x for x in near if x in self._now and x in self._read_by]

    def _is_read_by_statements(self, v: Var) -> bool:
        if v in self._kept or v not in self._read_by or self._statement(v) is None:
            return False
        return all(len(eqn.outvars) == 1 and self._has_statement(eqn.outvars[0]) for eqn in self._read_by[v])

    def _has_statement(self, v: Var) -> bool:
        if v not in self._first:
            self._statement(v)
        return self._first[v] is not None

    def _with(self, r: Var, v: Var) -> Statement | None:
        """Substitute `v` into the statement of its reader `r`; None if no licence permits it, or it is too large."""
        reader, producer, number = self._now[r], self._now[v], self._number(v)
        if None not in (reader.precision, producer.precision) and reader.precision != producer.precision:
            return None
        if r.aval.dtype != v.aval.dtype and not licence.is_unrounded(producer.terms, v.aval.dtype):
            return None
        every = sorted({*reader.operands, *producer.operands})
        rank = {k: n for n, k in enumerate(every)}
        found = composition(
            reader.terms, tuple([rank[k] for k in reader.operands]), rank[number],
            producer.terms, tuple([rank[k] for k in producer.operands]),
        )  # fmt: skip
        if isinstance(found, Limit):
            found.stop(self._made[v].source)
            return None
        if found is None or (found.cancels and not licence.may_cancel(self._linear or r.linear, r.aval.dtype)):
            return None
        if len(producer.terms) > 1 and not licence.only_moves(reader.terms) and not self._may_tear(v, producer):
            return None
        operands = tuple([every[k] for k in found.operands])
        precision, guarded = reader.precision or producer.precision, reader.guarded or producer.guarded
        return Statement(found.terms, operands, precision, guarded)

    def _may_tear(self, v: Var, producer: Statement) -> bool:
        literals = tuple([n for n, k in enumerate(producer.operands) if type(self._atoms[k]) is Literal])
        return licence.may_be_torn(producer.terms, literals, self._linear or v.linear, v.aval.dtype)

    # gains

    def _group(self, v: Var) -> Var:
        while v in self._groups:
            v = self._groups[v]
        return v

    def _join(self, v: Var, r: Var) -> None:
        a, b = self._group(v), self._group(r)
        if a is not b:
            self._groups[a] = b

    def _worth_it(self) -> dict[Var, Statement]:
        """Return the changed statements of the groups that gain enough."""
        before, after = dict[Var, ContractionCost](), dict[Var, ContractionCost]()
        dropped, left = dict[Var, int](), dict[Var, int]()  # size of the largest value in each group
        for v, first in self._first.items():
            if first is None or (first is self._now.get(v) and v not in self._groups):
                continue
            group, now = self._group(v), self._now.get(v)
            before[group] = before.get(group, NOTHING).plus(self._cost(v, first) or NOTHING)
            after[group] = after.get(group, NOTHING).plus(NOTHING if now is None else self._costs[v])
            if now is None:
                dropped[group] = max(dropped.get(group, 0), v.aval.size)
            else:
                left[group] = max([left.get(group, 0), v.aval.size, *[self._atoms[k].aval.size for k in now.operands]])
        worth = {
            group
            for group, old in before.items()
            if _is_worth_it(old, after[group], dropped.get(group, 0) > left.get(group, 0))
        }
        return {v: found for v, found in self._now.items() if found is not self._first[v] and self._group(v) in worth}

    def _written(self, changed: dict[Var, Statement]) -> Jaxpr:
        w = Writer(self._jaxpr)
        for eqn in self._jaxpr.eqns:
            found = changed.get(eqn.outvars[0]) if len(eqn.outvars) == 1 else None
            if found is not None:
                w.source, aval = eqn.source, eqn.outvars[0].aval
                given = [w.now(self._atoms[k]) for k in found.operands]
                write = as_one_ein if found.guarded else lower_alike
                atom = write(w, found.terms, given, aval, found.precision)
                if atom is not None and w.replace(eqn, atom):
                    continue
            w.keep(w.renamed(eqn))
        after = w.finish()
        # A statement may be cheaper than the operations that it is written as, which were there before.
        return self._jaxpr if equal_but_for_names(self._jaxpr, after) else after


def as_one_ein(w: Writer, terms: Sum, atoms: Sequence[Atom], aval: ShapedArray, precision: Any) -> Atom:
    """Write a sum of terms as one `ein`, or as zeros; factors of another dtype are converted to that of `aval`."""
    others = {f.operand for t in terms for f in t.factors if atoms[f.operand].aval.dtype != aval.dtype}
    first = 1 + max([k for t in terms for k in operands_of(t)], default=0)  # number of the first converted operand
    converted = [_with_factors(t, lambda k: k + first if k in others else k) for t in terms]
    numbers = sorted({k for t in converted for k in operands_of(t)})
    given = [
        atoms[k] if k < first else convert_type(w, atoms[k - first], aval.update(weak_type=False)) for k in numbers
    ]
    found = reduce_terms(
        [t.with_operands(numbers.index) for t in converted], [x.aval for x in given], aval.shape, aval.dtype
    )
    if not found.terms:
        return fill_array(w, 0, aval)
    params = found.params(aval.shape, aval.dtype, precision or canonical_precision(None))
    return w.write(ein_p, *[given[k] for k in found.operands], **params)


def _with_factors(t: Term, number: Callable[[int], int]) -> Term:
    """Renumber the operands of factors, but not those of brackets."""
    factors = [f._replace(operand=number(f.operand)) for f in t.factors]
    return term(t.out, t.sizes, factors, t.brackets, t.coefficient)


class _Queue:
    """A priority queue of distinct values, whose keys may change while they wait."""

    def __init__(self, key: Callable[[Var], tuple[bool, int, int, int]]) -> None:
        self._key = key
        self._heap: list[tuple[tuple[bool, int, int, int], Var]] = []
        self._waiting: set[Var] = set()

    def update(self, found: Iterable[Var]) -> None:
        """Add the values that are not in the queue."""
        for v in found:
            if v not in self._waiting:
                self._waiting.add(v)
                heappush(self._heap, (self._key(v), v))

    def pop(self) -> Var | None:
        """Remove and return the value of the least key; None if the queue is empty."""
        while self._heap:
            key, v = heappop(self._heap)
            now = self._key(v)
            if now == key:
                self._waiting.discard(v)
                return v
            heappush(self._heap, (now, v))
        return None


def _is_worth_it(old: ContractionCost, new: ContractionCost, shrinks: bool) -> bool:
    """Tell whether a group gains enough to be rewritten.

    Args:
      shrinks: a dropped value is larger than all that are left or read, as the products summed by a contraction.
    """
    halved = 2 * new.work <= old.work or 2 * new.held <= old.held
    return (new.work < old.work and (halved or new.steps == 1)) or (new.work == old.work and halved and shrinks)
