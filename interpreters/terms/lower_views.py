"""Write strided views as operations: reads and writes at accesses that `accesses.py` decomposes into digits.

Search terms: strided view, layout, code generation. A read is a slice, a reshape into an axis for each digit, a reverse
and a diagonal; a write is a transpose, a broadcast, a reverse, a reshape and a pad. Accesses that are no views are in
`lower_accesses.py`.
"""

from collections.abc import Sequence
from math import prod

from tapeless.interpreters.terms.accesses import DigitAxis
from tapeless.interpreters.terms.tiles import Box
from tapeless.interpreters.writer import Writer
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.operands import argsort
from tapeless.tracer.terms.affine import Variable

Order = tuple[Variable, ...]  # the variable of each axis of a value


def read_view(w: Writer, x: Atom, axes: Sequence[DigitAxis], sizes: Sequence[int]) -> tuple[Atom, Order]:
    """Write the read of a view of an array; return it with the variable of each axis."""
    x = sliced(w, x, [(a.start, a.stop, a.step) for a in axes])
    digits = [d for a in axes for d in a.digits]
    if any(len(a.digits) != 1 for a in axes):
        x = w.write(s.reshape_p, x, shape=tuple([d.radix for d in digits]))
        x = sliced(w, x, [(0, sizes[d.variable], 1) for d in digits])
    turned = tuple([k for k, d in enumerate(digits) if d.turned])
    x = w.write(s.rev_p, x, dimensions=turned) if turned else x
    return _diagonals(w, x, tuple([d.variable for d in digits]))


def arrange_axes(w: Writer, x: Atom, order: Order, wanted: Order, sizes: Sequence[int]) -> Atom:
    """Broadcast a value of axes `order` along the variables that it lacks, and transpose it to the axes `wanted`."""
    if order == wanted:
        return x
    shape = tuple([sizes[v] for v in wanted])
    x = w.write(s.transpose_p, x, permutation=argsort([wanted.index(v) for v in order]))
    if prod(shape) == x.aval.size:
        return w.write(s.reshape_p, x, shape=shape)
    dims = tuple(sorted([wanted.index(v) for v in order]))
    return w.write(s.broadcast_in_dim_p, x, shape=shape, dims=dims)


def place_in_box(
    w: Writer, x: Atom, axes: Sequence[DigitAxis], sizes: Sequence[int], box: Box, around: Atom | None
) -> Atom:
    """Write a value, with an axis for each digit, into its place in a box of the result.

    Args:
      around: the number everywhere else; None if the value fills the box.
    """
    digits = [d for a in axes for d in a.digits]
    turned = tuple([k for k, d in enumerate(digits) if d.turned])
    x = w.write(s.rev_p, x, dimensions=turned) if turned else x
    x = pad_value(w, x, [(0, d.radix - sizes[d.variable], 0) for d in digits], around)
    x = w.write(s.reshape_p, x, shape=tuple([a.length for a in axes]))
    return pad_value(w, x, [(a.start - low, high - a.stop, a.step - 1) for a, (low, high) in zip(axes, box)], around)


def pad_value(w: Writer, x: Atom, config: Sequence[tuple[int, int, int]], around: Atom | None) -> Atom:
    """Pad a value with the number `around`; the same atom if there is nothing to pad."""
    if around is None or not any(any(c) for c in config):
        return x
    return w.write(s.pad_p, x, around, padding_config=tuple(config))


def sliced(w: Writer, x: Atom, cuts: Sequence[tuple[int, int, int]]) -> Atom:
    """Slice a value by (start, limit, stride) along each axis; the same atom if that is all of it."""
    if all(cut == (0, n, 1) for cut, n in zip(cuts, x.aval.shape)):
        return x
    starts, limits, strides = zip(*cuts)
    return w.write(s.slice_p, x, start_indices=starts, limit_indices=limits, strides=strides)


def cut(w: Writer, x: Atom, axis: int, start: int, size: int) -> Atom:
    """Slice a value along one axis; the same atom if that is all of it."""
    return sliced(w, x, [(start, start + size, 1) if d == axis else (0, n, 1) for d, n in enumerate(x.aval.shape)])


def _diagonals(w: Writer, x: Atom, order: Order) -> tuple[Atom, Order]:
    """Read the diagonal of axes that have the same variable; return the value with the variable of each axis."""
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
