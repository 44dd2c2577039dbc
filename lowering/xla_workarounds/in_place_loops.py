"""Loops with in-place updates: order reads before writes, so that XLA's copy insertion copies no array.

XLA on CPU updates an array in place if nothing reads the old array any more. Four things keep it from seeing that, and
then every step of a loop copies the array: n² for n steps.

- Fusion moves the read of an element to where it is used, behind a write. The result of a branch is not moved. If
  a loop's body, with the programs it calls, reads and writes one array, the read passes through a branch. The branch is
  always taken, but XLA cannot evaluate its predicate: the read is *settled*.
- Fusion repeats a write at the read of the array that it wrote. It does not do so in a loop. So such a read is done in
  a loop of one step.
- A read of an element and a write of 0 to it are in no order: neither depends on the other. So a write *waits* for the
  reads: one of its operands passes through a branch. This is always taken, by a predicate of the values read.
- Operands and results of a branch are copied. So branches that update arrays are emitted as loops of one step or none.

None of this changes a value; where it does not help, XLA copies, which is correct.
See docs/decisions/0008-loops-in-place.md.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from tapeless.lowering.hlo import Function, Value
from tapeless.tracer import core, dtypes
from tapeless.tracer.bodies import CARRY, TEST, bodies_of
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var
from tapeless.tracer.rules import Table

index_operands: Table[int] = Table(
    "reads", "position of its first index operand: it reads operand 0 at indices", absent="it reads operands whole"
)
writes: Table[bool] = Table("writes", "it writes operand 0 at indices", absent="its results are new arrays")

# ---- overwritten variables, and the order of equations -------------------------------------------------------


@core.memoize_by_program
def find_written(jaxpr: Jaxpr) -> frozenset[Any]:
    """Find the variables whose elements some equation overwrites, itself or in its bodies."""
    return frozenset([v for eqn in jaxpr.eqns for v in _written_by(eqn)])


def _written_by(eqn: Equation) -> list[Any]:
    """List the operands that an equation overwrites, itself or in its bodies."""
    if eqn.primitive in writes:
        return [eqn.invars[0]]
    found: list[Any] = []
    bodies = bodies_of(eqn)
    for body in bodies.each if bodies is not None else ():
        inside = find_written(body.jaxpr)
        found += [eqn.invars[at] for inner, at in zip(body.jaxpr.invars, body.operands) if inner in inside]
    return found


@core.memoize_by_program
def overwrites(jaxpr: Jaxpr) -> bool:
    """Tell whether a program, or one that it runs, writes into parts of arrays."""
    return any(primitive in writes for primitive in jaxpr.primitives) or any(map(overwrites, jaxpr.programs))


class Order(NamedTuple):
    """The equations of a program, in order; waits: for a write, the reads that it must be made to wait for."""

    eqns: Sequence[Equation]
    waits: dict[Equation, list[Equation]]


def order(jaxpr: Jaxpr, overwritten: Container[Any]) -> Order:
    """Order the equations of a loop's body so that arrays are read before they are overwritten, where possible."""
    writers = {eqn: vs for eqn in jaxpr.eqns if (vs := [v for v in _written_by(eqn) if v in overwritten])}
    readers = _readers(jaxpr, writers)
    if not any(readers.values()):
        return Order(jaxpr.eqns, {})
    needs = _Needs(jaxpr.eqns, dict.fromkeys([*writers, *[r for rs in readers.values() for r in rs]]))
    before = {w: [r for r in rs if not needs(r, w)] for w, rs in readers.items()}
    waits = {w: [r for r in rs if r not in writers and not needs(w, r)] for w, rs in before.items()}
    eqns = _sorted(jaxpr.eqns, before)
    place = {eqn: k for k, eqn in enumerate(eqns)}
    return Order(eqns, {w: found for w, rs in waits.items() if (found := [r for r in rs if place[r] < place[w]])})


def _readers(jaxpr: Jaxpr, writers: dict[Equation, list[Any]]) -> dict[Equation, list[Equation]]:
    """Map each equation that overwrites variables to the other equations reading them."""
    users: dict[Any, dict[Equation, None]] = {v: {} for vs in writers.values() for v in vs}
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            if v in users:
                users[v][eqn] = None
    return {w: list(dict.fromkeys([r for v in vs for r in users[v] if r is not w])) for w, vs in writers.items()}


