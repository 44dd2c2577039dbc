"""Rules of invertible functions: their derivative is that of the function, their residuals come from the results.

The tangents are those of a checkpoint that saves nothing, so that its residuals are the function's inputs. These are
computed from the results by the inverse, where the program is unzipped (`residuals/inversion.py`). The linear half of a
loop of such steps is a `linear_scan`, whose transpose goes back from the last state.
"""

from typing import Any

from tapeless.interpreters import jvp, partial_eval, transpose, vmap
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.index_rows import without_row
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.residuals.rematerialization import save_none
from tapeless.interpreters.rules.call import call_partial_eval
from tapeless.interpreters.rules.control_flow import cotangents_of_operands, reached_operands, transposed_step
from tapeless.interpreters.rules.linear_while import enter_as_program
from tapeless.interpreters.zero import Zero, are_nonzero, instantiate, with_zeros, zeros_of
from tapeless.tracer import core, passes
from tapeless.tracer.flags import split_list, where_true
from tapeless.tracer.jaxpr import Equation, Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.checkpoint import checkpoint, optimization_barrier
from tapeless.tracer.primitives.invertible import (
    as_program,
    group_operands,
    invertible,
    invertible_p,
    linear_scan_p,
)
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import aval_of


def _jvp(primals: Any, tangents: Any, *, jaxpr: Jaxpr, inverse: Jaxpr, n_args: int) -> Any:
    outs, some = invertible(jaxpr, inverse, n_args, *primals), are_nonzero(tangents)
    if not any(some):
        return outs, zeros_of(outs)
    program, consts, some_out = jvp.jvp_jaxpr(jaxpr, some)
    of_tangents = passes.rearrange_program(program, range(len(program.invars)), range(len(outs), len(program.outvars)))
    given = [*consts, *primals, *where_true(some, tangents)]
    pushed = checkpoint(of_tangents, *given, policy=save_none) if any(some_out) else ()
    return with_zeros([*outs, *pushed], some_out)


def _partial_eval(trace: UnzipTrace, args: Any, *, jaxpr: Jaxpr, **_: Any) -> Any:
    return call_partial_eval(call.jit_p, trace, args, jaxpr=jaxpr)


def _transpose(cts: Any, totals: Any, *args: Any, jaxpr: Jaxpr, **_: Any) -> Any:
    return transpose.rules[call.jit_p](cts, totals, *args, jaxpr=jaxpr)


def _vmap(size: int, args: Any, dims: Any, *, jaxpr: Jaxpr, inverse: Jaxpr, n_args: int) -> Any:
    """Batch a function and its inverse. All parts of its input are mapped then, as all parts of its result are."""
    xs = [vmap.move_mapped_axis_first(x, d, size) for x, d in zip(args[n_args:], dims[n_args:])]
    of_args = tuple(dims[:n_args])
    forwards = vmap.batch_jaxpr(jaxpr, size, (*of_args, *[0] * len(xs)))
    back = vmap.batch_jaxpr(inverse, size, (*of_args, *[0] * (len(inverse.invars) - n_args)))
    outs = invertible(forwards, back, n_args, *args[:n_args], *xs)
    return outs, [0] * len(outs)


jvp.rules[invertible_p] = _jvp
partial_eval.rules[invertible_p] = _partial_eval
transpose.rules[invertible_p] = transpose.Accumulating(_transpose)
vmap.rules[invertible_p] = _vmap
without_row("its programs have equations, which have rows", invertible_p)

# ---- loops ---------------------------------------------------------------------------------------------------


def _linear_scan_transpose(
    cts: Any,
    totals: Any,
    *args: Any,
    back: Jaxpr,
    linear: Jaxpr,
    counts: tuple[int, ...],
    reverse: bool,
    **loop: Any,
) -> Any:
    """Transpose a linear scan: a scan in the opposite direction of the step backwards and the transposed linear step.

    It carries the state, running cotangents of the linear constants, to which every step adds in place, and those of
    the carry.
    """
    given = group_operands(args, counts)
    n_residuals = len(back.outvars) - len(given.state)
    reached = reached_operands(linear, cts, n_residuals + len(given.linear_consts), len(given.carry))
    added, first = reached.consts[n_residuals:], sum(counts[:3])
    taken = [(totals.take(first + i), aval_of(x)) for i, (x, yes) in enumerate(zip(given.linear_consts, added)) if yes]
    running = [instantiate(Zero(aval)) if total is None else total for total, aval in taken]
    arriving = [instantiate(ct) for ct in where_true(reached.carry, cts[: len(given.carry)])]
    stacked = where_true(reached.ys, cts[len(given.carry) :])
    pull = transposed_step(linear, reached, n_residuals, 0)
    n_carried = len(running) + len(arriving)
    sizes = len(given.consts), len(given.state), n_carried, len(given.xs)
    program = _step_and_pull(back, pull, sizes, loop["unroll"] > 1)
    outs = c.scan(
        program,
        given.consts,
        [*given.state, *running, *arriving],
        [*given.xs, *stacked],
        reverse=not reverse,
        **loop,
    )
    flags = (*[False] * first, *added, *reached.carry, *reached.xs)
    return cotangents_of_operands(outs[len(given.state) :], flags, args)


@core.memoize_by_program
def _step_and_pull(back: Jaxpr, pull: Jaxpr, sizes: tuple[int, ...], tied: bool) -> Jaxpr:
    """Build the body of the transposed loop: constants, state, cotangents, elements, cotangents of stacked results.

    Args:
      sizes: numbers of all these but the last.
      tied: wait for the cotangents, as a step whose loop is unrolled must.
    """
    n_consts, n_state, n_carried, _ = sizes

    def body(*operands: Any) -> Any:
        consts, state, carried, xs, stacked = split_list(operands, *sizes)
        if tied:
            behind = optimization_barrier(*state, *carried)
            state, carried = behind[:n_state], behind[n_state:]
        outs = eval_jaxpr(back, [*consts, *state, *xs])
        return [*outs[:n_state], *eval_jaxpr(pull, [*outs[n_state:], *carried, *stacked])]

    n = len(back.outvars) - n_state
    of_pull = pull.in_avals[n:]
    first = n_consts + n_state
    avals = [*back.in_avals[:first], *of_pull[:n_carried], *back.in_avals[first:], *of_pull[n_carried:]]
    return trace_closed(body, avals, what="transpose", function=pull).replace(name=pull.name)


def _linear(check: linearity.Check, eqn: Equation, facts: linearity.Facts) -> linearity.Facts:
    first = sum(eqn.params["counts"][:3])
    return (check.jointly(eqn, facts, range(first, len(facts))),) * len(eqn.outvars)


transpose.rules[linear_scan_p] = transpose.Accumulating(_linear_scan_transpose)
linearity.rules[linear_scan_p] = _linear
enter_as_program(linear_scan_p, as_program)
