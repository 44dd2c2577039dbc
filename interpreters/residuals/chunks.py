"""Loops in chunks: a scan of n steps as a scan of checkpoints of k steps, which saves the carry of each checkpoint.

A `Schedule` says which chunks, also chunks of chunks; `schedules` plans it for a number of carries. For a budget:
with k steps, n / k carries are saved, and the residuals of k steps live at once while one checkpoint is pulled back:
both together are fewest for k near the root of n times the carry's bytes over a step's. Each step is computed twice.
Left out: loops with effects; loops of a number of steps that is computed.
Source: Griewank & Walther 2008, "Evaluating derivatives", section 12.2.
"""

from collections.abc import Callable, Sequence
from math import ceil, sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.residuals.rematerialization import save_none
from tapeless.tracer import core
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, eval_jaxpr
from tapeless.tracer.linear_vars import linear_results
from tapeless.tracer.primitives.checkpoint import checkpoint
from tapeless.tracer.primitives.control_flow import as_scan, scan, scan_p
from tapeless.tracer.primitives.elementwise import add
from tapeless.tracer.primitives.indexing import dynamic_index_in_dim
from tapeless.tracer.primitives.shape import concatenate, reshape, slice_in_dim
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray, aval_of

Residuals = Callable[[Equation], int]  # the bytes that all steps of a loop save


class ChunkedLoop(NamedTuple):
    """A loop that runs in chunks: its equation, as a scan, and the number of steps of a chunk."""

    eqn: Equation
    steps: int


def loops_in_chunks(jaxpr: Jaxpr, residuals: Residuals) -> dict[Equation, ChunkedLoop]:
    """Find the loops of a program that save residuals, and how many steps of each are best taken as one chunk."""
    found: dict[Equation, ChunkedLoop] = {}
    for eqn in jaxpr.eqns:
        loop = as_scan(eqn)
        if loop.primitive is scan_p and not loop.params["jaxpr"].effects and (saved := residuals(eqn)):
            steps = _steps(loop.params["length"], saved, _carry_bytes(loop))
            found.update([(eqn, ChunkedLoop(loop, steps))] if steps < loop.params["length"] else ())
    return found


def scans_in_chunks(jaxpr: Jaxpr, residuals: Residuals) -> Jaxpr:
    """Run in chunks each loop of a program that saves residuals; the same object if there is none."""
    loops = loops_in_chunks(jaxpr, residuals)
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        loop = loops.get(eqn)
        eqns.extend([eqn] if loop is None else _spliced(loop.eqn, _program_in_chunks(loop)))
    return jaxpr.replace(eqns=eqns) if loops else jaxpr


def _program_in_chunks(loop: ChunkedLoop) -> Jaxpr:
    params, avals = loop.eqn.params, tuple([v.aval for v in loop.eqn.invars])
    schedule = in_chunks(params["length"], loop.steps)
    return write_schedule(
        params["jaxpr"], avals, params["n_consts"], params["n_carry"], params["reverse"], params["unroll"], schedule
    )


def _spliced(loop: Equation, program: Jaxpr) -> list[Equation]:
    """Write the equations of a program in the place of an equation."""
    env: dict[Atom, Atom] = dict(zip(program.invars, loop.invars))
    results = dict(zip(program.outvars, loop.outvars))
    eqns: list[Equation] = []
    for inner in program.eqns:
        now = inner.replace(invars=[env.get(v, v) for v in inner.invars], source=loop.source)
        linear = linear_results(now)
        outs = [results.get(v) or Var(v.aval, yes) for v, yes in zip(inner.outvars, linear, strict=True)]
        env.update(zip(inner.outvars, outs))
        eqns.append(now.replace(outvars=outs))
    return eqns


def _carry_bytes(loop: Equation) -> int:
    begin = loop.params["n_consts"]
    return sum([v.aval.nbytes for v in loop.invars[begin : begin + loop.params["n_carry"]]])


