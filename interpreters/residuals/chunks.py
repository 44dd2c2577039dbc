"""Loops in chunks: a scan of n steps as a scan of checkpoints of k steps, which saves the carry of each checkpoint.

With k steps, n / k carries are saved, and the residuals of k steps live at once while one checkpoint is pulled back:
both together are fewest for k near the root of n times the carry's bytes over a step's. Each step is computed twice.
Left out: loops with effects; loops of a number of steps that is computed; chunks in chunks, see `state_limit`.
Source: Griewank & Walther 2008, "Evaluating derivatives", section 12.2.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, isqrt, sqrt
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.residuals.rematerialization import save_none
from tapeless.tracer import core
from tapeless.tracer.flags import split_list
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
        eqns.extend([eqn] if loop is None else splice(loop.eqn, _program_in_chunks(loop)))
    return jaxpr.replace(eqns=eqns) if loops else jaxpr


def _program_in_chunks(loop: ChunkedLoop) -> Jaxpr:
    params, avals = loop.eqn.params, tuple([v.aval for v in loop.eqn.invars])
    others = [params[name] for name in ("n_consts", "n_carry", "length", "reverse", "unroll")]
    return write_chunks(params["jaxpr"], avals, loop.steps, *others)


def splice(loop: Equation, program: Jaxpr) -> list[Equation]:
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


def square_root(length: int) -> int:
    """Return how many steps a chunk has, so that chunks and the steps of one are at most 2 sqrt(length), rounded up.

    A divisor of the number of steps is preferred: then no element is copied.
    """
    root, most = isqrt(length), isqrt(4 * length - 1) + 1
    even = [k for k in range(1, root + 1) if length % k == 0 and k + length // k <= most + 1]
    return even[-1] if even else min((root, root + 1), key=lambda k: length // k + k)


# ---- programs ------------------------------------------------------------------------------------------------


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
def write_chunks(
    body: Jaxpr,
    avals: tuple[ShapedArray, ...],
    steps: int,
    n_consts: int,
    n_carry: int,
    length: int,
    reverse: bool,
    unroll: int,
) -> Jaxpr:
    """Write a scan of a body, for operands of the types `avals`, as a scan of checkpoints of so many steps.

    The steps that are left save their residuals.
    """
    times, left = divmod(length, steps)

    def run(n: int, *args: Any) -> tuple[Any, ...]:
        """Run n steps."""
        return scan(
            body, *split_list(args, n_consts, n_carry), length=n, reverse=reverse, unroll=max(min(unroll, n), 1)
        )

    elements = [aval.update(shape=(steps, *aval.shape[1:])) for aval in avals[n_consts + n_carry :]]
    chunk = trace_closed(partial(run, steps), [*avals[: n_consts + n_carry], *elements]) if steps > 1 else body
    again = trace_closed(lambda *args: checkpoint(chunk, *args, policy=save_none), chunk.in_avals)

    def chunks(consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any]) -> tuple[Any, ...]:
        if times == 1:
            return checkpoint(chunk, *consts, *carry, *xs, policy=save_none)
        parts = xs if steps == 1 else [reshape(x, (times, steps, *aval_of(x).shape[1:])) for x in xs]
        outs = scan(again, consts, carry, parts, length=times, reverse=reverse)
        ys = outs[n_carry:]
        joined = ys if steps == 1 else [reshape(y, (times * steps, *aval_of(y).shape[2:])) for y in ys]
        return (*outs[:n_carry], *joined)

    def program(*args: Any) -> Sequence[Any]:
        consts, carry, xs = split_list(args, n_consts, n_carry)
        if not left:
            return chunks(consts, carry, xs)
        first, rest = ((left, length), (0, left)) if reverse else ((0, length - left), (length - left, length))
        outs = chunks(consts, carry, [slice_in_dim(x, *first) for x in xs])
        more = run(left, *consts, *outs[:n_carry], *[slice_in_dim(x, *rest) for x in xs])
        pairs = [(y, z) if first < rest else (z, y) for y, z in zip(outs[n_carry:], more[n_carry:])]
        return [*more[:n_carry], *[concatenate(pair, 0) for pair in pairs]]

    return trace_closed(program, avals)