class _Needs:
    """Transitive dependences of equations on the watched equations, as bit sets."""

    def __init__(self, eqns: Sequence[Equation], watched: Iterable[Equation]) -> None:
        self._bits = {eqn: 1 << k for k, eqn in enumerate(watched)}
        self._needed: dict[Equation, int] = {}
        after: dict[Any, int] = {}  # the watched equations that a variable depends on
        for eqn in eqns:
            needed = self._needed[eqn] = reduce(or_, [after.get(v, 0) for v in eqn.invars], 0)
            after.update(dict.fromkeys(eqn.outvars, needed | self._bits.get(eqn, 0)))

    def __call__(self, eqn: Equation, other: Equation) -> bool:
        return bool(self._needed[eqn] & self._bits[other])


def _sorted(eqns: Sequence[Equation], before: dict[Equation, list[Equation]]) -> Sequence[Equation]:
    """Sort equations, each behind those that it maps to in `before`; unchanged if that is cyclic."""
    if _keeps(eqns, before):
        return eqns
    makers = {v: eqn for eqn in eqns for v in eqn.outvars}
    needed = {eqn: [makers[v] for v in eqn.invars if v in makers] for eqn in eqns}
    waiting, opened, taken = [(eqn, False) for eqn in reversed(eqns)], set[Equation](), list[Equation]()
    while waiting:
        eqn, ready = waiting.pop()
        if ready:
            taken.append(eqn)
        elif eqn not in opened:
            opened.add(eqn)
            waiting += [(eqn, True), *[(other, False) for other in (*before.get(eqn, ()), *needed[eqn])]]
    return taken if _keeps(taken, needed) and _keeps(taken, before) else eqns


def _keeps(eqns: Sequence[Equation], before: dict[Equation, list[Equation]]) -> bool:
    place = {eqn: k for k, eqn in enumerate(eqns)}
    return all(place[other] < place[eqn] for eqn, others in before.items() for other in others)


# ---- branches that are always taken, which XLA does not know -------------------------------------------------


def find_unsettled(jaxpr: Jaxpr, overwritten: Container[Any]) -> dict[Equation, bool]:
    """Find the equations of a loop's body that read overwritten arrays at non-constant indices.

    Returns: for each, whether its array is computed (written) in the same step.
    """
    made = {v for eqn in jaxpr.eqns for v in eqn.outvars}
    return {eqn: eqn.invars[0] in made for eqn in jaxpr.eqns if _reads_one_of(eqn, overwritten)}


def _reads_one_of(eqn: Equation, overwritten: Container[Any]) -> bool:
    first = index_operands.get(eqn.primitive)
    return first is not None and eqn.invars[0] in overwritten and _varying(eqn, first) is not None


def _varying(eqn: Equation, first: int) -> int | None:
    """Return the position of the first index operand that is not a constant; None if there is none."""
    return next((k for k, v in enumerate(eqn.invars) if k >= first and isinstance(v, Var)), None)


def settle(
    f: Function, eqn: Equation, operands: Sequence[Value], read: Callable[[], Sequence[Value]], new: bool
) -> Sequence[Value]:
    """Emit the read `eqn` in a branch that is always taken (if `new`, in a loop of one step): XLA cannot fuse it."""
    index = operands[_varying(eqn, index_operands[eqn.primitive]) or 0]
    if not index.aval.size:
        return read()
    if new:
        zeros = [f.constant(0, v.aval) for v in eqn.outvars]
        return _settled(f, one_step(f, _always(f, index), zeros, lambda *_: read()))
    return [_out_of_a_branch(f, x, [index]) for x in read()]


def wait(f: Function, eqn: Equation, operands: Sequence[Value], values: Iterable[Value]) -> list[Value]:
    """Make one operand of a write depend on `values`: the smallest that is not overwritten itself."""
    found, kept = list(operands), _written_by(eqn)
    others = [k for k, v in enumerate(eqn.invars) if v not in kept and v.aval.dtype != dtypes.float0]
    if others:
        k = min(others, key=lambda k: operands[k].aval.size)
        found[k] = _out_of_a_branch(f, operands[k], values)
    return found


def apart(f: Function, x: Value) -> Value:
    """Keep XLA from computing x where it is read: by a barrier; in loops, whose kernels take none, by a branch."""
    if f.looping:
        return _out_of_a_branch(f, x, [x, _last(f, x)])
    return f.op("optimization_barrier", [x], x.aval)


