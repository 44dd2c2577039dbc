"""Index rows of operations that move elements: each is a sum of terms of one factor."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple

from tapeless.interpreters.index_rows import Box, IndexRow, Params, Shape, core, rows, terms
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.terms.affine import Access, Affine
from tapeless.tracer.terms.term import IsZero, Read, Term
from tapeless.tracer.types import ShapedArray

ZERO = Affine()

# ---- creation and broadcasting -------------------------------------------------------------------------------


def _broadcast_in_dim(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    box, shape = Box(), params["shape"]
    out = box.axes(shape)
    access = [out[d] if n == shape[d] else ZERO for n, d in zip(avals[0].shape, params["dims"])]
    return terms([box.term(out, Read(0, tuple(access)))])


def _iota(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    """Make the row of an iota: a function of the index along one axis, without operands."""
    return core((), params["shape"])


rows[s.broadcast_in_dim_p], rows[s.iota_p] = _broadcast_in_dim, _iota

# ---- the same elements in another shape ----------------------------------------------------------------------


def _reshape(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    """Make the row of a reshape: the flat position in mixed radix, with a variable for each digit of both shapes.

    Between strides that both shapes have, where their other strides do not divide one another, each shape has digits of
    its own, and a bracket equates the flat positions.
    """
    before, after = avals[0].shape, params["shape"]
    if not avals[0].size:
        return terms([])
    box, of_before, of_after = Box(), _strides(before), _strides(after)
    reading, writing, brackets = dict[int, Affine](), dict[int, Affine](), list[IsZero]()
    for low, high in pairwise(sorted(of_before & of_after)):
        x, y, both = [sorted(r for r in s if low <= r <= high) for s in (of_before, of_after, of_before | of_after)]
        if all(b % a == 0 for a, b in pairwise(both)):
            x = y = both
        digits = _digits(box, x)
        others = digits if x is y else _digits(box, y)
        brackets += [] if x is y else [IsZero(_flat(digits) - _flat(others))]
        reading |= digits
        writing |= others
    return terms([box.term(_access(after, writing), Read(0, _access(before, reading)), brackets=brackets)])


def _strides(shape: Shape) -> set[int]:
    """Return the strides of the axes in the flat position, and the size of the array."""
    return set(accumulate(reversed(shape), mul, initial=1))


def _digits(box: Box, strides: Sequence[int]) -> dict[int, Affine]:
    """Make a variable for each stride but the last; its size is the next stride divided by this one."""
    return {low: box.axis(high // low) for low, high in pairwise(strides)}


def _flat(digits: dict[int, Affine]) -> Affine:
    return sum((r * v for r, v in digits.items()), ZERO)


def _access(shape: Shape, digits: dict[int, Affine]) -> Access:
    """Compute the index along each axis of a shape from the digits between its stride and the next."""
    found, stride = list[Affine](), 1
    for n in reversed(shape):
        found.append(_flat({r // stride: v for r, v in digits.items() if stride <= r < stride * n}))
        stride *= n
    return tuple(reversed(found))


def _transpose(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    box = Box()
    i = box.axes(avals[0].shape)
    return terms([box.term([i[d] for d in params["permutation"]], Read(0, i))])


def _rev(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    box = Box()
    i = box.axes(avals[0].shape)
    turned = [n - 1 - v if d in params["dimensions"] else v for d, (v, n) in enumerate(zip(i, avals[0].shape))]
    return terms([box.term(turned, Read(0, i))])


rows[s.reshape_p], rows[s.transpose_p], rows[s.rev_p] = _reshape, _transpose, _rev

# ---- joining and cutting -------------------------------------------------------------------------------------


def _slice(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    box = Box()
    cut = list(zip(params["start_indices"], params["limit_indices"], params["strides"]))
    i = box.axes([-(-(b - a) // step) for a, b, step in cut])
    return terms([box.term(i, Read(0, tuple([step * v + a for v, (a, _, step) in zip(i, cut)])))])


def _split(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    axis, sizes = params["axis"], params["sizes"]
    starts = accumulate(sizes, initial=0)
    return terms(*[[_piece(avals[0].shape, axis, n, 0, 0, start)] for n, start in zip(sizes, starts)])


def _concatenate(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    axis = params["dimension"]
    starts = accumulate([x.shape[axis] for x in avals], initial=0)
    return terms([_piece(x.shape, axis, x.shape[axis], k, start, 0) for k, (x, start) in enumerate(zip(avals, starts))])


def _piece(shape: Shape, axis: int, n: int, operand: int, to: int, start: int) -> Term:
    """Make the term that writes n elements along an axis, read from `start` on, from `to` on."""
    box = Box()
    i = box.axes([n if d == axis else size for d, size in enumerate(shape)])
    return box.term(_moved(i, axis, to), Read(operand, _moved(i, axis, start)))


def _moved(i: Access, axis: int, by: int) -> Access:
    return tuple([v + by if d == axis else v for d, v in enumerate(i)])


rows[s.slice_p], rows[s.split_p], rows[s.concatenate_p] = _slice, _split, _concatenate

# ---- padding -------------------------------------------------------------------------------------------------


class _Padded(NamedTuple):
    """An axis of a padded array: element first + step k is element start + k of the operand, for k below n."""

    size: int
    first: int
    step: int
    start: int
    n: int


def _pad(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    """Make the row of a pad: the operand, and the padding value by the first axis whose index is outside of it."""
    axes = [_padded(n, *config) for n, config in zip(avals[0].shape, params["padding_config"])]
    box = Box()
    k = box.axes([a.n for a in axes])
    found = [box.term(_within(axes, k), Read(0, tuple([v + a.start for a, v in zip(axes, k)])))]
    for d, axis in enumerate(axes):
        for first, step, width, n in _outside(axis):
            box = Box()
            before, at = _within(axes[:d], box.axes([a.n for a in axes[:d]])), box.axes((n, width))
            out = [*before, step * at[0] + at[1] + first, *box.axes([a.size for a in axes[d + 1 :]])]
            found.append(box.term(out, Read(1, ())))
    return terms(found)


def _padded(n: int, low: int, high: int, gap: int) -> _Padded:
    step = gap + 1
    size = low + n + max(n - 1, 0) * gap + high
    start, stop = max(-(low // step), 0), min((size - 1 - low) // step + 1, n)
    return _Padded(size, low + start * step, step, start, max(stop - start, 0))


def _within(axes: Sequence[_Padded], k: Access) -> Access:
    return tuple([a.step * v + a.first for a, v in zip(axes, k)])


def _outside(axis: _Padded) -> list[tuple[int, int, int, int]]:
    """List the padding on an axis as (first, step, width, n): n runs of this width, a step apart."""
    if not axis.n:
        return [(0, 0, axis.size, 1)]
    end = axis.first + (axis.n - 1) * axis.step + 1
    before, after = (0, 0, axis.first, 1), (end, 0, axis.size - end, 1)
    found = [before, (axis.first + 1, axis.step, axis.step - 1, axis.n - 1), after]
    return [run for run in found if run[2] and run[3]]


rows[s.pad_p] = _pad
