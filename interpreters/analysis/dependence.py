"""Dependence analysis: which inputs each element of a result is a linear function of, exactly, by index rows.

Search terms: sparsity pattern of a Jacobian, symbolic phase, index sets. One forward pass through a program of
tangents, as forward mode makes it: a value that depends on tangents has the label of a set of indices for each element
(index_sets.py), any other value has its sparsity (sparsity.py): brackets that fail, coefficients that are zero, and
positions that are read. Accesses of index rows move labels, and what is added up unites them.
Where a value of the program decides, as a predicate, an index or a branch, the result is the union over what it may be.
A function without a row depends on all elements of its operands. Loops are followed step by step; those of more than
`DEPENDENCE_STEPS` equations in all steps together are one step that stands for all, after which carries have stopped
growing; if they have no carry, all steps are followed at once.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.analysis import sparsity
from tapeless.interpreters.analysis.index_sets import IndexSets, Labels
from tapeless.interpreters.analysis.sparsity import SparsityFact
from tapeless.interpreters.index_rows import Combination, IndexRow, index_row
from tapeless.interpreters.vmap import batch_jaxpr
from tapeless.tracer import dtypes
from tapeless.tracer.bodies import CARRY, EACH, Bodies, Body, ForwardAnalysis, bodies_of
from tapeless.tracer.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from tapeless.tracer.terms.affine import Affine, Symbol, variable
from tapeless.tracer.terms.evaluate import Grids, Semiring, accumulate_first
from tapeless.tracer.terms.term import Bracket, Lookup, NotNegative, Read, Term, Use, is_case, looked_up, term


class Dependence(NamedTuple):
    """Abstract value: a label of a set of input elements for each element, None if there are none; and its sparsity."""

    fact: SparsityFact
    labels: Labels | None = None


def dependence(program: Jaxpr, consts: Sequence[Any], tangents: Sequence[int]) -> tuple[Any, Any]:
    """Find which elements of inputs each element of the results depends on.

    Args:
      consts: values of its first inputs, tracers among them.
      tangents: the numbers of the inputs that count, whose elements are numbered one after another.
    Returns: (rows, columns), sorted: the pairs of an element of the results, numbered in the same way, and of an input.
    """
    avals = [v.aval for v in program.invars]
    given = [Dependence(sparsity.abstract_constant(x, static=True)) for x in consts]
    given += [Dependence(SparsityFact(aval)) for aval in avals[len(consts) :]]
    sets, start = IndexSets(sum(avals[k].size for k in tangents)), 0
    for k in tangents:
        given[k] = given[k]._replace(labels=sets.singletons(start, avals[k].shape))
        start += avals[k].size
    with sparsity.telling_apart(limits.DEPENDENCE_ELEMENTS):
        found = _DependenceAnalysis(sets).results(program, given)
    labels = [np.zeros(x.fact.aval.size, np.int64) if x.labels is None else x.labels.reshape(-1) for x in found]
    return sets.coordinates(np.concatenate([np.zeros(0, np.int64), *labels]))


class _DependenceAnalysis(ForwardAnalysis[Dependence]):
    """The forward analysis of dependence, over sets of indices that it interns."""

    def __init__(self, sets: IndexSets) -> None:
        self._sets = sets

    def results(self, program: Jaxpr, given: Sequence[Dependence]) -> list[Dependence]:
        """Return the abstract results of a program from abstract inputs."""
        env: dict[Any, Dependence] = dict(zip(program.invars, given, strict=True))

        def read(v: Any) -> Dependence:
            if not isinstance(v, Literal):
                return env[v]
            return Dependence(sparsity.abstract_constant(v.value, static=True)._replace(aval=v.aval))

        for eqn in program.eqns:
            env.update(zip(eqn.outvars, self._equation(eqn, list(map(read, eqn.invars))), strict=True))
        return list(map(read, program.outvars))

    def _equation(self, eqn: Equation, given: Sequence[Dependence]) -> Sequence[Dependence]:
        bodies, depends = bodies_of(eqn), any(x.labels is not None for x in given)
        if bodies is not None and depends and _is_long_map(eqn, bodies):
            return self._steps_at_once(eqn, bodies, given)
        if bodies is not None and (depends or not bodies.loops):
            return self.through(eqn, bodies, given)
        if not depends:
            if any(True for _ in subjaxprs(eqn.params)):
                return [Dependence(SparsityFact(v.aval)) for v in eqn.outvars]
            return list(map(Dependence, sparsity.results(eqn, [x.fact for x in given])))
        labels = self._labels(eqn, given)
        pairs = zip(eqn.outvars, labels, strict=True)
        return [Dependence(SparsityFact(v.aval), x if dtypes.is_inexact(v.aval.dtype) else None) for v, x in pairs]

    def _steps_at_once(self, eqn: Equation, bodies: Bodies, given: Sequence[Dependence]) -> Sequence[Dependence]:
        """Follow a long loop without carry as `vmap` does: no step depends on another."""
        (body,), size = bodies.each, len(bodies.steps or ())
        dims = tuple([0 if role is EACH else None for role in body.ins])
        batched = batch_jaxpr(body.jaxpr, size, dims)
        found = dict(zip(body.results, self.results(batched, [given[at] for at in body.operands])))
        return [found[k] for k in range(len(eqn.outvars))]

    def _labels(self, eqn: Equation, given: Sequence[Dependence]) -> list[Labels]:
        row = index_row(eqn)
        if row is None:
            every = self._sets.union([self._sets.union(x.labels) for x in given if x.labels is not None])
            return [np.full(v.aval.shape, every) for v in eqn.outvars]
        found = _RowLabels(self._sets, row, given)
        return [found.labels(terms, v.aval.shape) for terms, v in zip(row.results, eqn.outvars, strict=True)]

    # ---- programs of equations

    def run(self, eqn: Equation, body: Body, given: Sequence[Dependence]) -> Sequence[Dependence]:
        return self.results(body.jaxpr, given)

    def join(self, eqn: Equation, x: Dependence, y: Dependence) -> Dependence:
        fact = sparsity.join(x.fact, y.fact)
        if x.labels is None or y.labels is None:
            return Dependence(fact, y.labels if x.labels is None else x.labels)
        return Dependence(fact, self._sets.merged(x.labels, y.labels))

    def key(self, x: Dependence) -> Any:
        return sparsity.fact_key(x.fact), None if x.labels is None else x.labels.tobytes()

    def widened(self, x: Dependence, rounds: int) -> Dependence:
        return x if rounds < limits.FIXED_POINT else x._replace(fact=SparsityFact(x.fact.aval))

    def selected(self, x: Dependence) -> int | None:
        return None if x.fact.value is None else int(x.fact.value)

    def peeled(self, eqn: Equation, steps: range | None) -> int | None:
        if steps is None:
            return None
        return None if limits.DEPENDENCE_STEPS.is_passed(len(steps) * _equations(eqn), eqn.source) else len(steps)

    def element(self, x: Dependence, k: int | None) -> Dependence:
        fact = sparsity.joined_elements(x.fact) if k is None else sparsity.element_fact(x.fact, k)
        if x.labels is None:
            return Dependence(fact)
        return Dependence(fact, self._sets.along(x.labels, (0,))[0] if k is None else x.labels[k])

    def stacked(self, v: Var, elements: Sequence[Dependence]) -> Dependence:
        if all(x.labels is None for x in elements):
            return Dependence(sparsity.stacked_facts(v.aval, [x.fact for x in elements]))
        shape = v.aval.shape[1:]
        labels = [np.zeros(shape, np.int64) if x.labels is None else x.labels for x in elements]
        return Dependence(SparsityFact(v.aval), np.stack(labels))


def _is_long_map(eqn: Equation, bodies: Bodies) -> bool:
    """Tell whether this is a loop of many steps that hand nothing on."""
    steps = len(bodies.steps or ())
    return bodies.loops and not bodies.operands(CARRY) and steps * _equations(eqn) > limits.DEPENDENCE_STEPS


def _equations(eqn: Equation) -> int:
    return sum(len(program.eqns) for program in subjaxprs(eqn.params))


class _RowLabels:
    """The labels of results that an index row gives from those of operands."""

    def __init__(self, sets: IndexSets, row: IndexRow, given: Sequence[Dependence]) -> None:
        self._sets, self._row, self._given = sets, row, given
        self._known = frozenset([k for k, x in enumerate(given) if x.fact.value is not None])
        self._operands = [x.fact.value if x.labels is None else x.labels for x in given]
        self._ring = Semiring(np.dtype(np.int64), 0, _Union(sets))

    def labels(self, terms: Sequence[Term], shape: tuple[int, ...]) -> Labels:
        """Unite what the terms write to each element of a result; the last of scatters at known places is alone."""
        found = np.zeros(shape, np.int64)
        for t in terms:
            overwrites = self._row.operation == "last" and bool(t.brackets) and looked_up(t) <= self._known
            if 0 in t.sizes or 0 in shape:
                continue
            t = _widened(t, looked_up(t) - self._known)
            for f in t.factors:
                if self._given[f.operand].labels is not None:
                    found = self._sets.merged(found, self._written(t, f, shape))
            if overwrites:
                found = self._overwritten(found, t, shape)
        return found

    def _overwritten(self, before: Labels, t: Term, shape: tuple[int, ...]) -> Labels:
        """Write a term in the place of what was there before."""
        (f,) = t.factors
        box = Grids(t.sizes, self._operands)
        mask = _all([m for b in _lookups_first(t.brackets) if (m := box.mask(b)) is not None])
        at = np.broadcast_arrays(box.places(shape, t.out), mask)
        is_written = np.zeros(prod(shape), bool)
        is_written[at[0][at[1]]] = True
        own = np.zeros(shape, np.int64) if self._given[f.operand].labels is None else self._written(t, f, shape)
        return np.where(is_written.reshape(shape), own, before)

    def _written(self, t: Term, f: Read, shape: tuple[int, ...]) -> Labels:
        """Unite the labels that one factor of a term reads for each element that the term writes."""
        if self._row.combination is Combination.TERMS:
            others = [g for g in t.factors if g is not f and g.use is not Use.DIVIDED]
        else:
            others = []
        facts = [(g, self._given[g.operand].fact) for g in others if self._given[g.operand].labels is None]
        if t.coefficient == 0 or any(fact.support is False for _, fact in facts):
            return np.zeros(shape, np.int64)
        masks = {g: fact.mask for g, fact in facts if not isinstance(fact.support, bool)}
        if not masks:
            t, operands = self._cumulated(t, f)
            f = t.factors[0] if operands is not self._operands else f
        else:
            operands = self._operands
        box = Grids(t.sizes, operands)
        where = [m for b in _lookups_first(t.brackets) if (m := box.mask(b)) is not None]
        where += [box.read(np.asarray(mask), g.access) for g, mask in masks.items()]
        read = box.read(np.asarray(operands[f.operand]), f.access)
        return self._added(box, t, shape, np.where(_all(where), read, 0) if where else read)

    def _cumulated(self, t: Term, f: Read) -> tuple[Term, Sequence[Any]]:
        """Unite labels cumulatively first, if a term of one factor is a cumulative sum."""
        if len(t.factors) == 1 and t.brackets:
            return accumulate_first(t, self._operands, self._ring)
        return t, self._operands

    def _added(self, box: Grids, t: Term, shape: tuple[int, ...], read: Labels) -> Labels:
        """Unite labels over variables without place in the result, then those at one place."""
        out = np.zeros(shape, np.int64)
        place = box.place(out, t.out)
        at = place if place is not None else box.places(shape, t.out)
        summed = tuple([v for v, n in enumerate(read.shape) if n > 1 and at.shape[v] == 1])
        read = self._sets.along(read, summed) if summed else read
        if place is not None:
            place[...] = read
            return out
        at, read = np.broadcast_arrays(at, read)
        return self._sets.united(at.reshape(-1), read.reshape(-1), prod(shape)).reshape(shape)


class _Union:
    """The addition of a semiring of labels."""

    def __init__(self, sets: IndexSets) -> None:
        self._sets = sets

    def accumulate(self, x: Labels, axis: int) -> Labels:
        """Unite cumulatively along an axis."""
        found = np.array(np.moveaxis(x, axis, 0))
        for k in range(1, len(found)):
            found[k] = self._sets.merged(found[k - 1], found[k])
        return np.moveaxis(found, 0, axis)


def _all(masks: Sequence[Any]) -> Any:
    found = np.asarray(True)
    for mask in masks:
        found = found & mask
    return found


def _lookups_first(brackets: Sequence[Bracket]) -> list[Bracket]:
    return sorted(brackets, key=lambda b: not isinstance(b, Lookup))


# ---- what is not known ----------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _widened(t: Term, unknown: frozenset[int]) -> Term:
    """Return a term for all values that unknown operands may have, where it reads positions, cases or symbols."""
    if not unknown:
        return t
    brackets = list[Bracket]()
    for b in t.brackets:
        if not (isinstance(b, Lookup) and b.operand in unknown):
            brackets.append(b)
        elif not is_case(b) and b.limits is not None:
            brackets += [NotNegative(b.index - b.limits[0]), NotNegative(b.limits[1] - b.index)]
    moving = {s for a in (*t.out, *[a for f in t.factors for a in f.access]) for s, _ in a.symbols}
    new = {s: len(t.sizes) + k for k, s in enumerate(sorted([s for s in moving if s.operand in unknown]))}
    sizes = [*t.sizes, *[s.high - s.low + 1 for s in new]]
    out, factors, inside = t.with_brackets(brackets).changed(lambda a: _free(a, new))
    kept = [b for b in inside if not _may_hold(b, unknown)]
    loose = [NotNegative(_greatest(b.index, unknown)) for b in inside if isinstance(b, NotNegative) and b not in kept]
    return term(out, sizes, factors, [*kept, *loose], t.coefficient)


def _free(a: Affine, new: dict[Symbol, int]) -> Affine:
    """Make variables of symbols."""
    found = Affine(a.constant, a.variables, tuple([(s, c) for s, c in a.symbols if s not in new]))
    for s, c in a.symbols:
        if s in new:
            found = found + c * (variable(new[s]) + s.low)
    return found


def _may_hold(b: Bracket, unknown: frozenset[int]) -> bool:
    return any(s.operand in unknown for s, _ in b.index.symbols)


def _greatest(a: Affine, unknown: frozenset[int]) -> Affine:
    """Give unknown symbols the value at which an index is greatest."""
    most = [max(c * s.low, c * s.high) for s, c in a.symbols if s.operand in unknown]
    return Affine(
        a.constant + sum(most), a.variables, tuple([(s, c) for s, c in a.symbols if s.operand not in unknown])
    )
