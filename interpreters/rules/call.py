"""How calls transform: the program is transformed once, whoever calls it, and is called again."""

from typing import Any

from tapeless.interpreters import jvp, partial_eval, transpose
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero
from tapeless.tracer import core, passes
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call as c
from tapeless.tracer.types import aval_of


def _jit_jvp(primals: Any, tangents: Any, *, jaxpr: Jaxpr) -> Any:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    if not any(nonzero):
        outs = c.jit(jaxpr, *primals)
        return outs, tuple(Zero(aval_of(x).tangent()) for x in outs)
    program, consts, out_nonzero = jvp.jvp_jaxpr(jaxpr, nonzero)
    results = c.jit(program, *consts, *primals, *[t for t in tangents if type(t) is not Zero])
    outs, pushed = results[: len(out_nonzero)], iter(results[len(out_nonzero) :])
    return outs, tuple(
        next(pushed) if some else Zero(aval_of(x).tangent()) for x, some in zip(outs, out_nonzero)
    )


def _jit_partial_eval(trace: UnzipTrace, args: Any, *, jaxpr: Jaxpr) -> Any:
    linear_in = tuple(map(trace.is_linear, args))
    halves = partial_eval.unzip_jaxpr(jaxpr, linear_in)
    known = [x for x, waits in zip(args, linear_in) if not waits]
    results, residuals = _call_known(halves, known)
    waiting = [x for x, waits in zip(args, linear_in) if waits]
    linear = iter(trace.record(c.jit_p, [*residuals, *waiting], {"jaxpr": halves.linear}))
    done = iter(results)
    return tuple(next(linear) if waits else next(done) for waits in halves.linear_out)


def _call_known(halves: partial_eval.Unzipped, known: list[Any]) -> tuple[Any, Any]:
    """Results and residuals of the known half; a residual that is an input is not passed through the call."""
    jaxpr, n = halves.known, len(halves.known.outvars) - halves.residuals
    source = passes.forwarded_inputs(jaxpr)
    computed = [i for i in range(len(jaxpr.outvars)) if i < n or source[i] is None]
    called = jaxpr if len(computed) == len(jaxpr.outvars) else _narrowed(jaxpr, tuple(computed))
    values = dict(zip(computed, c.jit(called, *known) if called.eqns or n else ()))
    outs = [values[i] if i in values else known[source[i]] for i in range(len(jaxpr.outvars))]  # type: ignore[index]
    return outs[:n], outs[n:]


def _narrowed(jaxpr: Jaxpr, positions: tuple[int, ...]) -> Jaxpr:
    """`jaxpr` with only some of its results; the same object every time, for the compiler's cache."""
    cache = _narrow.setdefault(jaxpr, {})
    if positions not in cache:
        cache[positions] = jaxpr.replace(outvars=[jaxpr.outvars[i] for i in positions])
    return cache[positions]


def _jit_transpose(cts: Any, *args: Any, jaxpr: Jaxpr) -> Any:
    nonzero = tuple(type(ct) is not Zero for ct in cts)
    program, in_nonzero = transpose.transpose_jaxpr(jaxpr, nonzero)
    residuals = [x for x in args if not is_linear(x)]
    pulled = iter(c.jit(program, *residuals, *[ct for ct in cts if type(ct) is not Zero]))
    some = iter(in_nonzero)
    return tuple((next(pulled) if next(some) else Zero(x.aval)) if is_linear(x) else None for x in args)


jvp.rules[c.jit_p] = _jit_jvp
partial_eval.rules[c.jit_p] = _jit_partial_eval
transpose.rules[c.jit_p] = _jit_transpose

# ---- custom_jvp ----------------------------------------------------------------------------------------------


def _custom_jvp_jvp(primals: Any, tangents: Any, *, custom: Any, n_consts: int | None, **_: Any) -> Any:
    n = n_consts or 0
    for x, t in zip(primals[:n], tangents[:n]):
        if type(t) is not Zero:
            raise TypeError(
                f"custom_jvp: {custom.__name__} closes over a value that is being differentiated, {aval_of(x)}, "
                "for which its rule has no tangent.\n  Pass it as an argument."
            )
    return custom.rule(primals[n:], tangents[n:])


def _custom_jvp_partial_eval(trace: UnzipTrace, args: Any, **params: Any) -> Any:
    with core.under(trace):
        return c.call_custom(*args, **params)


jvp.rules[c.custom_jvp_p] = _custom_jvp_jvp
partial_eval.rules[c.custom_jvp_p] = _custom_jvp_partial_eval
transpose.rules[c.custom_jvp_p] = lambda cts, *args, jaxpr, **_: _jit_transpose(cts, *args, jaxpr=jaxpr)

_narrow = core.program_cache()
