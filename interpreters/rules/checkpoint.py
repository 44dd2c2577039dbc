"""Rules of checkpoint, `name`, `move` and optimization barriers (rematerialization).

In an unzipped checkpoint, the linear half begins with the equations that rematerialize what the policy does not save.
Both halves are checkpoints again, so that derivatives of derivatives keep to the policy too. In a transposed one,
rematerialization waits for the cotangents: an optimization barrier ties its inputs to them.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from tapeless.interpreters import (
    jvp,
    partial_eval,
    transpose,
    vmap,
)
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.index_rows import rows, same, without_row
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.residuals import rematerialization, rematerialization_control_flow
from tapeless.interpreters.residuals.barriers import inputs_to_tie
from tapeless.interpreters.rules.call import call_jvp, call_partial_eval, call_transposed
from tapeless.interpreters.simplifications.repeatable_equations import is_fused, may_be_repeated
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import are_nonzero
from tapeless.tracer.flags import merge_lists, where_false, where_true
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import checkpoint as c


def _checkpoint_transpose(cts: Any, totals: Any, *args: Any, jaxpr: Jaxpr, **how: Any) -> Any:
    """Transpose a checkpoint; the transposed program adds to running cotangents in place."""

    def call(program: Jaxpr, residuals: list[Any], given: list[Any], running: list[Any]) -> Any:
        if how["prevent_cse"]:
            residuals, given = _tied(jaxpr, residuals, given, how["policy"])
        return c.checkpoint(program, *residuals, *given, *running, **how)

    reached = transpose.flag_reached(jaxpr, are_nonzero(cts))
    running = [totals.take(i) if yes else None for i, yes in enumerate(reached)]
    return call_transposed(call, jaxpr, cts, args, running)


def _tied(jaxpr: Jaxpr, residuals: list[Any], cts: list[Any], policy: Any) -> tuple[list[Any], list[Any]]:
    """Tie cotangents to the residuals that are rematerialized from, by a barrier; not if that only moves elements.

    Nor does a policy for whole programs want it for sums and products of elements: its segments wait by themselves.
    """
    is_free = is_fused if isinstance(policy, rematerialization.ProgramPolicy) else may_be_repeated
    behind_barrier = inputs_to_tie(jaxpr, is_free)
    if not behind_barrier:
        return residuals, cts
    tied = [v in behind_barrier for v in jaxpr.invars if not v.linear]
    n = sum(tied)
    behind = c.optimization_barrier(*where_true(tied, residuals), *cts)
    return list(merge_lists(tied, behind[:n], where_false(tied, residuals))), list(behind[n:])


def _checkpoint_vmap(size: int, args: Any, dims: Any, *, jaxpr: Jaxpr, **how: Any) -> Any:
    """Batch a checkpoint. What is the same for all examples stays so, as the number of the step at hand does."""
    program, mapped = vmap.batch_where_needed(jaxpr, size, tuple(dims), (False,) * len(jaxpr.outvars))
    return c.checkpoint(program, *args, **how), [0 if some else None for some in mapped]


jvp.rules[c.checkpoint_p] = partial(call_jvp, c.checkpoint_p)
partial_eval.rules[c.checkpoint_p] = partial(call_partial_eval, c.checkpoint_p)
transpose.rules[c.checkpoint_p] = transpose.Accumulating(_checkpoint_transpose)
vmap.rules[c.checkpoint_p] = _checkpoint_vmap
rematerialization.rules[c.checkpoint_p] = rematerialization_control_flow.call

# ---- name ----------------------------------------------------------------------------------------------------

# The name belongs to the value: a policy that saves it does not mean the tangent.
jvp.rules[c.name_p] = lambda primals, tangents, *, name: ((c.name(primals[0], name),), tangents)
jvp.structurally_linear[c.name_p] = jvp.All.JOINTLY
transpose.unary(c.name_p, lambda ct, x, *, name: ct)
vmap.elementwise(c.name_p)
rematerialization.names[c.name_p] = None

# ---- move ----------------------------------------------------------------------------------------------------

jvp.linear(c.move_p)
transpose.unary(c.move_p, lambda ct, x, *, src, dst: c.move(ct, dst, src))
vmap.elementwise(c.move_p)

# ---- materialize ---------------------------------------------------------------------------------------------

# Tangents are not compared with anything, so they need no stored copy.
jvp.rules[c.materialize_p] = lambda primals, tangents: ((c.materialize(*primals),), tangents)
jvp.structurally_linear[c.materialize_p] = jvp.All.JOINTLY
transpose.unary(c.materialize_p, lambda ct, x: ct)
vmap.elementwise(c.materialize_p)

# ---- optimization_barrier ------------------------------------------------------------------------------------


def _among(values: Any, flags: Sequence[bool], apply: Any) -> tuple[Any, ...]:
    """Replace the flagged values by `apply` of them together."""
    applied = apply(where_true(flags, values)) if any(flags) else ()
    return merge_lists(flags, applied, where_false(flags, values))


def _behind_barrier(values: list[Any]) -> tuple[Any, ...]:
    return c.optimization_barrier(*values)


def _barrier_jvp(primals: Any, tangents: Any) -> Any:
    return c.optimization_barrier(*primals), _among(tangents, are_nonzero(tangents), _behind_barrier)


def _barrier_partial_eval(trace: UnzipTrace, args: Any) -> Any:
    linear = [trace.is_unknown(x) for x in args]
    done = _among(args, [not yes for yes in linear], _behind_barrier)
    return _among(done, linear, lambda xs: trace.record(c.optimization_barrier_p, xs, {}))


def _barrier_transpose(cts: Any, *args: Any) -> Any:
    pulled = _among(cts, are_nonzero(cts), _behind_barrier)
    return tuple(ct if is_linear(x) else None for ct, x in zip(pulled, args))


jvp.rules[c.optimization_barrier_p] = _barrier_jvp
partial_eval.rules[c.optimization_barrier_p] = _barrier_partial_eval
linearity.rules[c.optimization_barrier_p] = lambda check, eqn, facts: facts
transpose.rules[c.optimization_barrier_p] = _barrier_transpose
vmap.rules[c.optimization_barrier_p] = lambda size, args, dims: (c.optimization_barrier(*args), dims)


# ---- dce_sink ------------------------------------------------------------------------------------------------


def _sink_vmap(size: int, args: Any, dims: Any) -> Any:
    c.dce_sink(args[0])
    return (), ()


jvp.rules[c.dce_sink_p] = lambda primals, tangents: (c.dce_sink_p.bind(*primals), ())
vmap.rules[c.dce_sink_p] = _sink_vmap

# ---- index rows ----------------------------------------------------------------------------------------------

rows[c.name_p] = rows[c.move_p] = rows[c.materialize_p] = rows[c.optimization_barrier_p] = same
without_row("its program has equations, which have rows", c.checkpoint_p)
without_row("it has no results", c.dce_sink_p)