def _out_of_a_branch(f: Function, x: Value, looked_at: Iterable[Value]) -> Value:
    """Pass x through an always taken branch, whose predicate depends on the values `looked_at`."""
    conditions = [_always(f, each) for each in looked_at if each.aval.size]
    if not conditions:
        return x
    condition = reduce(lambda a, b: f.op("and", [a, b], a.aval), conditions)
    taken, other = f.block([], lambda: [x]), f.block([], lambda: [f.constant(0, x.aval)])
    return _settled(f, [f.op("if", [condition], x.aval, region=f"{taken}, {other}")])[0]


def _settled(f: Function, values: Sequence[Value]) -> Sequence[Value]:
    """Record that XLA does not fuse the definitions of these values with their readers; return the values."""
    for x in values:
        if f.dataflow is not None:
            f.dataflow.cut(x.name)
    return values


def _always(f: Function, x: Value) -> Value:
    """Emit a predicate that is always true, unknown to XLA: max(x, 0) != -1."""
    one = _first(f, x)
    if dtypes.is_complex(one.aval.dtype):
        one = f.op("real", [one], one.aval.update(dtype=dtypes.real_part_dtype(one.aval.dtype)))
    if one.aval.dtype != np.float64:
        one = f.convert(one, np.dtype(np.float32 if dtypes.is_inexact(one.aval.dtype) else np.int64))
    at_least_0 = f.op("maximum", [one, f.constant(0, one.aval)], one.aval)
    return f.compare(at_least_0, f.constant(-1, one.aval), "NE")


def _first(f: Function, x: Value) -> Value:
    """Return the first element, as a scalar."""
    if not x.aval.shape:
        return x
    element = f.slice(x, [0] * x.aval.ndim, [1] * x.aval.ndim)
    return f.op("reshape", [element], x.aval.update(shape=()))


def _last(f: Function, x: Value) -> Value:
    """Slice the last element, with axes of length 1."""
    return f.slice(x, [n - 1 for n in x.aval.shape], x.aval.shape) if x.aval.shape else x


# ---- branches that update ------------------------------------------------------------------------------------


def one_step(
    f: Function, condition: Value, state: Sequence[Value], step: Callable[..., Sequence[Value]]
) -> Sequence[Value]:
    """Emit `step(state)` if a condition holds, as a loop that is left after one step."""
    avals = [condition.aval, *[x.aval for x in state]]
    goes_on = f.block(avals, lambda go, *_: [go])
    body = f.block(avals, lambda _, *now: [f.constant(False, condition.aval), *step(*now)])
    return f.ops("while", [condition, *state], avals, region=f"{goes_on}, {body}")[1:]


def homes(branches: Sequence[Jaxpr]) -> list[int | None]:
    """Map each result of a cond to the operand that every branch updates in place or replaces; None if there is none.

    None if there is no such operand, several, or one that is another result's.
    """
    found = [{p for p in positions if p is not None} for positions in zip(*map(_updated, branches), strict=True)]
    single = [next(iter(each)) if len(each) == 1 else None for each in found]
    return [p if single.count(p) == 1 else None for p in single]


@core.memoize_by_program
def _updated(jaxpr: Jaxpr) -> list[int | None]:
    """Map each result to the input that it is, or that it is made of by overwriting elements; None if neither."""
    makers = {v: (eqn, i) for eqn in jaxpr.eqns for i, v in enumerate(eqn.outvars)}
    return [_traced_back(v, makers, jaxpr.invars) for v in jaxpr.outvars]


def _traced_back(v: Any, makers: dict[Any, tuple[Equation, int]], invars: Sequence[Any]) -> int | None:
    while v in makers:
        eqn, i = makers[v]
        position = 0 if eqn.primitive in writes else _updated_by(eqn)[i]
        if position is None:
            return None
        v = eqn.invars[position]
    return invars.index(v) if v in invars else None


def _updated_by(eqn: Equation) -> list[int | None]:
    """Map each result of an equation with programs to the operand that it updates; None if it is new."""
    found: list[int | None] = [None] * len(eqn.outvars)
    bodies = bodies_of(eqn)
    for body in [body for body in bodies.each if TEST not in body.outs] if bodies is not None and bodies.loops else ():
        updated, pairs = _updated(body.jaxpr), zip(body.inputs(CARRY), body.outputs(CARRY))
        for k, i in pairs:  # the same carry after a step as before
            found[body.results[i]] = body.operands[k] if updated[i] == k else None
    if bodies is not None and not bodies.loops:
        operands = bodies.each[0].operands
        found = [None if k is None else operands[k] for k in homes([body.jaxpr for body in bodies.each])]
    return found
