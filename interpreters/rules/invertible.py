"""Rules of invertible functions: their derivative is that of the function, their residuals come from the results.

The tangents are those of a checkpoint that saves nothing, so that its residuals are the function's inputs. These are
computed from the results by the inverse, where the program is unzipped (`residuals/inversion.py`).
"""

from typing import Any

from tapeless.interpreters import jvp, partial_eval, transpose, vmap
from tapeless.interpreters.index_rows import without_row
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.residuals.rematerialization import save_none
from tapeless.interpreters.rules.call import call_partial_eval
from tapeless.interpreters.zero import are_nonzero, with_zeros, zeros_of
from tapeless.tracer import passes
from tapeless.tracer.flags import where_true
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.checkpoint import checkpoint
from tapeless.tracer.primitives.invertible import invertible, invertible_p


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
    return call_partial_eval(jit_p, trace, args, jaxpr=jaxpr)


def _transpose(cts: Any, totals: Any, *args: Any, jaxpr: Jaxpr, **_: Any) -> Any:
    return transpose.rules[jit_p](cts, totals, *args, jaxpr=jaxpr)


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