def _steps(length: int, saved: int, carry: int) -> int:
    """Return how many steps a chunk has: near the number for which carries and residuals balance.

    A divisor of the number of steps is preferred: then no element is copied.
    """

    def live(steps: int) -> float:
        return -(-length // steps) * carry + steps * saved / length

    root = length * sqrt(carry / saved)
    best = min(max(1, int(root)), max(1, ceil(root)), key=live)
    near = [k for k in range(-(-best // limits.CHUNKS), min(limits.CHUNKS * best, length - 1) + 1) if length % k == 0]
    return min(near, key=live, default=best)


# ---- schedules -----------------------------------------------------------------------------------------------


class Schedule(NamedTuple):
    """The steps of a loop in checkpoints, in the order in which they are computed.

    parts: pairs of a number and a schedule, so many checkpoints of which are computed one after another.
    rest: steps at the end, whose residuals are saved.
    """

    parts: tuple[tuple[int, "Schedule"], ...] = ()
    rest: int = 0

    @property
    def length(self) -> int:
        """The number of steps."""
        return sum([times * inner.length for times, inner in self.parts]) + self.rest

    @property
    def evaluations(self) -> int:
        """The evaluations of steps in a forward and a backward pass; one that saves its residuals counts once."""
        return self.length + sum([times * inner.evaluations for times, inner in self.parts])

    @property
    def states(self) -> int:
        """The carries that are live at once, beyond the first one; a step that saves its residuals counts as one."""
        saved, most = 0, 0
        for times, inner in self.parts:
            saved += times
            most = max(most, saved + inner.states)
        return max(most, saved + self.rest - 1)


STEP: Final = Schedule(rest=1)


def in_chunks(length: int, steps: int) -> Schedule:
    """Schedule a loop in checkpoints of `steps` steps each; the steps that are left save their residuals."""
    return Schedule(((length // steps, Schedule(rest=steps)),), length % steps)


@core.memoize_by_program
def read_by_index(body: Jaxpr, elements: tuple[ShapedArray, ...], n_consts: int, n_carry: int, reverse: bool) -> Jaxpr:
    """Write the body of a scan that reads its elements by a counter, its first carry, from arrays that are constants.

    Scans in scans of checkpoints would copy the elements of a chunk at each level. Cotangents of what is read by index
    are added in place.
    """
    counter = ShapedArray((), np.dtype("int32"))
    consts, carry = body.in_avals[:n_consts], body.in_avals[n_consts : n_consts + n_carry]

    def step(*args: Any) -> list[Any]:
        arrays, (k, *carried) = args[n_consts : n_consts + len(elements)], args[n_consts + len(elements) :]
        x = [dynamic_index_in_dim(array, k, 0, keepdims=False, allow_negative_indices=False) for array in arrays]
        return [add(k, np.int32(-1 if reverse else 1)), *eval_jaxpr(body, [*args[:n_consts], *carried, *x])]

    return trace_closed(step, [*consts, *elements, counter, *carry])


@core.memoize_by_program
def write_schedule(
    body: Jaxpr,
    avals: tuple[ShapedArray, ...],
    n_consts: int,
    n_carry: int,
    reverse: bool,
    unroll: int,
    schedule: Schedule,
) -> Jaxpr:
    """Write a scan of a body, for operands of the types `avals`, as scans of checkpoints by a schedule."""
    n_given, length = n_consts + n_carry, schedule.length

    def program(*args: Any) -> list[Any]:
        consts, carry, xs = args[:n_consts], args[n_consts:n_given], args[n_given:]
        found: list[Sequence[Any]] = []
        begin = 0
        for times, inner in (*schedule.parts, (schedule.rest, None)):
            end = begin + times * (inner.length if inner else 1)
            if begin < end:
                start, stop = (length - end, length - begin) if reverse else (begin, end)
                part = [slice_in_dim(x, start, stop) if end - begin < length else x for x in xs]
                outs = checkpoints(inner, consts, carry, part, times) if inner else steps(consts, carry, part, times)
                carry = outs[:n_carry]
                found.append(outs[n_carry:])
            begin = end
        stacked = found[::-1] if reverse else found
        return [*carry, *[ys[0] if len(ys) == 1 else concatenate(ys, 0) for ys in zip(*stacked)]]

    def steps(consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], n: int) -> tuple[Any, ...]:
        return scan(body, consts, carry, xs, length=n, reverse=reverse, unroll=min(unroll, n))

    def checkpoints(
        inner: Schedule, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], times: int
    ) -> tuple[Any, ...]:
        """Compute so many checkpoints of a schedule; of one step each, its elements are those of `xs`."""
        of_one = [aval.update(shape=(inner.length, *aval.shape[1:])) for aval in avals[n_given:]]
        is_step = inner == STEP and times > 1
        one = (
            body
            if is_step
            else write_schedule(body, (*avals[:n_given], *of_one), n_consts, n_carry, reverse, unroll, inner)
        )
        if times == 1:
            return checkpoint(one, *consts, *carry, *xs, policy=save_none)
        parts = xs if is_step else [reshape(x, (times, inner.length, *aval_of(x).shape[1:])) for x in xs]
        again = trace_closed(lambda *args: checkpoint(one, *args, policy=save_none), one.in_avals)
        outs = scan(again, consts, carry, parts, length=times, reverse=reverse)
        ys = outs[n_carry:]
        joined = ys if is_step else [reshape(y, (times * inner.length, *aval_of(y).shape[2:])) for y in ys]
        return (*outs[:n_carry], *joined)

    return trace_closed(program, avals)
