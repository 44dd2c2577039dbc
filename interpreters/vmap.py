"""Vectorization: carry a value with one more axis, and apply each primitive once to all of it.

vmap(f)(xs)[i] == f(xs[i]).   A rule says where the mapped axis goes; most move it to the front.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.tracer import core
from tapeless.tracer.core import Primitive, Trace, Tracer
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives.shape import broadcast_in_dim, transpose
from tapeless.tracer.rules import Rules
from tapeless.tracer.staging import StagingTrace
from tapeless.tracer.types import aval_of

Dim = int | None  # where the mapped axis of a value is; None: the value is the same for every example


def vmap(
    f: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Sequence[Dim], size: int, function: Any = None
) -> tuple[list[Any], list[Dim]]:
    """Apply a flat function to `size` examples at once: its results, and where their mapped axes are."""
    trace = BatchTrace(core.current_trace(), size, function or f)
    given = [x if d is None else BatchTracer(trace, x, d) for x, d in zip(args, dims)]
    with core.new_trace(trace):
        outs = f(*given)
    pairs = [trace.split(x) for x in outs]
    return [x for x, _ in pairs], [d for _, d in pairs]


def vmap_to_front(
    f: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Sequence[Dim], size: int, function: Any = None
) -> list[Any]:
    """`vmap` with the mapped axis of every result first."""
    outs, out_dims = vmap(f, args, dims, size, function)
    return [materialized(x, d, size) for x, d in zip(outs, out_dims)]


def batch_jaxpr(jaxpr: Jaxpr, size: int, dims: tuple[Dim, ...]) -> Jaxpr:
    """A program for `size` examples at once: its inputs' mapped axes are at `dims`, those of its results first.

    Remembered for as long as `jaxpr` lives.
    """
    cache = _batched.setdefault(jaxpr, {})
    if (size, dims) not in cache:
        cache[size, dims] = _batch_jaxpr(jaxpr, size, dims)
    return cache[size, dims]


class BatchTrace(Trace):
    """Applying a primitive applies its rule, in the parent's name, to values that have the mapped axis."""

    __slots__ = ("size",)
    what = "vmap"

    def __init__(self, parent: Trace, size: int, function: Any) -> None:
        super().__init__(parent, function)
        self.size = size

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        pairs = [self.split(x) for x in args]
        if all(d is None for _, d in pairs):
            return self.parent.process(primitive, args, params)
        with core.under(self.parent):
            outs, dims = rules[primitive](self.size, [x for x, _ in pairs], [d for _, d in pairs], **params)
        return tuple([x if d is None else BatchTracer(self, x, d) for x, d in zip(outs, dims)])

    def split(self, x: Any) -> tuple[Any, Dim]:
        """A value, and where its mapped axis is."""
        if type(x) is BatchTracer and x.trace is self:
            return x.value, x.dim
        core.check_alive((x,))
        return x, None


class BatchTracer(Tracer):
    """A value with the mapped axis at `dim`; its type is that of one example."""

    __slots__ = ("aval", "dim", "value")

    def __init__(self, trace: BatchTrace, value: Any, dim: int) -> None:
        self.trace, self.value, self.dim = trace, value, dim
        aval = aval_of(value)
        self.aval = aval.update(shape=aval.shape[:dim] + aval.shape[dim + 1 :])

    def where(self) -> str:
        return self.value.where() if isinstance(self.value, Tracer) else ""


rules = Rules("vmap")  # rule(size, args, dims, **params) -> results, dims


def elementwise(primitive: Primitive) -> None:
    """A rule for operands of one shape, or of rank 0: axes that are equal stay, else the mapped axis goes first."""

    def rule(size: int, args: list[Any], dims: list[Dim], /, **params: Any) -> tuple[Any, Any]:
        found = {(d, aval_of(x).shape) for x, d in zip(args, dims) if d is not None or aval_of(x).ndim}
        if len(found) == 1:
            outs, dim = primitive.bind(*args, **params), found.pop()[0]
            return outs, [dim] * len(outs)
        shape = max((example_shape(x, d) for x, d in zip(args, dims)), key=len)
        outs = primitive.bind(*[aligned(x, d, size, shape) for x, d in zip(args, dims)], **params)
        return outs, [0] * len(outs)

    rules[primitive] = rule


def front(primitive: Primitive, shift: Callable[..., dict[str, Any]] | None = None) -> None:
    """A rule for what treats a leading axis as more of the same: every operand gets it, `shift` moves the params.

    Args:
      shift: `lambda size, **params: params` for operands with the mapped axis first; None if they stay.
    """

    def rule(size: int, args: list[Any], dims: list[Dim], /, **params: Any) -> tuple[Any, Any]:
        given = [materialized(x, d, size) for x, d in zip(args, dims)]
        outs = primitive.bind(*given, **(shift(size, **params) if shift else params))
        return outs, [0] * len(outs)

    rules[primitive] = rule


def to_front(x: Any, d: int) -> Any:
    """x with axis d first."""
    return transpose(x, (d, *[i for i in range(aval_of(x).ndim) if i != d]))


def materialized(x: Any, d: Dim, size: int) -> Any:
    """x with the mapped axis first, repeated if it has none."""
    return placed(x, d, 0, size)


def placed(x: Any, d: Dim, place: int, size: int) -> Any:
    """x with the mapped axis at `place`, repeated if it has none."""
    if d is None:
        shape = aval_of(x).shape
        others = [beside(i, place) for i in range(len(shape))]
        return broadcast_in_dim(x, (*shape[:place], size, *shape[place:]), others)
    order = [i for i in range(aval_of(x).ndim) if i != d]
    order.insert(place, d)
    return transpose(x, order)


def beside(axis: int, d: int) -> int:
    """Where `axis` of an example is in a value with the mapped axis at d."""
    return axis + (axis >= d)


def together(size: int, args: Sequence[Any], dims: Sequence[Dim]) -> tuple[list[Any], int]:
    """Operands of one rank with the mapped axis in one place, that of the first which has one, and this place."""
    place = next(d for d in dims if d is not None)
    return [x if d == place else placed(x, d, place, size) for x, d in zip(args, dims)], place


def example_shape(x: Any, d: Dim) -> tuple[int, ...]:
    """The shape of one example of x."""
    shape = aval_of(x).shape
    return shape if d is None else shape[:d] + shape[d + 1 :]


def aligned(x: Any, d: Dim, size: int, shape: tuple[int, ...]) -> Any:
    """An operand of an elementwise operation on examples of `shape`; a scalar for all examples stays one."""
    if example_shape(x, d) or not shape:
        return materialized(x, d, size)
    return x if d is None else broadcast_in_dim(x, (size, *shape), (0,))


def _batch_jaxpr(jaxpr: Jaxpr, size: int, dims: tuple[Dim, ...]) -> Jaxpr:
    trace = StagingTrace(core.current_trace(), jaxpr, "vmap")
    args = [
        trace.input(aval if d is None else aval.update(shape=(*aval.shape[:d], size, *aval.shape[d:])))
        for aval, d in zip(jaxpr.in_avals, dims, strict=True)
    ]
    with core.new_trace(trace):
        outs = vmap_to_front(lambda *xs: eval_jaxpr(jaxpr, xs), args, dims, size, jaxpr)
        outvars = [trace.atom(x) for x in outs]
    built, consts = trace.finish(outvars, f"vmap_{jaxpr.name}")
    assert not consts, "a program is closed"
    return built


_batched = core.program_cache()
