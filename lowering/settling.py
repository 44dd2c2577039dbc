"""Reads of arrays that a loop overwrites, settled before the write.

XLA's fusion on CPU moves the read of an element into the write of another, and then must copy the array at every step
of a loop: n² for n steps. A value that comes out of a branch is not moved. So what a loop's body, or a program that it
calls, reads of an array that is also written there passes through a branch that is always taken, on a condition that
the compiler does not see through.
"""

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from tapeless.lowering.hlo import Function, Value
from tapeless.tracer import core
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var, subjaxprs
from tapeless.tracer.rules import Table

reads: Table[int] = Table("reads")  # primitives that read operand 0 in places: which operand is their first index
writes: Table[bool] = Table("writes")  # primitives that write operand 0 in places


def written(jaxpr: Jaxpr) -> frozenset[Any]:
    """The variables whose elements some equation overwrites, here or in a program that it runs."""
    cache = _written.setdefault(jaxpr, {})
    if not cache:
        cache["all"] = frozenset([v for eqn in jaxpr.eqns for v in _written_by(eqn)])
    return cache["all"]


def _written_by(eqn: Equation) -> list[Any]:
    """Operands that an equation overwrites; programs take the last operands, if not all."""
    if eqn.primitive in writes:
        return [eqn.invars[0]]
    found: list[Any] = []
    for program in subjaxprs(eqn.params):
        inside = written(program)
        found += [v for inner, v in zip(program.invars[::-1], eqn.invars[::-1]) if inner in inside]
    return found


def unsettled(jaxpr: Jaxpr, overwritten: Container[Any]) -> set[Equation]:
    """The equations of a loop's body that read, at places known when it runs, arrays that are overwritten."""
    return {eqn for eqn in jaxpr.eqns if _reads_one_of(eqn, overwritten)}


def _reads_one_of(eqn: Equation, overwritten: Container[Any]) -> bool:
    first = reads.get(eqn.primitive)
    return first is not None and eqn.invars[0] in overwritten and _varying(eqn, first) is not None


def _varying(eqn: Equation, first: int) -> int | None:
    """The first index operand that is not a constant."""
    return next((k for k, v in enumerate(eqn.invars) if k >= first and isinstance(v, Var)), None)


def settle(f: Function, eqn: Equation, operands: Sequence[Value], value: Value) -> Value:
    """What `eqn` read, out of a branch that is always taken: what is no less than 0 is not -1."""
    index = operands[_varying(eqn, reads[eqn.primitive]) or 0]
    if not index.aval.size:
        return value
    one = f.convert(_first(f, index), np.dtype(np.int64))
    at_least_0 = f.op("maximum", [one, f.constant(0, one.aval)], one.aval)
    always = f.compare(at_least_0, f.constant(-1, one.aval), "NE")
    taken, other = f.block([], lambda: [value]), f.block([], lambda: [f.constant(0, value.aval)])
    return f.op("if", [always], value.aval, region=f"{taken}, {other}")


def _first(f: Function, x: Value) -> Value:
    """The first element."""
    if not x.aval.shape:
        return x
    element = f.slice(x, [0] * x.aval.ndim, [1] * x.aval.ndim)
    return f.op("reshape", [element], x.aval.update(shape=()))


_written = core.program_cache()
