"""Parts of results, by primitive: which parts of the operands they take."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tapeless.interpreters.simplifications import elementwise
from tapeless.interpreters.simplifications.slicing import pushdown, views
from tapeless.interpreters.simplifications.slicing.positions import counts_to
from tapeless.interpreters.simplifications.slicing.pushdown import Parts, Reads
from tapeless.interpreters.simplifications.slicing.views import Axis, View, spread
from tapeless.interpreters.simplify import Writer, filled, literal
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.indexing import dynamic_slice_p, dynamic_update_slice_p
from tapeless.tracer.primitives.operands import argsort

Shape = tuple[int, ...]


def _covered(axes: Sequence[Axis], shape: Shape) -> tuple[View, Shape]:
    """A view by these axes alone, and which axes of the result it has; it lacks those that none goes along."""
    dims = tuple(sorted({a.along for a in axes if a.along is not None}))
    moved = [a if a.along is None else a._replace(along=dims.index(a.along)) for a in axes]
    return View(tuple(moved), tuple([shape[d] for d in dims])), dims


# ---- what does nothing but read ------------------------------------------------------------------------------


def _views(primitive: Primitive, own: Any) -> None:
    """The rule of what reads the view own(eqn)."""

    def rule(eqn: Equation, outer: View | None) -> View | None:
        inner = own(eqn)
        return inner if outer is None else views.then(inner, outer, eqn.invars[0].aval.shape)

    pushdown.views[primitive] = rule


def _reshape_view(eqn: Equation, outer: View | None) -> View | None:
    before, after = eqn.invars[0].aval.shape, eqn.params["shape"]
    return views.through_reshape(before, after, views.whole(after) if outer is None else outer)


def _slice_view(eqn: Equation) -> View:
    return views.of_slice(eqn.outvars[0].aval.shape, eqn.params["start_indices"], eqn.params["strides"])


_views(s.slice_p, _slice_view)
_views(s.transpose_p, lambda eqn: views.of_transpose(eqn.invars[0].aval.shape, eqn.params["permutation"]))
_views(
    dynamic_slice_p,
    lambda eqn: views.of_dynamic_slice(eqn.invars[0].aval, eqn.invars[1:], eqn.params["slice_sizes"]),
)
pushdown.views[s.reshape_p] = _reshape_view

# ---- elementwise ---------------------------------------------------------------------------------------------


def _elementwise(eqn: Equation, view: View) -> Parts:
    shape = eqn.outvars[0].aval.shape
    taken = [view if x.aval.shape == shape else Reads.ALL for x in eqn.invars]
    return Parts(taken, lambda w, *xs: w.write(eqn.primitive, *xs, **eqn.params))


for _primitive in (*elementwise.operations, e.clamp_p):
    pushdown.rules[_primitive] = _elementwise

# ---- creation and broadcasting -------------------------------------------------------------------------------


def _broadcast_in_dim(eqn: Equation, view: View) -> Parts:
    shape = eqn.params["shape"]
    x = eqn.invars[0].aval
    axes = [view.axes[d] if n == shape[d] else Axis(0, 1, None) for n, d in zip(x.shape, eqn.params["dims"])]
    part, dims = _covered(axes, view.shape)
    return Parts([part], lambda w, x: spread(w, x, dims, view.shape))


def _iota(eqn: Equation, view: View) -> Parts | None:
    axis = view.axes[eqn.params["dimension"]]
    indices = _range(axis, view.shape)
    if axis.base is not None or not counts_to(indices[-1] if indices else 0, eqn.params["dtype"]):
        return None
    (aval,) = [v.aval.update(shape=view.shape) for v in eqn.outvars]

    def write(w: Writer) -> Atom:
        if axis.along is None:
            return filled(w, axis.start, aval)
        x = w.write(s.iota_p, dtype=aval.dtype, shape=(view.shape[axis.along],), dimension=0)
        if axis.step != 1:
            x = w.write(e.mul_p, x, literal(axis.step, aval))
        if axis.start != 0:
            x = w.write(e.add_p, x, literal(axis.start, aval))
        return spread(w, x, (axis.along,), view.shape)

    return Parts([], write)


pushdown.rules[s.broadcast_in_dim_p] = _broadcast_in_dim
pushdown.rules[s.iota_p] = _iota

# ---- joining -------------------------------------------------------------------------------------------------


def _range(a: Axis, shape: Shape) -> range:
    """The indices along an axis that are read."""
    return range(a.start, a.start + a.step * ((1 if a.along is None else shape[a.along]) - 1) + 1, a.step)


def _at(view: View, d: int, start: int, count: int) -> View:
    """A view with another start along axis d, and so many steps."""
    axis = view.axes[d]
    shape = list(view.shape)
    if axis.along is not None:
        shape[axis.along] = count
    return View((*view.axes[:d], axis._replace(start=start), *view.axes[d + 1 :]), tuple(shape))


def _concatenate(eqn: Equation, view: View) -> Parts | None:
    """The operands that are read, each in its own range; joined if they are several."""
    d = eqn.params["dimension"]
    axis, indices = view.axes[d], _range(view.axes[d], view.shape)
    if axis.base is not None:
        return None
    ends = list(accumulate([x.aval.shape[d] for x in eqn.invars]))
    mine = [_inside(indices, end - x.aval.shape[d], end) for x, end in zip(eqn.invars, ends)]
    some = [k for k, own in enumerate(mine) if own]
    if len(some) > 1 and view.is_diagonal:
        return None
    taken = [_at(view, d, own[0], len(own)) if own else Reads.NOTHING for own in mine]

    def write(w: Writer, *xs: Atom) -> Atom:
        joined = [xs[k] for k in some]
        return joined[0] if len(some) == 1 else w.write(s.concatenate_p, *joined, dimension=axis.along)

    return Parts(taken, write)


def _inside(indices: range, start: int, end: int) -> range:
    """Restrict indices to the interval from start to end, and count them from start."""
    own = indices[_steps_inside(indices, start, end)]
    return range(own.start - start, own.stop - start, own.step)


def _steps_inside(indices: range, start: int, end: int) -> slice:
    """Select the steps at which indices are in the interval from start to end."""
    first = max(-(-(start - indices.start) // indices.step), 0)
    return slice(first, max(min(-(-(end - indices.start) // indices.step), len(indices)), first))


def _pad(eqn: Equation, view: View) -> Parts | None:
    """The part that is in the operand, padded again where the view reaches out of it."""
    x, config = eqn.invars[0].aval, eqn.params["padding_config"]
    moved, out, padded = view, [(0, 0, 0)] * len(view.shape), False
    for d, (n, triple) in enumerate(zip(x.shape, config)):
        axis, indices = view.axes[d], _range(view.axes[d], view.shape)
        if triple == (0, 0, 0):
            continue
        if axis.base is not None or triple[2]:
            return None
        own = _inside(indices, triple[0], triple[0] + n)
        if not own:
            return Parts([Reads.NOTHING, Reads.ALL], lambda w, x, value: spread(w, value, (), view.shape))
        moved = _at(moved, d, own[0], len(own))
        if len(own) < len(indices):
            before = (own[0] + triple[0] - indices[0]) // axis.step
            out[axis.along], padded = (before, len(indices) - len(own) - before, 0), True  # type: ignore[call-overload]
    if padded and view.is_diagonal:
        return None

    def write(w: Writer, part: Atom, value: Atom) -> Atom:
        return w.write(s.pad_p, part, value, padding_config=tuple(out))

    return Parts([moved, Reads.ALL], write)


def _rev(eqn: Equation, view: View) -> Parts | None:
    """Push a view below `rev`: read the mirrored part of the operand, then reverse it."""
    dimensions = eqn.params["dimensions"]
    moved = view
    for d in dimensions:
        indices = _range(view.axes[d], view.shape)
        if view.axes[d].base is not None:
            return None
        moved = _at(moved, d, eqn.invars[0].aval.shape[d] - 1 - indices[-1], len(indices))
    turned = tuple(sorted({a.along for d in dimensions if (a := view.axes[d]).along is not None}))
    if any(a.along in turned and d not in dimensions for d, a in enumerate(view.axes)):
        return None
    return Parts([moved], lambda w, x: w.write(s.rev_p, x, dimensions=turned) if turned else x)


def _dynamic_update_slice(eqn: Equation, view: View) -> Parts | None:
    """Push a view below a write: read the update alone, or the array alone; None if neither is known to suffice."""
    x, update, *starts = eqn.invars
    first = views.known_window(starts, x.aval.shape, update.aval.shape)
    if first is None or any(a.base is not None for a in view.axes):
        return None
    others = [Reads.NOTHING] * len(starts)
    if _misses(view, first, update.aval.shape):
        return Parts([view, Reads.NOTHING, *others], lambda w, x, *_: x)
    ranges = [_range(a, view.shape) for a in view.axes]
    if not all(a <= r[0] and r[-1] < a + n for r, a, n in zip(ranges, first, update.aval.shape)):
        return None
    moved = tuple([axis._replace(start=axis.start - a) for axis, a in zip(view.axes, first)])
    return Parts([Reads.NOTHING, View(moved, view.shape), *others], lambda w, _, update, *starts: update)


def _misses(view: View, first: Shape, sizes: Shape) -> bool:
    """Tell whether a view reads nothing of a window: no step along some axis is inside on all its axes."""
    hits: dict[int | None, range] = {}
    for axis, a, n in zip(view.axes, first, sizes):
        indices = _range(axis, view.shape)
        steps = range(len(indices))[_steps_inside(indices, a, a + n)]
        other = hits.get(axis.along, steps)
        hits[axis.along] = range(max(steps.start, other.start), min(steps.stop, other.stop))
    return not all(hits.values())


pushdown.rules[dynamic_update_slice_p] = _dynamic_update_slice
pushdown.free[dynamic_update_slice_p] = None
pushdown.rules[s.concatenate_p] = _concatenate
pushdown.rules[s.pad_p] = _pad
pushdown.rules[s.rev_p] = _rev

# ---- contraction ---------------------------------------------------------------------------------------------


def _dot_general(eqn: Equation, view: View) -> Parts:
    """Axes of the result that go along one axis of the view are one axis of the batch."""
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    x, y = [v.aval for v in eqn.invars]
    free_x = [i for i in range(x.ndim) if i not in cx and i not in bx]
    free_y = [i for i in range(y.ndim) if i not in cy and i not in by]
    of_batch, of_x = view.axes[: len(bx)], view.axes[len(bx) : len(bx) + len(free_x)]
    of_y = view.axes[len(bx) + len(free_x) :]
    rank = len(view.shape)
    shape = (*view.shape, *[x.shape[i] for i in cx])
    summed = [Axis(0, 1, rank + k) for k in range(len(cx))]
    part_x, dims_x = _operand(x.ndim, shape, zip((*bx, *free_x, *cx), (*of_batch, *of_x, *summed)))
    part_y, dims_y = _operand(y.ndim, shape, zip((*by, *free_y, *cy), (*of_batch, *of_y, *summed)))
    both = [d for d in dims_x if d in dims_y and d < rank]
    dims = (
        (_places(dims_x, range(rank, len(shape))), _places(dims_y, range(rank, len(shape)))),
        (_places(dims_x, both), _places(dims_y, both)),
    )
    out = [*both, *[d for d in (*dims_x, *dims_y) if d < rank and d not in both]]

    def write(w: Writer, x: Atom, y: Atom) -> Atom:
        z = w.write(dot_general_p, x, y, **{**eqn.params, "dimension_numbers": dims})
        z = w.write(s.transpose_p, z, permutation=argsort(out))
        return spread(w, z, tuple(sorted(out)), view.shape)

    return Parts([part_x, part_y], write)


def _operand(ndim: int, shape: Shape, placed: Any) -> tuple[View, Shape]:
    axes: list[Any] = [None] * ndim
    for i, a in placed:
        axes[i] = a
    return _covered(axes, shape)


def _places(dims: Shape, wanted: Sequence[int]) -> Shape:
    return tuple([dims.index(d) for d in wanted])


pushdown.rules[dot_general_p] = _dot_general

# ---- reduction -----------------------------------------------------------------------------------------------


def _reduction(eqn: Equation, view: View) -> Parts:
    axes, x = eqn.params["axes"], eqn.invars[0].aval
    kept, rank = iter(view.axes), len(view.shape)
    reduced = iter(range(rank, rank + len(axes)))
    taken = [Axis(0, 1, next(reduced)) if d in axes else next(kept) for d in range(x.ndim)]
    part, dims = _covered(taken, (*view.shape, *[x.shape[a] for a in axes]))
    out = tuple([d for d in dims if d < rank])
    over = tuple(range(len(out), len(dims)))

    def write(w: Writer, x: Atom) -> Atom:
        return spread(w, w.write(eqn.primitive, x, axes=over), out, view.shape)

    return Parts([part], write)


for _primitive in (r.reduce_sum_p, r.reduce_prod_p, r.reduce_max_p, r.reduce_min_p):
    pushdown.rules[_primitive] = _reduction
for _primitive in (r.reduce_and_p, r.reduce_or_p, r.reduce_xor_p):
    pushdown.rules[_primitive] = _reduction

for _primitive in (s.broadcast_in_dim_p, s.iota_p, s.concatenate_p, s.pad_p, s.rev_p):
    pushdown.free[_primitive] = None
