"""Automatic batching (vmap): carry a value with one more axis, and apply each primitive once to all examples.

vmap(f)(xs)[i] == f(xs[i]).   A rule says where the mapped axis goes; most move it to the front.
If the axis has a name, collectives over it are resolved here, whether their operands are mapped or not.
"""

from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from typing import Any, Final

from tapeless.tracer import axes, core, pytree, source
from tapeless.tracer.array import Array
from tapeless.tracer.core import Primitive, Trace, Tracer
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr, subjaxprs
from tapeless.tracer.primitives.shape import broadcast_in_dim, transpose
from tapeless.tracer.rules import Rules, Table
from tapeless.tracer.settings.scopes import Arguments, Result, call_in_scope, scoped_all
from tapeless.tracer.staging import StagingTrace, stand_in
from tapeless.tracer.types import ShapedArray, aval_of

# The strategy for control flow that differs between examples: "auto", "select" or "loop"; see batched_control_flow.py.
control_flow: ContextVar[str] = ContextVar("control_flow", default="auto")
Dim = int | None  # where the mapped axis of a value is; None: the value is the same for every example


def vmap(
    f: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    dims: Sequence[Dim],
    size: int,
    function: Any = None,
    name: Hashable | None = None,
    spmd_axis_name: Any = None,
    positions: Any = None,
) -> tuple[list[Any], list[Dim]]:
    """Apply a flat function to `size` examples at once; return its results, and their mapped axes.

    `positions`, if given, is the argument that holds the numbers of the examples, 0 to size - 1. Rules recognize it
    by identity: in `ein` it is an index variable.
    """
    trace = BatchTrace(core.current_trace(), size, function or f, name, spmd_axis_name)
    if positions is not None:
        trace.know(positions)
    given = [x if d is None else BatchTracer(trace, x, d) for x, d in zip(args, dims)]
    outs = core.under_new(trace, source.call_transformed, "vmap", axes.binding, name, size, f, *given)
    pairs = [trace.split(x) for x in outs]
    return [x for x, _ in pairs], [d for _, d in pairs]


def vmap_to_front(
    f: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    dims: Sequence[Dim],
    size: int,
    function: Any = None,
    name: Hashable | None = None,
) -> list[Any]:
    """Apply a flat function as `vmap` does, and move the mapped axis of every result to the front."""
    outs, out_dims = vmap(f, args, dims, size, function, name)
    return [move_mapped_axis_first(x, d, size) for x, d in zip(outs, out_dims)]


def batch_jaxpr(jaxpr: Jaxpr, size: int, dims: tuple[Dim, ...]) -> Jaxpr:
    """Batch a program for `size` examples; inputs are mapped at `dims`, all results at axis 0.

    Remembered for as long as `jaxpr` lives.
    """
    return batch_where_needed(jaxpr, size, dims, (True,) * len(jaxpr.outvars))[0]


