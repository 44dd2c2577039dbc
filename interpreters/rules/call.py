"""How calls transform: the program is transformed once, whoever calls it, and is called again."""

from collections.abc import Callable
from typing import Any

from tapeless.interpreters import budgets, jvp, partial_eval, recompute, recompute_programs, transpose, vmap
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, are_nonzero, with_zeros, zeros_of
from tapeless.tracer import core, passes
from tapeless.tracer.flags import chosen, merged, others
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call as c


def _jit_jvp(primals: Any, tangents: Any, *, jaxpr: Jaxpr) -> Any:
    nonzero = are_nonzero(tangents)
    if not any(nonzero):
        outs = c.jit(jaxpr, *primals)
        return outs, zeros_of(outs)
    program, consts, out_nonzero = jvp.jvp_jaxpr(jaxpr, nonzero)
    results = c.jit(program, *consts, *primals, *chosen(nonzero, tangents))
    return with_zeros(results, out_nonzero)


def _jit_partial_eval(trace: UnzipTrace, args: Any, *, jaxpr: Jaxpr) -> Any:
    linear_in = tuple(map(trace.is_linear, args))
    halves = partial_eval.unzip_body(jaxpr, linear_in)
    results, residuals = call_known(halves, others(linear_in, args), c.jit)
    linear = trace.record(c.jit_p, [*residuals, *chosen(linear_in, args)], {"jaxpr": halves.linear})
    return merged(halves.linear_out, linear, results)


def call_known(halves: partial_eval.Unzipped, known: list[Any], call: Callable[..., Any]) -> tuple[Any, Any]:
    """Results and residuals of the known half; a residual that is an input is not passed through the call."""
    jaxpr, n = halves.known, len(halves.known.outvars) - halves.residuals
    source = passes.forwarded_inputs(jaxpr)
    computed = [i for i in range(len(jaxpr.outvars)) if i < n or source[i] is None]
    called = jaxpr if len(computed) == len(jaxpr.outvars) else _narrowed(jaxpr, tuple(computed))
    values = dict(zip(computed, call(called, *known) if called.eqns or n else ()))
    outs = [values[i] if i in values else known[source[i]] for i in range(len(jaxpr.outvars))]  # type: ignore[index]  # an input
    return outs[:n], outs[n:]


def _narrowed(jaxpr: Jaxpr, positions: tuple[int, ...]) -> Jaxpr:
    """`jaxpr` with only some of its results; the same object every time, for the compiler's cache."""
    cache = _narrow.setdefault(jaxpr, {})
    if positions not in cache:
        cache[positions] = jaxpr.replace(outvars=[jaxpr.outvars[i] for i in positions])
    return cache[positions]


def _jit_transpose(cts: Any, totals: Any, *args: Any, jaxpr: Jaxpr) -> Any:
    nonzero = are_nonzero(cts)
    running = [totals.take(i) if yes else None for i, yes in enumerate(transpose.read_in_parts(jaxpr))]
    added = tuple(total is not None for total, x in zip(running, args) if is_linear(x))
    program, in_nonzero = transpose.transpose_jaxpr(jaxpr, nonzero, added)
    residuals, given = [x for x in args if not is_linear(x)], chosen(nonzero, cts)
    pulled = iter(c.jit(program, *residuals, *given, *[total for total in running if total is not None]))
    some = iter(in_nonzero)
    return tuple((next(pulled) if next(some) else Zero(x.aval)) if is_linear(x) else None for x in args)


def _jit_vmap(size: int, args: Any, dims: Any, *, jaxpr: Jaxpr) -> Any:
    program, mapped = vmap.batch_where_needed(jaxpr, size, tuple(dims), (False,) * len(jaxpr.outvars))
    return c.jit(program, *args), [0 if some else None for some in mapped]


jvp.rules[c.jit_p] = _jit_jvp
partial_eval.rules[c.jit_p] = _jit_partial_eval
transpose.accumulating[c.jit_p] = _jit_transpose
vmap.rules[c.jit_p] = _jit_vmap
recompute.rules[c.jit_p] = recompute_programs.call
budgets.rules[c.jit_p] = budgets.call

_narrow = core.program_cache()
