"""Affine accesses as operations: the view of an array that one reads, and the place in a result where one writes.

Search terms: strided view, layout, code generation. A view is a slice, a reshape into an axis for each digit, a reverse
and a diagonal; a place is a transpose, a broadcast, a reverse, a reshape and a pad.
"""

from collections.abc import Sequence
from math import prod

from tapeless.interpreters.simplifications.fusion.accesses import DigitAxis
from tapeless.interpreters.simplifications.fusion.tiles import Box
from tapeless.interpreters.simplify import Writer
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.operands import argsort
from tapeless.tracer.terms.affine import Variable

Order = tuple[Variable, ...]  # the variables of the axes of a value


def viewed(w: Writer, x: Atom, axes: Sequence[DigitAxis], sizes: Sequence[int]) -> tuple[Atom, Order]:
    """Read a part of an array, with an axis for each variable."""
    x = sliced(w, x, [(a.start, a.stop, a.step) for a in axes])
    digits = [d for a in axes for d in a.digits]
    if any(len(a.digits) != 1 for a in axes):
        x = w.write(s.reshape_p, x, shape=tuple([d.radix for d in digits]))
        x = sliced(w, x, [(0, sizes[d.variable], 1) for d in digits])
    turned = tuple([k for k, d in enumerate(digits) if d.turned])
    x = w.write(s.rev_p, x, dimensions=turned) if turned else x
    return _diagonals(w, x, tuple([d.variable for d in digits]))


def arranged(w: Writer, x: Atom, order: Order, wanted: Order, sizes: Sequence[int]) -> Atom:
    """Broadcast a value along the variables that it lacks, and put its axes in another order."""
    if order == wanted:
        return x
    shape = tuple([sizes[v] for v in wanted])
    x = w.write(s.transpose_p, x, permutation=argsort([wanted.index(v) for v in order]))
    if prod(shape) == x.aval.size:
        return w.write(s.reshape_p, x, shape=shape)
    dims = tuple(sorted([wanted.index(v) for v in order]))
    return w.write(s.broadcast_in_dim_p, x, shape=shape, dims=dims)


def placed(w: Writer, x: Atom, axes: Sequence[DigitAxis], sizes: Sequence[int], box: Box, around: Atom | None) -> Atom:
    """Put a value, with an axis for each digit, in its place in a box of the result.

    Args:
      around: the number that is everywhere else; None if there is no such place.
    """
    digits = [d for a in axes for d in a.digits]
    turned = tuple([k for k, d in enumerate(digits) if d.turned])
    x = w.write(s.rev_p, x, dimensions=turned) if turned else x
    x = padded(w, x, [(0, d.radix - sizes[d.variable], 0) for d in digits], around)
    x = w.write(s.reshape_p, x, shape=tuple([a.length for a in axes]))
    return padded(w, x, [(a.start - low, high - a.stop, a.step - 1) for a, (low, high) in zip(axes, box)], around)


def padded(w: Writer, x: Atom, config: Sequence[tuple[int, int, int]], around: Atom | None) -> Atom:
    """Pad a value with a number, if there is anything to pad."""
    if around is None or not any(any(c) for c in config):
        return x
    return w.write(s.pad_p, x, around, padding_config=tuple(config))


def sliced(w: Writer, x: Atom, cuts: Sequence[tuple[int, int, int]]) -> Atom:
    """Cut a value along each axis, from a start to a limit by steps, if there is anything to cut."""
    if all(cut == (0, n, 1) for cut, n in zip(cuts, x.aval.shape)):
        return x
    starts, limits, strides = zip(*cuts)
    return w.write(s.slice_p, x, start_indices=starts, limit_indices=limits, strides=strides)


def cut(w: Writer, x: Atom, axis: int, start: int, size: int) -> Atom:
    """Cut a value along one axis, if there is anything to cut."""
    return sliced(w, x, [(start, start + size, 1) if d == axis else (0, n, 1) for d, n in enumerate(x.aval.shape)])


def _diagonals(w: Writer, x: Atom, order: Order) -> tuple[Atom, Order]:
    """Axes of one variable made one axis."""
    for shared in [v for v in dict.fromkeys(order) if order.count(v) > 1]:
        group = [k for k, v in enumerate(order) if v == shared]
        others = [k for k in range(len(order)) if k not in group]
        at = group[0] if group[-1] - group[0] < len(group) else len(others)  # neighbours stay where they are
        x = w.write(s.transpose_p, x, permutation=(*others[:at], *group, *others[at:]))
        n, shape = x.aval.shape[at], [x.aval.shape[k] for k in range(len(order)) if not at <= k < at + len(group)]
        x = w.write(s.reshape_p, x, shape=(*shape[:at], n ** len(group), *shape[at:]))
        step = sum(n**p for p in range(len(group)))
        cuts = [(0, size, 1) for size in shape]
        x = sliced(w, x, [*cuts[:at], (0, step * (n - 1) + 1, step), *cuts[at:]])
        order = (*[order[k] for k in others[:at]], shared, *[order[k] for k in others[at:]])
    return x, order
