"""Bodies of the index language: staged once for one element, then vectorized to bulk operations on all elements.

Search terms: array comprehension, vectorization, flattening. A body is a program of index variables, integers of rank
0. Its reads and comparisons are `ein`, in which an index variable becomes a variable of the terms; any other primitive
is batched by its vmap rule. The resulting program is called under the current trace: differentiation, batching and
compilation never see a body, and the simplifier composes the terms. Source: Bernstein et al. 2020, section 5.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from tapeless.interpreters import vmap
from tapeless.interpreters.index.body_contractions import with_contractions
from tapeless.interpreters.index.brackets import with_brackets
from tapeless.interpreters.index.enclosing_indices import axes_of_body, enclosing, indices_of_body
from tapeless.interpreters.index.entries import IndexAxis
from tapeless.interpreters.jvp import JVPTrace
from tapeless.interpreters.simplify import simplified
from tapeless.tracer import core, dtypes
from tapeless.tracer.indices.hints import parameter_names
from tapeless.tracer.indices.index import Index, Variable
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.numpy.index_plan import BODY
from tapeless.tracer.primitives.call import jit
from tapeless.tracer.primitives.elementwise import select_n_p
from tapeless.tracer.primitives.shape import iota
from tapeless.tracer.staging import StagingTrace, trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of


class IndexBody(NamedTuple):
    """A body as it was traced, for one element: its last inputs are the indices, each below its entry of `sizes`."""

    program: Jaxpr
    sizes: tuple[int, ...]


_recording: ContextVar[list[IndexBody] | None] = ContextVar("recording", default=None)


@contextmanager
def recorded_bodies() -> Generator[list[IndexBody]]:
    """Record the bodies that are traced in a `with` block, inner ones first."""
    found = list[IndexBody]()
    token = _recording.set(found)
    try:
        yield found
    finally:
        _recording.reset(token)


def over(
    body: Callable[..., Sequence[Any]], sizes: Sequence[int], function: Any, then: Callable[[Sequence[Any]], Any] = list
) -> list[Any]:
    """Trace a body once, and evaluate it in bulk for all indices of a box.

    Args:
      body: indices, one for each size -> flat results.
      function: the user's function, which errors name.
      then: results, with an axis for each index in front -> flat results; simplified along with the body.
    Returns: the results of `then`.
    """

    names, axes = parameter_names(function, len(sizes)), axes_of_body(sizes)

    def indexed(*values: Any) -> Sequence[Any]:
        with enclosing(values, axes):
            return body(*[Index(0, {Variable(x, n, name=i): 1}) for x, n, i in zip(values, sizes, names, strict=True)])

    index = ShapedArray((), dtypes.default_dtype("i"))
    jaxpr, consts = trace_to_jaxpr(indexed, [index] * len(sizes), what=BODY, function=function)
    jaxpr, recording = with_brackets(jaxpr, indices_of_body(jaxpr, consts, axes)), _recording.get()
    if recording is not None:
        recording.append(IndexBody(jaxpr, tuple(sizes)))

    def bulk(*consts: Any) -> Sequence[Any]:
        return then(_batched(lambda *indices: eval_jaxpr(jaxpr, [*consts, *indices]), axes))

    written, more = trace_to_jaxpr(bulk, [aval_of(x) for x in consts], what=BODY, function=function)
    written = with_contractions(written)
    if select_n_p not in written.primitives:  # a select keeps derivatives of its other cases out, so it stays
        written = simplified(written)
    given = [*more, *consts]
    return list(eval_jaxpr(written, given) if _is_written_out(core.current_trace()) else jit(written, *given))


def _is_written_out(trace: core.Trace | None) -> bool:
    """Tell whether a body is evaluated as equations, not as one call.

    In a program they are simplified with those around them. In a derivative of a derivative, a residual of a call would
    be infinite where a bracket that the call has does not hold, and its own derivative 0 times infinity.
    """
    derivatives = 0
    while trace is not None:
        derivatives += isinstance(trace, JVPTrace)
        if isinstance(trace, StagingTrace) or derivatives > 1:
            return True
        trace = trace.parent
    return False


def _batched(f: Callable[..., Sequence[Any]], axes: Sequence[IndexAxis]) -> list[Any]:
    """Call `f` once, batched over all indices of a box; the results have an axis for each index in front."""
    if not axes:
        return list(f())
    (n, name), *rest = axes
    positions = iota(dtypes.default_dtype("i"), n)
    outs, dims = vmap.vmap(
        lambda i: _batched(lambda *others: f(i, *others), rest), [positions], [0], n, name=name, positions=positions
    )
    return [vmap.materialized(x, d, n) for x, d in zip(outs, dims, strict=True)]
