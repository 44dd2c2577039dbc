"""Indices of the bodies around one that is being traced, and which of them a value that it closes over may depend on.

Search terms: free variables of a closure, nested comprehension, dependence analysis. Equations of the programs that are
being written are followed back to their inputs. What other traces hold, as derivatives and loops in a body do, may
depend on any index of the bodies around them.
"""

from collections.abc import Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from tapeless.interpreters.index.entries import BodyIndices, IndexAxis
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import Atom, Jaxpr
from tapeless.tracer.staging import StagedTracer


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
    """Find the inputs of a body that are indices, its own, which come last, and those of the bodies around it."""
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
