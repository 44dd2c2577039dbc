"""Rules of calls: transform the program once for all its calls, and call the transformed program."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any

from tapeless.interpreters import (
    jvp,
    partial_eval,
    roots,
    transpose,
    vmap,
)
from tapeless.interpreters.index_rows import without_row
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.residuals import rematerialization, rematerialization_control_flow
from tapeless.interpreters.residuals.rematerialization import ProgramPolicy, save_all
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, are_nonzero, with_zeros, zeros_of
from tapeless.tracer import core, passes
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import merge_lists, where_false, where_true
from tapeless.tracer.jaxpr import Atom, Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import call as c
from tapeless.tracer.staging import trace_closed


def call_jvp(primitive: Primitive, primals: Any, tangents: Any, *, jaxpr: Jaxpr, **how: Any) -> Any:
    """Push tangents through a call of `jaxpr`, by a call of its jvp: the jvp rule of `primitive`."""
    some = are_nonzero(tangents)
    if not any(some):
        outs = primitive.bind(*primals, jaxpr=jaxpr, **how)
        return outs, zeros_of(outs)
    program, consts, some_out = jvp.jvp_jaxpr(jaxpr, some)
    return with_zeros(primitive.bind(*consts, *primals, *where_true(some, tangents), jaxpr=program, **how), some_out)


def call_partial_eval(primitive: Primitive, trace: UnzipTrace, args: Any, *, jaxpr: Jaxpr, **how: Any) -> Any:
    """Split a call of `jaxpr` into calls of its primal and linear halves; a `policy` among `how` chooses residuals."""
    linear_in = tuple(map(trace.is_unknown, args))
    policy = how.get("policy", save_all)
    halves = trace.unzip_body(jaxpr, linear_in, policy)
    if trace.linear and isinstance(policy, ProgramPolicy):
        how = {**how, "policy": policy.of_halves()}
    results, residuals = call_primal(
        halves, where_false(linear_in, args), lambda program, *xs: primitive.bind(*xs, jaxpr=program, **how)
    )
    linear = trace.record(primitive, [*residuals, *where_true(linear_in, args)], {"jaxpr": halves.linear, **how})
    return merge_lists(halves.linear_out, linear, results)


def call_primal(halves: partial_eval.UnzippedJaxpr, primal: list[Any], call: Callable[..., Any]) -> tuple[Any, Any]:
    """Call the primal half; return its results and residuals. Residuals that are inputs do not pass the call."""
    jaxpr, n = halves.primal, len(halves.primal.outvars) - halves.residuals
    source = passes.forwarded_inputs(jaxpr)
    computed = [i for i in range(len(jaxpr.outvars)) if i < n or source[i] is None]
    called = jaxpr if len(computed) == len(jaxpr.outvars) else _narrowed(jaxpr, tuple(computed))
    values = dict(zip(computed, call(called, *primal) if called.eqns or n else ()))
    outs = [values[i] if i in values else primal[source[i]] for i in range(len(jaxpr.outvars))]  # type: ignore[index]  # an input
    return outs[:n], outs[n:]


@core.memoize_by_program
def _narrowed(jaxpr: Jaxpr, positions: tuple[int, ...]) -> Jaxpr:
    """Keep only the results of `jaxpr` at `positions`; the same object every time, for the compiler's cache."""
    return jaxpr.replace(outvars=[jaxpr.outvars[i] for i in positions])


def _jit_transpose(cts: Any, totals: Any, *args: Any, jaxpr: Jaxpr) -> Any:
    running = [totals.take(i) if yes else None for i, yes in enumerate(transpose.read_in_parts(jaxpr))]
    return call_transposed(lambda program, *groups: c.jit(program, *chain(*groups)), jaxpr, cts, args, running)


def call_transposed(
    call: Callable[..., Sequence[Any]], jaxpr: Jaxpr, cts: Any, args: Any, running: Sequence[Any]
) -> tuple[Any, ...]:
    """Compute the cotangents of the operands of a call of `jaxpr`, by a call of its transpose.

    Args:
      call: `call(program, residuals, cts, totals)` calls the transposed program.
      running: for every operand the running cotangent that the program is to add to, or None.
    Returns: for every operand its cotangent, which may be `Zero`; None if the operand is not linear.
    """
    some, linear, added = are_nonzero(cts), jaxpr.linear_in, [total is not None for total in running]
    program, reached = transpose.transpose_jaxpr(jaxpr, some, tuple(where_true(linear, added)))
    pulled = iter(call(program, where_false(linear, args), where_true(some, cts), where_true(added, running)))
    found = [next(pulled) if yes else None for yes in reached]
    each = merge_lists(linear, found, repeat(None))
    return tuple([(Zero(x.aval) if ct is None else ct) if is_linear(x) else None for ct, x in zip(each, args)])


def _jit_vmap(size: int, args: Any, dims: Any, *, jaxpr: Jaxpr) -> Any:
    program, mapped = vmap.batch_where_needed(jaxpr, size, tuple(dims), (False,) * len(jaxpr.outvars))
    return c.jit(program, *args), [0 if some else None for some in mapped]


# ---- roots ---------------------------------------------------------------------------------------------------


def _returns_root(args: Any, params: Any) -> bool:
    """Tell whether a call has one result, a root, and no effects, which its square would repeat."""
    jaxpr = params["jaxpr"]
    return len(jaxpr.outvars) == 1 and not jaxpr.effects and _is_root(jaxpr)


@core.memoize_by_program
def _is_root(jaxpr: Jaxpr) -> bool:
    """Tell whether the last result of a program is a root, or is made of roots, as its equations tell."""
    found: set[Atom] = set()
    for eqn in jaxpr.eqns:
        if eqn.primitive is c.jit_p:
            is_root = _returns_root(eqn.invars, eqn.params)
        elif eqn.primitive in roots.roots:
            is_root = roots.roots[eqn.primitive].applies is roots.always or any(v in found for v in eqn.invars)
        else:
            continue
        found.update(eqn.outvars if is_root else ())
    return jaxpr.outvars[-1] in found


def _squared_call(*args: Any, jaxpr: Jaxpr) -> Any:
    return c.jit(_squared(jaxpr), *args)[0]


@core.memoize_by_program
def _squared(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program of the square of the only result of a program, computed without the root."""

    def square(*xs: Any) -> list[Any]:
        return [roots.square_of(eval_jaxpr, jaxpr, xs)]

    return trace_closed(square, jaxpr.in_avals, what="jvp", function=jaxpr)


roots.roots[c.jit_p] = roots.Root(_squared_call, _returns_root)

jvp.rules[c.jit_p] = partial(call_jvp, c.jit_p)
partial_eval.rules[c.jit_p] = partial(call_partial_eval, c.jit_p)
transpose.rules[c.jit_p] = transpose.Accumulating(_jit_transpose)
vmap.rules[c.jit_p] = _jit_vmap
rematerialization.rules[c.jit_p] = rematerialization_control_flow.call

# ---- index rows ----------------------------------------------------------------------------------------------

without_row("its program has equations, which have rows", c.jit_p)
