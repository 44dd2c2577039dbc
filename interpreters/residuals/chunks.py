"""Loops in chunks: a scan of n steps as a scan of checkpoints of k steps, which saves the carry of each checkpoint.

With k steps, n / k carries are saved, and the residuals of k steps live at once while one checkpoint is pulled back:
both together are fewest for k near the root of n times the carry's bytes over a step's. Each step is computed twice.
Left out: loops with effects; loops of a number of steps that is computed.
Source: Griewank & Walther 2008, "Evaluating derivatives", section 12.2.
"""

from collections.abc import Callable, Sequence
from math import ceil, sqrt
from typing import Any, NamedTuple

from tapeless.interpreters import limits
from tapeless.interpreters.residuals.rematerialization import save_none
from tapeless.tracer import core
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.linear_vars import linear_results
from tapeless.tracer.primitives.checkpoint import checkpoint
from tapeless.tracer.primitives.control_flow import as_scan, scan, scan_p
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
    return _chunked(
        params["jaxpr"], avals, params["n_consts"], params["n_carry"], params["length"], params["reverse"], loop.steps
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


@core.memoize_by_program
def _chunked(
    body: Jaxpr, avals: tuple[ShapedArray, ...], n_consts: int, n_carry: int, length: int, reverse: bool, steps: int
) -> Jaxpr:
    """Write a scan of a body as a scan of checkpoints of `steps` steps, and the steps that are left as another one."""
    n_given = n_consts + n_carry
    whole = length - length % steps

    def run(consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], n: int) -> tuple[Any, ...]:
        return scan(body, consts, carry, xs, length=n, reverse=reverse)

    def chunk(*args: Any) -> tuple[Any, ...]:
        return run(args[:n_consts], args[n_consts:n_given], args[n_given:], steps)

    def divided(x: Any, n: int) -> Any:
        return x if steps == 1 else reshape(x, (n // steps, steps, *aval_of(x).shape[1:]))

    def joined(x: Any, n: int) -> Any:
        return x if steps == 1 else reshape(x, (n, *aval_of(x).shape[2:]))

    def chunks(consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], n: int) -> tuple[Any, ...]:
        parts = [divided(x, n) for x in xs]
        of_part = [
            *avals[:n_given],
            *[aval.update(shape=aval_of(x).shape[1:]) for aval, x in zip(avals[n_given:], parts)],
        ]
        one = body if steps == 1 else trace_closed(chunk, of_part)
        again = trace_closed(lambda *args: checkpoint(one, *args, policy=save_none), of_part)
        outs = scan(again, consts, carry, parts, length=n // steps, reverse=reverse)
        return (*outs[:n_carry], *[joined(y, n) for y in outs[n_carry:]])

    def program(*args: Any) -> list[Any]:
        consts, carry, xs = args[:n_consts], args[n_consts:n_given], args[n_given:]
        pieces = [(0, whole, chunks), (whole, length, run)]
        found = {}
        for begin, end, piece in reversed(pieces) if reverse else pieces:
            if begin < end:
                part = [slice_in_dim(x, begin, end) if end - begin < length else x for x in xs]
                outs = piece(consts, carry, part, end - begin)
                carry, found[begin] = outs[:n_carry], outs[n_carry:]
        stacked = [found[begin] for begin in sorted(found)]
        return [*carry, *[ys[0] if len(ys) == 1 else concatenate(ys, 0) for ys in zip(*stacked)]]

    return trace_closed(program, avals)