def batch_where_needed(
    jaxpr: Jaxpr, size: int, dims: tuple[Dim, ...], mapped: tuple[bool, ...]
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """Batch a program; results that are the same for all examples get no mapped axis, unless `mapped` asks for it.

    Collectives over the axis whose rule is running are resolved. Returns: the program, and which of its results are
    mapped, at axis 0.
    """
    cache = _batched.setdefault(jaxpr, {})
    name = axis_name()
    name = name if name is not None and not {name, _ANY}.isdisjoint(_names_in(jaxpr)) else None
    key = (size, dims, mapped, name, control_flow.get())
    if key not in cache:
        cache[key] = _batch_jaxpr(jaxpr, size, dims, mapped, name)
    return cache[key]


class BatchTrace(Trace):
    """The trace of vmap: a primitive applied to a `BatchTracer` runs its vmap rule under the parent trace."""

    __slots__ = ("_for_rules", "control_flow", "name", "size", "spmd_axis_name")
    what = "vmap"

    def __init__(self, parent: Trace, size: int, function: Any, name: Hashable | None, spmd_axis_name: Any) -> None:
        super().__init__(parent, function)
        self.size: Final = size
        self.name: Final = name
        self.control_flow: Final = control_flow.get()
        self.spmd_axis_name: Final = spmd_axis_name  # of the mesh axes that hold the examples
        # Context variables while a rule runs: the parent is the current trace, and the rule knows the mapped axis.
        self._for_rules: dict[ContextVar[Any], Any] = {
            core.current: parent,
            _name: name,
            control_flow: self.control_flow,
        }

    def know(self, positions: Any) -> None:
        """Tell rules which operand holds the numbers of the examples."""
        self._for_rules[_positions] = positions

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        pairs = [self.split(x) for x in args]
        named = self.name is not None and not {self.name, _ANY}.isdisjoint(_names_of(primitive, params))
        if not named and all(d is None for _, d in pairs):
            return self.parent.process(primitive, args, params)
        rule = (collectives if named and primitive in collectives else rules)[primitive]
        values, dims = [x for x, _ in pairs], [d for _, d in pairs]
        outs, dims = scoped_all(self._for_rules, rule, self.size, values, dims, **params)
        return tuple([x if d is None else self._computed(x, d) for x, d in zip(outs, dims)])

    def _computed(self, x: Any, dim: int) -> "BatchTracer":
        return BatchTracer(self, x, dim, None if isinstance(x, Tracer) else source.current())

    def split(self, x: Any) -> tuple[Any, Dim]:
        """Return a value and its mapped axis; None for a value that is the same for all examples."""
        if type(x) is BatchTracer and x.owner is self:
            return x.value, x.dim
        if isinstance(x, Tracer) and (other := stand_in(x)) is not x:
            return self.split(other)
        core.check_alive((x,))
        return x, None


class BatchTracer(Tracer):
    """A value with the mapped axis at `dim`; its type is that of one example."""

    __slots__ = ("computed_at", "dim", "value")

    def __init__(self, trace: BatchTrace, value: Any, dim: int, computed_at: source.Source | None = None) -> None:
        self.owner: Trace = trace
        self.value: Final = value
        self.dim: Final = dim
        self.computed_at: Final = computed_at  # if the value does not know it
        aval = aval_of(value)
        self.aval: ShapedArray = aval.update(shape=aval.shape[:dim] + aval.shape[dim + 1 :])

    def _shown(self) -> str:
        value = self.value
        return f", axis {self.dim} of {repr(value) if isinstance(value, Tracer) else core.format_array(value)}"

    def where(self) -> str:
        if isinstance(self.value, Tracer):
            return self.value.where()
        return self.computed_at.describe() if self.computed_at else ""


rules: Final = Rules(
    "vmap",
    "rule(size, args, dims, **params) -> results, their mapped axes (None: not mapped)",
    absent="it has no operands; with mapped operands it is an error",
)
collectives: Final = Rules(
    "collective",
    "rule(size, args, dims, **params) -> results, their mapped axes: under the vmap that binds its axis name",
    absent="it has no axis name",
)
calling_later: Table[None] = Table(
    "calling later",
    "it calls users' functions later, which may hold collectives over any axis name that is bound now",
    absent="the axis names of its collectives are found in its parameters",
)
_name: ContextVar[Hashable | None] = ContextVar("mapped axis", default=None)
_positions: ContextVar[Any] = ContextVar("numbers of examples", default=None)
positions: Final = _positions.get  # the operand that holds the numbers of the examples whose rule is running
axis_name: Final = _name.get  # of the axis whose rule is running; None if it has none


def choosing(how: str, f: Callable[Arguments, Result], /, *args: Arguments.args, **params: Arguments.kwargs) -> Result:
    """Call `f(*args, **params)`; vmaps in it use strategy `how` for control flow that differs between examples."""
    return call_in_scope(control_flow, how, f, *args, **params)


def mapping(
    name: Hashable | None,
    size: int,
    f: Callable[Arguments, Result],
    /,
    *args: Arguments.args,
    **params: Arguments.kwargs,
) -> Result:
    """Call `f(*args, **params)` as in a rule for the axis of this name: for work that a rule deferred."""
    return call_in_scope(_name, name, axes.binding, name, size, f, *args, **params)


def elementwise(primitive: Primitive) -> None:
    """Register the rule of an elementwise primitive: mapped axes of one place stay, others are moved to the front."""

    def rule(size: int, args: list[Any], dims: list[Dim], /, **params: Any) -> tuple[Any, Any]:
        found = {(d, aval_of(x).shape) for x, d in zip(args, dims) if d is not None or aval_of(x).ndim}
        if len(found) == 1:
            outs, dim = primitive.bind(*args, **params), found.pop()[0]
            return outs, [dim] * len(outs)
        shape = max((example_shape(x, d) for x, d in zip(args, dims)), key=len)
        places = {d for x, d in zip(args, dims) if d is not None and example_shape(x, d)}
        place = places.pop() if len(places) == 1 else 0
        outs = primitive.bind(*[align_operand(x, d, size, shape, place) for x, d in zip(args, dims)], **params)
        return outs, [place] * len(outs)

    rules[primitive] = rule


def front(
    primitive: Primitive,
    shift: Callable[..., dict[str, Any]] | None = None,
    last: Callable[..., dict[str, Any]] | None = None,
) -> None:
    """Register the rule of a primitive that takes leading batch axes: mapped axes go first, `shift` moves the params.

    Args:
      shift: `lambda size, **params: params` for operands with the mapped axis first; None if they stay.
      last: the same for operands whose mapped axes all are last, and stay there.
    """

    def rule(size: int, args: list[Any], dims: list[Dim], /, **params: Any) -> tuple[Any, Any]:
        if last is not None and _are_last(args, dims):
            outs = primitive.bind(*[_move_last(x, d, size) for x, d in zip(args, dims)], **last(size, **params))
            return outs, [aval_of(x).ndim - 1 for x in outs]
        given = [move_mapped_axis_first(x, d, size) for x, d in zip(args, dims)]
        outs = primitive.bind(*given, **(shift(size, **params) if shift else params))
        return outs, [0] * len(outs)

    rules[primitive] = rule


def _are_last(args: Sequence[Any], dims: Sequence[Dim]) -> bool:
    return all(d is None or 0 < d == aval_of(x).ndim - 1 for x, d in zip(args, dims))


def _move_last(x: Any, d: Dim, size: int) -> Any:
    return move_mapped_axis(x, d, aval_of(x).ndim - (d is not None), size)


def to_front(x: Any, d: int) -> Any:
    """Move axis d of x to the front."""
    return transpose(x, (d, *[i for i in range(aval_of(x).ndim) if i != d]))


def move_mapped_axis_first(x: Any, d: Dim, size: int) -> Any:
    """Move the mapped axis of x to the front; repeat x if it has none."""
    return move_mapped_axis(x, d, 0, size)


def move_mapped_axis(x: Any, d: Dim, place: int, size: int) -> Any:
    """Move the mapped axis of x to `place`; repeat x if it has none."""
    if d == place and isinstance(x, Array):
        return x
    if d is None:
        shape = aval_of(x).shape
        others = [beside(i, place) for i in range(len(shape))]
        return broadcast_in_dim(x, (*shape[:place], size, *shape[place:]), others)
    order = [i for i in range(aval_of(x).ndim) if i != d]
    order.insert(place, d)
    return transpose(x, order)


def beside(axis: int, d: int) -> int:
    """Map `axis` of an example to the axis of a batched value whose mapped axis is `d`."""
    return axis + (axis >= d)


def together(size: int, args: Sequence[Any], dims: Sequence[Dim]) -> tuple[list[Any], int]:
    """Move the mapped axes of operands of one rank to one position; return the operands and the position."""
    place = next(d for d in dims if d is not None)
    return [x if d == place else move_mapped_axis(x, d, place, size) for x, d in zip(args, dims)], place


def example_shape(x: Any, d: Dim) -> tuple[int, ...]:
    """Return the shape of one example of x."""
    shape = aval_of(x).shape
    return shape if d is None else shape[:d] + shape[d + 1 :]


def align_operand(x: Any, d: Dim, size: int, shape: tuple[int, ...], place: int = 0) -> Any:
    """Put the mapped axis of an operand at `place`, for an elementwise operation on examples of `shape`.

    Operands that are not mapped are repeated, except scalars among arrays; mapped scalars get the axes of `shape`.
    """
    if example_shape(x, d) or not shape:
        return move_mapped_axis(x, d, place, size)
    return x if d is None else broadcast_in_dim(x, (*shape[:place], size, *shape[place:]), (place,))


def _batch_jaxpr(
    jaxpr: Jaxpr, size: int, dims: tuple[Dim, ...], mapped: tuple[bool, ...], name: Hashable | None
) -> tuple[Jaxpr, tuple[bool, ...]]:
    trace = StagingTrace(core.current_trace(), jaxpr, "vmap")
    args = [
        trace.input(aval if d is None else aval.update(shape=(*aval.shape[:d], size, *aval.shape[d:])))
        for aval, d in zip(jaxpr.in_avals, dims, strict=True)
    ]

    def batch() -> tuple[tuple[bool, ...], list[Any]]:
        outs, out_dims = vmap(lambda *xs: eval_jaxpr(jaxpr, xs), args, dims, size, jaxpr, name)
        out_mapped = tuple(want or d is not None for want, d in zip(mapped, out_dims, strict=True))
        made = [move_mapped_axis_first(x, d, size) if yes else x for x, d, yes in zip(outs, out_dims, out_mapped)]
        return out_mapped, [trace.atom(x) for x in made]

    out_mapped, outvars = core.under_new(trace, batch)
    return trace.finish_with_literals(outvars, f"vmap_{jaxpr.name}"), out_mapped


def uses_collectives(programs: Sequence[Jaxpr]) -> bool:
    """Tell whether one of the programs has a collective over the axis of the `vmap` whose rule is running."""
    return any(axis_name() in _names_in(program) for program in programs)


_ANY = object()  # among names: there may be collectives over any other axis


def _names_of(primitive: Primitive, params: dict[str, Any]) -> frozenset[Hashable]:
    """Return the axis names that a primitive, or the equations in its bodies, have collectives over."""
    own = params["axis_names"] if primitive in collectives else (_ANY,) if primitive in calling_later else ()
    return frozenset(own).union(*[_names_in(program) for program in subjaxprs(params)])


@core.memoize_by_program
def _names_in(jaxpr: Jaxpr) -> frozenset[Hashable]:
    """Return the axis names that a program has collectives over. Remembered for as long as it lives."""
    none: frozenset[Hashable] = frozenset()
    return none.union(*[_names_of(eqn.primitive, eqn.params) for eqn in jaxpr.eqns])


_batched = core.program_cache()


# ---- classes with functions of their own for mapping their instances: vmap does not call these, and raises ----

_registered: Final[set[type]] = set()


def register_vmappable(
    data_type: type, spec_type: type, axis_size_type: type, to_elt: Any, from_elt: Any, make_iota: Any = None
) -> None:
    """Register a class that has functions of its own for mapping its instances; `vmap` raises for these instances.

    >>> class Ragged: ...
    >>> register_vmappable(Ragged, int, int, None, None)
    >>> is_vmappable(Ragged()), is_vmappable(1.0)
    (True, False)
    >>> unregister_vmappable(Ragged)
    """
    _registered.add(data_type)


def unregister_vmappable(data_type: type) -> None:
    """Let `vmap` take instances of a registered class as any pytree: see `register_vmappable`.

    Raises: KeyError if it is not registered.

    >>> unregister_vmappable(int)
    Traceback (most recent call last):
    KeyError: <class 'int'>
    """
    _registered.remove(data_type)


def is_vmappable(x: Any) -> bool:
    """Tell whether the class of an object is registered: see `register_vmappable`.

    >>> is_vmappable(1.0)
    False
    """
    return type(x) in _registered


def check_vmappable(what: str, tree: Any) -> None:
    """Check that there is no instance of a registered class in a tree. Raises: NotImplementedError naming the class."""
    if not _registered:
        return
    for x in pytree.leaves(tree, is_vmappable):
        if is_vmappable(x):
            raise NotImplementedError(
                f"vmap: {what} holds a {type(x).__name__}, which is registered with functions of its own for "
                "mapping it, and these are not used here.\n  Map over its arrays."
            )
