"""Sparse cost model: count the operations whose operands are not statically known to be zero.

An addition counts where both operands may be nonzero, a multiplication where both factors may be; a sum of h terms that
may be nonzero is h - 1 additions; a function counts, for each scalar of its result that may be nonzero, 1 or the number
of operations composing it (operation_counts.py). Sparsity analysis (sparsity.py) tells what may be nonzero. Brackets
are free: booleans and integers, selects, and multiplications by values that are zero or one; so are values computed
from constants alone, and moving, sharing and dropping values.
Knowingly simple: sums over windows, convolutions, recurrences and triangular systems count as in cost.py, zeros
included; unknown positions are assumed to be distinct as far as possible; the most expensive branch counts, and one
step of a `while`, as in cost.py; a scan of more than `SCAN_STEPS` steps counts the first, and one that stands for all
others.
Source: Bernstein et al. 2020, section 6.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add as plus
from operator import or_
from typing import Any

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.analysis import cost as dense
from tapeless.interpreters.analysis.cost import Arithmetic, Cost
from tapeless.interpreters.analysis.operation_counts import operations_of
from tapeless.interpreters.analysis.sparsity import (
    SparsityFact,
    abstract_constant,
    element_fact,
    fact_key,
    hits,
    join,
    joined_elements,
    meeting,
    products_that_meet,
    results,
    stacked_facts,
)
from tapeless.tracer import core, dtypes
from tapeless.tracer.bodies import Body, ForwardAnalysis, bodies_of
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from tapeless.tracer.primitives import contraction, special
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.rules import Table


def cost(jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> Cost:
    """Count the cost of running a program once.

    Args:
      consts: values of its first inputs; the others may be nonzero everywhere.
    """
    return through([jaxpr], consts)[0]


def through(programs: Sequence[Jaxpr], consts: Sequence[Any] = ()) -> list[Cost]:
    """Count programs that run one after the other; the last results of each are the first inputs of the next.

    Args:
      consts: values of the first inputs of the first program.
    """
    given, found = [abstract_constant(x, static=True) for x in consts], list[Cost]()
    for program in programs:
        n = min(len(given), len(program.invars) - sum(program.linear_in))
        last = list(given)[len(given) - n :]
        total, given = run(program, [*last, *[SparsityFact(v.aval) for v in program.invars[n:]]])
        found.append(replace(total, size=dense.program_size(program)))
    return found


@core.memoize_by_program
def is_bound(jaxpr: Jaxpr) -> bool:
    """Tell whether a count is an upper bound only: an array is so large that its zeros are not distinguished."""
    avals = [v.aval for eqn in jaxpr.eqns for v in (*eqn.invars, *eqn.outvars)]
    return any(aval.size > limits.SPARSE_ELEMENTS for aval in avals) or any(map(is_bound, jaxpr.programs))


def run(jaxpr: Jaxpr, given: Sequence[SparsityFact]) -> tuple[Cost, list[SparsityFact]]:
    """Compute cost and abstract results of a program from abstract inputs. Remembered for as long as it lives."""
    cache = _runs.setdefault(jaxpr, {})
    key = tuple(map(fact_key, given))
    if key not in cache:
        cache[key] = _run(jaxpr, given)
    return cache[key]


def _run(jaxpr: Jaxpr, given: Sequence[SparsityFact]) -> tuple[Cost, list[SparsityFact]]:
    env: dict[Any, SparsityFact] = dict(zip(jaxpr.invars, given, strict=True))

    def read(v: Any) -> SparsityFact:
        return abstract_constant(v.value, static=True)._replace(aval=v.aval) if isinstance(v, Literal) else env[v]

    total = Cost()
    for eqn in jaxpr.eqns:
        found, outs = _equation(eqn, list(map(read, eqn.invars)))
        total += found
        env.update(zip(eqn.outvars, outs, strict=True))
    return total, list(map(read, jaxpr.outvars))


# ---- equations -----------------------------------------------------------------------------------------------

_ELEMENTWISE = frozenset(p for p in (*vars(e).values(), *vars(special).values()) if isinstance(p, Primitive))
counts: Table[Callable[..., Arithmetic]] = Table(
    "sparse cost",
    "row(eqn, *operands: SparsityFact) -> additions and multiplications of operands that are not known to be zero",
    absent="it is elementwise, and costs its operation count where its result may be nonzero; or it is a move",
)


def _equation(eqn: Equation, given: Sequence[SparsityFact]) -> tuple[Cost, list[SparsityFact]]:
    bodies = bodies_of(eqn)
    if bodies is not None:
        counting = _Counting()
        outs = counting.through(eqn, bodies, given)
        return counting.total, outs
    if any(True for _ in subjaxprs(eqn.params)):
        return _call(eqn, given)
    outs = results(eqn, given)
    moved = dense.count_moved(eqn)
    if all(_is_free(k) for k in outs):
        return moved, outs
    found = _counted(eqn, given)
    if found is None:
        return moved + Cost(nonlinear=_functions(eqn, given, outs)), outs
    if eqn.linear:
        return moved + Cost(adds=found.adds, multiplies=found.multiplies), outs
    return moved + Cost(nonlinear=sum(found)), outs


def _is_free(k: SparsityFact) -> bool:
    """Tell whether a value is computed from constants alone, zero, or neither float nor complex."""
    return k.static or k.support is False or not dtypes.is_inexact(k.aval.dtype)


def _counted(eqn: Equation, given: Sequence[SparsityFact]) -> Arithmetic | None:
    """Count the additions and multiplications of an equation that sums or scales; None for other functions."""
    if eqn.primitive in counts:
        return counts[eqn.primitive](eqn, *given)
    price = dense.price_of(eqn)
    return price.of_linear(eqn) if price.linear else None


def _functions(eqn: Equation, given: Sequence[SparsityFact], outs: Sequence[SparsityFact]) -> int:
    """Count a function by its dense row, or elementwise: once for each element of the result that may be nonzero."""
    row = dense.price_of(eqn).nonlinear
    if row:
        return operations_of(eqn) * row(eqn)
    places = reduce(or_, [k.support for k in given if not k.static], False) if eqn.primitive in _ELEMENTWISE else True
    return operations_of(eqn) * sum(hits(k.support & places, k.aval.shape) for k in outs)


def _call(eqn: Equation, given: Sequence[SparsityFact]) -> tuple[Cost, list[SparsityFact]]:
    jaxpr = eqn.own_params.get("jaxpr")
    if isinstance(jaxpr, Jaxpr) and len(jaxpr.invars) == len(given):
        return run(jaxpr, given)
    once = reduce(plus, map(dense.cost, subjaxprs(eqn.params)), Cost())
    return once.times(eqn.params.get("length", 1)), _anything(eqn)


def _anything(eqn: Equation) -> list[SparsityFact]:
    return [SparsityFact(v.aval) for v in eqn.outvars]


# ---- scalings and sums ---------------------------------------------------------------------------------------


def _hits(eqn: Equation, support: Any) -> int:
    return hits(support, eqn.outvars[0].aval.shape)


def _sum(eqn: Equation, x: SparsityFact, y: SparsityFact) -> Arithmetic:
    return Arithmetic(_hits(eqn, x.support & y.support))


def _difference(eqn: Equation, x: SparsityFact, y: SparsityFact) -> Arithmetic:
    """Count an addition where both operands may be nonzero, a scaling by -1 where only the second may be."""
    both = _hits(eqn, x.support & y.support)
    return Arithmetic(both, _hits(eqn, y.support) - both)


def _product(eqn: Equation, x: SparsityFact, y: SparsityFact) -> Arithmetic:
    factors = np.logical_not(np.asarray(x.binary) | np.asarray(y.binary))
    return Arithmetic(0, _hits(eqn, x.support & y.support & factors))


def _scaling(eqn: Equation, x: SparsityFact, *others: SparsityFact) -> Arithmetic:
    return Arithmetic(0, _hits(eqn, x.support))


def _reduction(eqn: Equation, x: SparsityFact) -> Arithmetic:
    found = _met(eqn, [x])
    return Arithmetic(found.adds if found else max(x.aval.size - eqn.outvars[0].aval.size, 0))


def _met(eqn: Equation, given: Sequence[SparsityFact]) -> Arithmetic | None:
    """Count the additions and products of a sum; None if all products may be nonzero, or are not distinguished."""
    found = None if all(isinstance(k.support, bool) for k in given) else meeting(eqn, given)
    return None if found is None else Arithmetic(int(np.maximum(found - 1, 0).sum()), int(found.sum()))


def _cumulative(eqn: Equation, x: SparsityFact) -> Arithmetic:
    """Count an addition for each element that may be nonzero, except the first."""
    found = None if isinstance(x.support, bool) else meeting(eqn, [x])
    if found is None:
        return dense.price_of(eqn).of_linear(eqn)
    return Arithmetic(int(np.count_nonzero(x.mask & (found > 1))))


def _contraction(eqn: Equation, x: SparsityFact, y: SparsityFact) -> Arithmetic:
    adds, multiplies = _met(eqn, [x, y]) or dense.price_of(eqn).of_linear(eqn)
    return Arithmetic(adds, 0 if x.binary is True or y.binary is True else multiplies)


def _scatter_add(eqn: Equation, x: SparsityFact, indices: SparsityFact, updates: SparsityFact) -> Arithmetic:
    found = None if x.support is True else meeting(eqn, [x, indices, updates])
    if found is None:
        return Arithmetic(max(updates.hits - (x.aval.size - x.hits), 0))
    return Arithmetic(int(np.maximum(found - 1, 0).sum()))


def _ein(eqn: Equation, *given: SparsityFact) -> Arithmetic:
    """Count the products that may be nonzero; factors that are zero or one are brackets, so they are free."""
    terms, shape = eqn.params["terms"], eqn.outvars[0].aval.shape
    found = [products_that_meet((t,), shape, given) for t in terms]
    if any(n is None for n in found):
        return dense.price_of(eqn).of_linear(eqn)
    factors = [sum(given[f.operand].binary is not True for f in t.factors) for t in terms]
    multiplies = [int(n.sum()) * dense.multiplied_by(t, m) for t, n, m in zip(terms, found, factors)]
    return Arithmetic(int(np.maximum(sum(found) - 1, 0).sum()), sum(multiplies))


counts[e.select_n_p] = lambda eqn, *given: Arithmetic()
counts[e.imag_p] = lambda eqn, x: Arithmetic()  # it reads one of two stored numbers
counts[e.add_p], counts[e.sub_p], counts[e.mul_p] = _sum, _difference, _product
for _primitive in (e.neg_p, e.div_p, e.conj_p):
    counts[_primitive] = _scaling
counts[r.reduce_sum_p], counts[r.cumsum_p], counts[contraction.dot_general_p] = _reduction, _cumulative, _contraction
counts[i.scatter_add_p] = _scatter_add
counts[ein_p] = _ein
counts[i.scatter_mul_p] = lambda eqn, x, indices, updates: Arithmetic(0, updates.hits)

# ---- programs ------------------------------------------------------------------------------------------------


class _Counting(ForwardAnalysis[SparsityFact]):
    """The forward analysis of sparsity, with the `total` cost of what runs."""

    def __init__(self) -> None:
        self.total = Cost()

    def run(self, eqn: Equation, body: Body, given: Sequence[SparsityFact]) -> list[SparsityFact]:
        return run(body.jaxpr, given)[1]

    def count(self, eqn: Equation, body: Body, given: Sequence[SparsityFact], times: int) -> None:
        self.total += run(body.jaxpr, given)[0].times(times)

    def join(self, eqn: Equation, x: SparsityFact, y: SparsityFact) -> SparsityFact:
        return join(x, y)

    def key(self, x: SparsityFact) -> Any:
        return fact_key(x)

    def widened(self, x: SparsityFact, rounds: int) -> SparsityFact:
        return x if rounds < limits.FIXED_POINT else SparsityFact(x.aval)

    def selected(self, x: SparsityFact) -> int | None:
        return None if x.value is None else int(x.value)

    def peeled(self, eqn: Equation, steps: range | None) -> int | None:
        return None if steps is None else len(steps) if len(steps) <= limits.SCAN_STEPS else 1

    def element(self, x: SparsityFact, k: int | None) -> SparsityFact:
        return joined_elements(x) if k is None else element_fact(x, k)

    def stacked(self, v: Var, elements: Sequence[SparsityFact]) -> SparsityFact:
        return stacked_facts(v.aval, elements)

    def alternatives(
        self, eqn: Equation, runs: Sequence[Callable[[], Sequence[SparsityFact]]]
    ) -> list[Sequence[SparsityFact]]:
        """Run all branches; the dearest counts."""
        before, found, totals = self.total, list[Sequence[SparsityFact]](), list[Cost]()
        for branch in runs:
            self.total = Cost()
            found.append(branch())
            totals.append(self.total)
        self.total = before + max(totals, key=lambda total: total.work)
        return found


_runs = core.program_cache()
