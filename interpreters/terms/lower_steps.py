"""Write the steps of a plan (`steps.py`) as operations: gathers, scatters, running sums; each axis is a variable."""

from collections.abc import Sequence

import numpy as np

from tapeless.interpreters.terms.index_arrays import WIDE, gather, index_vectors
from tapeless.interpreters.terms.lower_views import Order, cut
from tapeless.interpreters.terms.steps import Indexing, Position, RunningSum
from tapeless.interpreters.writer import Writer, literal
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.dimension_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from tapeless.tracer.primitives.indexing import GatherScatterMode, scatter_add_p
from tapeless.tracer.primitives.reduction import cumsum_p

_LARGEST = 2**63 - 1
_MODES = GatherScatterMode


def running(w: Writer, x: Atom, order: Order, step: RunningSum, size: int) -> tuple[Atom, Order]:
    """Write the running sums along an axis, at `size` positions; return them with the variable of each axis."""
    axis = order.index(step.variable)
    x = w.write(cumsum_p, x, axis=axis, reverse=step.reverse)
    if size < x.aval.shape[axis]:
        x = cut(w, x, axis, step.shift, size)
    return x, tuple([step.upto if v == step.variable else v for v in order])


# ---- gathers and scatters ------------------------------------------------------------------------------------


def write_gather(w: Writer, x: Atom, order: Order, step: Indexing, positions: Sequence[Atom]) -> tuple[Atom, Order]:
    """Write the gather of an array at positions, clipped to it; return it with the variable of each axis.

    Args:
      positions: an array for each position of the step, whose axes are `step.order`; these axes come first.
    """
    own = windows(order, step)
    others = own[len(step.order) :]
    known = [_unclipped(p, x.aval.shape[order.index(p.variable)]) for p in step.positions]
    numbers = GatherDimensionNumbers(*_dimension_numbers(order, step))
    sizes = tuple([n if v in others else 1 for v, n in zip(order, x.aval.shape)])
    return gather(w, x, _columns(w, known, positions), numbers, sizes), own


def windows(order: Order, step: Indexing) -> Order:
    """Return the variable of each axis of the elements gathered from, or scattered into, an array of axes `order`."""
    replaced = [p.variable for p in step.positions]
    return (*step.order, *[v for v in order if v not in replaced and v not in step.order])


def _dimension_numbers(order: Order, step: Indexing) -> tuple[tuple[int, ...], ...]:
    replaced, batch = [p.variable for p in step.positions], [v for v in order if v in step.order]
    return (
        tuple(range(len(step.order), len(windows(order, step)))),
        tuple(sorted([order.index(v) for v in replaced])),
        tuple([order.index(v) for v in replaced]),
        tuple([order.index(v) for v in batch]),
        tuple([step.order.index(v) for v in batch]),
    )


def write_scatter(w: Writer, x: Atom, zeros: Atom, order: Order, step: Indexing, positions: Sequence[Atom]) -> Atom:
    """Write the scatter-add into zeros of elements, whose axes are those of `windows`; those outside are dropped."""
    dims = ScatterDimensionNumbers(*_dimension_numbers(order, step))
    known = [_unclipped(p, zeros.aval.shape[order.index(p.variable)]) for p in step.positions]
    clips = all(p.limits is None and own.limits is not None for p, own in zip(known, step.positions))
    mode = _MODES.CLIP if clips else _MODES.FILL_OR_DROP
    if clips and all(p.is_within for p in step.positions):
        mode = _MODES.PROMISE_IN_BOUNDS
    how = {"indices_are_sorted": False, "unique_indices": False, "mode": mode}
    vectors = index_vectors(w, _columns(w, known if clips else step.positions, positions))
    return w.write(scatter_add_p, zeros, vectors, x, dimension_numbers=dims, **how)


def _unclipped(p: Position, n: int) -> Position:
    """Drop the limits of a position if they are the bounds of an axis of `n` elements, to which a gather clips."""
    return p._replace(limits=None) if (p.sign, p.first, p.limits) == (1, 0, (0, n - 1)) else p


def _columns(w: Writer, known: Sequence[Position], positions: Sequence[Atom]) -> list[Atom]:
    """Write the values of each variable, in one dtype."""
    found = [_values(w, p, x) for p, x in zip(known, positions, strict=True)]
    return found if len({x.aval.dtype for x in found}) == 1 else [wide(w, x) for x in found]


def _values(w: Writer, p: Position, x: Atom) -> Atom:
    """Write the values of a variable from its positions, without overflow in narrow dtypes."""
    if p.limits is None and not p.first and p.sign == 1:
        return x
    x = wide(w, x)
    if p.limits is not None and not p.is_within:
        x = w.write(e.clamp_p, literal(p.limits[0], x.aval), x, literal(p.limits[1], x.aval))
    x = w.write(e.sub_p, x, literal(p.first, x.aval)) if p.first else x
    return x if p.sign == 1 else w.write(e.neg_p, x)


def wide(w: Writer, x: Atom) -> Atom:
    """Convert positions to int64; those too large for it become its maximum, which is beyond every array."""
    if x.aval.dtype == np.uint64:
        x = w.write(e.min_p, x, literal(_LARGEST, x.aval))
    return x if x.aval.dtype == WIDE else w.write(e.convert_element_type_p, x, dtype=WIDE, weak_type=False)
