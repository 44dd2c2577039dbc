"""Bodies of the index language: staged once for one element, then vectorized to bulk operations on all elements.

Search terms: array comprehension, vectorization, flattening. A body is a program of index variables, integers of rank
0. Its reads and comparisons are `ein`, in which an index variable becomes a variable of the terms; any other primitive
is batched by its vmap rule. The resulting program is called under the current trace: differentiation, batching and
compilation never see a body, and the simplifier composes the terms. Source: Bernstein et al. 2020, section 5.
"""

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from tapeless.interpreters import vmap
from tapeless.interpreters.index.body_contractions import with_contractions
from tapeless.interpreters.index.brackets import with_brackets
from tapeless.interpreters.index.entries import BodyIndices, IndexAxis
from tapeless.interpreters.jvp import JVPTrace
from tapeless.interpreters.simplify import simplify_program
from tapeless.tracer import core, dtypes
from tapeless.tracer.core import Tracer
from tapeless.tracer.indices.hints import parameter_names
from tapeless.tracer.indices.index import Index, Variable
from tapeless.tracer.jaxpr import Atom, Jaxpr, eval_jaxpr
from tapeless.tracer.numpy.index_plan import BODY
from tapeless.tracer.primitives.call import jit
from tapeless.tracer.primitives.elementwise import select_n_p
from tapeless.tracer.primitives.shape import iota
from tapeless.tracer.staging import StagedTracer, StagingTrace, trace_to_jaxpr
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
        written = simplify_program(written)
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
    return [vmap.move_mapped_axis_first(x, d, n) for x, d in zip(outs, dims, strict=True)]


# ---- enclosing indices ---------------------------------------------------------------------------------------
# Indices of the bodies around one that is being traced, and which of them a value that it closes over may depend on.
#
# Search terms: free variables of a closure, nested comprehension, dependence analysis. Equations of the programs that
# are being written are followed back to their inputs. What other traces hold, as derivatives and loops in a body do,
# may depend on any index of the bodies around them.


class _Enclosing(NamedTuple):
    """The indices of a body that is being traced, as tracers."""

    indices: tuple[Any, ...]
    axes: tuple[IndexAxis, ...]


_bodies: ContextVar[tuple[_Enclosing, ...]] = ContextVar("enclosing bodies", default=())


def axes_of_body(sizes: Sequence[int]) -> tuple[IndexAxis, ...]:
    """Name the axes along which the next body is batched; those of the bodies around it have other names."""
    depth = len(_bodies.get())
    return tuple([IndexAxis(n, ("index", depth, k)) for k, n in enumerate(sizes)])


@contextmanager
def enclosing(indices: Sequence[Any], axes: Sequence[IndexAxis]) -> Generator[None]:
    """Let these be the indices of the innermost body in a with block."""
    token = _bodies.set((*_bodies.get(), _Enclosing(tuple(indices), tuple(axes))))
    try:
        yield
    finally:
        _bodies.reset(token)


def indices_of_body(jaxpr: Jaxpr, consts: Sequence[Any], axes: Sequence[IndexAxis]) -> BodyIndices:
    """Find the indices among the inputs of a body: its own, which come last, and those of the bodies around it."""
    known = {id(i): axis for body in _bodies.get() for i, axis in zip(body.indices, body.axes)}
    given = dict(zip(jaxpr.invars, consts))
    outer: dict[Atom, IndexAxis] = {v: known[id(x)] for v, x in given.items() if id(x) in known}
    own: dict[Atom, IndexAxis] = dict(zip(jaxpr.invars[len(consts) :], axes))
    return BodyIndices({**own, **outer}, _depending(given, outer) if outer else {})


def _depending(given: Mapping[Any, Any], outer: Mapping[Atom, IndexAxis]) -> dict[Atom, frozenset[Atom]]:
    """Map constants of a body to the outer indices that they may depend on, if they depend on any."""
    by_name = {axis.name: v for v, axis in outer.items()}
    names = {v: _names_of(x) for v, x in given.items() if v not in outer and isinstance(x, Tracer)}
    found = {v: frozenset([by_name[name] for name in own if name in by_name]) for v, own in names.items()}
    return {v: indices for v, indices in found.items() if indices}


def _names_of(x: Tracer) -> set[Hashable]:
    """Name the axes of the indices of bodies that a value may depend on."""
    todo, met, names = [x], set[int](), set[Hashable]()
    around = {id(i): axis.name for body in _bodies.get() for i, axis in zip(body.indices, body.axes)}
    while todo:
        value = todo.pop()
        if id(value) in met:
            continue
        met.add(id(value))
        if id(value) in around:
            names.add(around[id(value)])
        elif isinstance(value, StagedTracer):
            trace: Any = value.owner
            todo += [c for c in trace.constants_of(value.variable) if isinstance(c, Tracer)]
            names |= _names_at(trace, trace.inputs_of(value.variable))
        else:
            names |= _names_above(value.owner.depth)
    return names


def _names_at(trace: Any, inputs: Sequence[int]) -> set[Hashable]:
    """Name the axes that inputs of a program are indices along; of another program than a body, all around it."""
    for body in _bodies.get():
        if body.indices and body.indices[0].owner is trace:
            return {body.axes[k].name for k in inputs if k < len(body.axes)}
    return _names_above(trace.depth) if inputs else set()


def _names_above(depth: int) -> set[Hashable]:
    return {
        axis.name
        for body in _bodies.get()
        if body.indices and body.indices[0].owner.depth < depth
        for axis in body.axes
    }
