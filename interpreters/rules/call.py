"""How calls transform: the program is transformed once, whoever calls it, and is called again."""

from typing import Any

from tapeless.interpreters import jvp, partial_eval, transpose, vmap
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero
from tapeless.tracer import core, passes
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call as c
from tapeless.tracer.types import ShapedArray, aval_of


def _jit_jvp(primals: Any, tangents: Any, *, jaxpr: Jaxpr) -> Any:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    if not any(nonzero):
        outs = c.jit(jaxpr, *primals)
        return outs, tuple(Zero(aval_of(x).tangent()) for x in outs)
    program, consts, out_nonzero = jvp.jvp_jaxpr(jaxpr, nonzero)
    results = c.jit(program, *consts, *primals, *[t for t in tangents if type(t) is not Zero])
    outs, pushed = results[: len(out_nonzero)], iter(results[len(out_nonzero) :])
    return outs, tuple(next(pushed) if some else Zero(aval_of(x).tangent()) for x, some in zip(outs, out_nonzero))


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
    outs = [values[i] if i in values else known[source[i]] for i in range(len(jaxpr.outvars))]  # type: ignore[index]  # an input
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


def _jit_vmap(size: int, args: Any, dims: Any, *, jaxpr: Jaxpr) -> Any:
    outs = c.jit(vmap.batch_jaxpr(jaxpr, size, tuple(dims)), *args)
    return outs, [0] * len(outs)


jvp.rules[c.jit_p] = _jit_jvp
partial_eval.rules[c.jit_p] = _jit_partial_eval
transpose.rules[c.jit_p] = _jit_transpose
vmap.rules[c.jit_p] = _jit_vmap

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


class _Batched:
    """A function with its own rule, and its rule, for `size` examples at once."""

    def __init__(self, custom: Any, size: int, dims: Any) -> None:
        self._custom, self._size, self._dims = custom, size, list(dims)
        self.__name__ = f"vmap_{custom.__name__}"

    def function(self, *args: Any) -> list[Any]:
        return vmap.vmap_to_front(self._custom.function, args, self._dims, self._size, self._custom)

    def traced(self, avals: tuple[ShapedArray, ...]) -> tuple[Jaxpr, tuple[Any, ...]]:
        """The function as a program, and its constants, which are the same for all examples."""
        of_one = [
            a if d is None else a.update(shape=(*a.shape[:d], *a.shape[d + 1 :])) for a, d in zip(avals, self._dims)
        ]
        program, consts = self._custom.traced(tuple(of_one))
        return vmap.batch_jaxpr(program, self._size, (*[None] * len(consts), *self._dims)), consts

    def rule(self, primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        n, some = len(primals), [type(t) is not Zero for t in tangents]
        zero_out: list[Any] = []

        def both(*xs: Any) -> list[Any]:
            given = iter(xs[n:])
            pushed = [next(given) if yes else Zero(aval_of(x).tangent()) for yes, x in zip(some, xs[:n])]
            outs, out_tangents = self._custom.rule(xs[:n], pushed)
            zero_out[:] = [type(t) is Zero for t in out_tangents]
            return [*outs, *[t for t in out_tangents if type(t) is not Zero]]

        dims = self._dims + [d for d, yes in zip(self._dims, some) if yes]
        flat = vmap.vmap_to_front(both, [*primals, *[t for t, yes in zip(tangents, some) if yes]], dims, self._size)
        outs, pushed = flat[: len(zero_out)], iter(flat[len(zero_out) :])
        return outs, [Zero(aval_of(y).tangent()) if z else next(pushed) for y, z in zip(outs, zero_out)]


def _custom_jvp_vmap(size: int, args: Any, dims: Any, *, custom: Any, jaxpr: Any, n_consts: Any) -> Any:
    batched = _Batched(custom, size, dims[n_consts or 0 :])
    program = None if jaxpr is None else vmap.batch_jaxpr(jaxpr, size, tuple(dims))
    outs = c.custom_jvp_p.bind(*args, custom=batched, jaxpr=program, n_consts=n_consts)
    return outs, [0] * len(outs)


vmap.rules[c.custom_jvp_p] = _custom_jvp_vmap
jvp.rules[c.custom_jvp_p] = _custom_jvp_jvp
partial_eval.rules[c.custom_jvp_p] = _custom_jvp_partial_eval
transpose.rules[c.custom_jvp_p] = lambda cts, *args, jaxpr, **_: _jit_transpose(cts, *args, jaxpr=jaxpr)

_narrow = core.program_cache()
