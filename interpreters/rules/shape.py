"""Rules of reshape, transpose, pad, slice and their like: tangents move along, cotangents move back.

The cotangent of a slice's operand is an `Update`: added in place to the operand's running cotangent, and padded only
if there is none.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import mul
from typing import Any, NamedTuple

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import Avals, Box, IndexRow, Params, Shape, core, rows, terms
from tapeless.interpreters.transpose import Update, is_linear
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.elementwise import add, select_n
from tapeless.tracer.primitives.indexing import dynamic_update_slice
from tapeless.tracer.primitives.operands import argsort
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.terms.affine import Access, Affine
from tapeless.tracer.terms.term import IsZero, Read, Term
from tapeless.tracer.types import aval_of, holds_keys


def _later(axes: Sequence[int]) -> tuple[int, ...]:
    """Shift axes by one, behind a new first axis."""
    return tuple([d + 1 for d in axes])


# ---- creation and broadcasting -------------------------------------------------------------------------------


def _broadcast_in_dim_transpose(cts: Any, x: Any, *, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    kept = [d for d, n in zip(dims, x.aval.shape) if n == shape[d]]
    summed = reduce_sum(cts[0], [d for d in range(len(shape)) if d not in kept])
    return (s.reshape(summed, x.aval.shape),)


jvp.linear(s.broadcast_in_dim_p)
transpose.rules[s.broadcast_in_dim_p] = _broadcast_in_dim_transpose
vmap.front(
    s.broadcast_in_dim_p,
    lambda size, *, shape, dims: {"shape": (size, *shape), "dims": (0, *_later(dims))},
    lambda size, *, shape, dims: {"shape": (*shape, size), "dims": (*dims, len(shape))},
)

jvp.zero(s.iota_p)
vmap.rules[s.iota_p] = lambda size, args, dims, **params: (s.iota_p.bind(**params), [None])

# ---- the same elements in another shape ----------------------------------------------------------------------


for _primitive in (s.reshape_p, s.transpose_p, s.rev_p):
    jvp.linear(_primitive)
transpose.unary(s.reshape_p, lambda ct, x, *, shape: s.reshape(ct, x.aval.shape))
transpose.unary(s.transpose_p, lambda ct, x, *, permutation: s.transpose(ct, argsort(permutation)))
transpose.unary(s.rev_p, lambda ct, x, *, dimensions: s.rev(ct, dimensions))
vmap.front(
    s.reshape_p, lambda size, *, shape: {"shape": (size, *shape)}, lambda size, *, shape: {"shape": (*shape, size)}
)
vmap.front(s.rev_p, lambda size, *, dimensions: {"dimensions": _later(dimensions)}, lambda size, **params: params)


def _transpose_vmap(size: int, args: Any, dims: Any, *, permutation: tuple[int, ...]) -> Any:
    """Batch by one transposition, which also moves the mapped axis to the front."""
    (d,) = dims
    return (s.transpose(args[0], (d, *[k + (k >= d) for k in permutation])),), [0]


vmap.rules[s.transpose_p] = _transpose_vmap

# ---- joining -------------------------------------------------------------------------------------------------


def _concatenate_transpose(cts: Any, *xs: Any, dimension: int) -> Any:
    """Split the cotangent among several linear operands; slice it for a single one among constants (zeros)."""
    sizes = [aval_of(x).shape[dimension] for x in xs]
    if sum(map(is_linear, xs)) > 1:
        parts: Sequence[Any] = s.split(cts[0], sizes, dimension)
        return tuple(part if is_linear(x) else None for part, x in zip(parts, xs))
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return tuple(
        s.slice_in_dim(cts[0], end - n, end, axis=dimension) if is_linear(x) else None
        for x, n, end in zip(xs, sizes, ends)
    )


jvp.linear(s.concatenate_p)
transpose.rules[s.concatenate_p] = _concatenate_transpose
vmap.front(s.concatenate_p, lambda size, *, dimension: {"dimension": dimension + 1}, lambda size, **params: params)


def _pad_transpose(cts: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
    ct = cts[0]
    return (
        _unpad(ct, padding_config) if is_linear(x) else None,
        _sum_of_padding(ct, aval_of(x).shape, padding_config) if is_linear(value) else None,
    )


def _unpad(ct: Any, config: Any) -> Any:
    """Slice out of ct the elements that come from pad's operand: undo low and high, then take each (interior+1)st."""
    whole = s.pad(ct, 0, [(-low, -high, 0) for low, high, _ in config])
    shape = aval_of(whole).shape
    return s.slice(whole, (0,) * len(shape), shape, [gap + 1 for _, _, gap in config])


def _sum_of_padding(ct: Any, shape: tuple[int, ...], config: Any) -> Any:
    """Sum the elements of ct that belong to the padding value, not to the operand of `shape`."""
    zero = s.full((), 0, aval_of(ct).dtype)
    return reduce_sum(select_n(_from_operand(shape, config), ct, zero), range(len(shape)))


def _from_operand(shape: tuple[int, ...], config: Any) -> Any:
    """Make the mask of the elements of a padded array that come from the operand."""
    return s.pad(s.full(shape, True), s.full((), False), config)


def _pad_vmap(size: int, args: Any, dims: Any, *, padding_config: Any) -> Any:
    """Batch a pad; a padding value that differs between examples is selected in the place of zeros."""
    x, value = args
    shape = vmap.example_shape(x, dims[0])
    if dims[1] is None and dims[0] is not None:
        return (s.pad(x, value, _with_axis(padding_config, dims[0], (0, 0, 0))),), [dims[0]]
    x, config = vmap.move_mapped_axis_first(x, dims[0], size), ((0, 0, 0), *padding_config)
    zero = Zero(aval_of(x).update(shape=(), weak_type=False))
    padded = s.pad(x, instantiate(zero) if holds_keys(zero.aval) else 0, config)
    mask = vmap.move_mapped_axis_first(_from_operand(shape, padding_config), None, size)
    return (select_n(mask, s.broadcast_in_dim(value, aval_of(padded).shape, (0,)), padded),), [0]


def _with_axis(of_axes: tuple[Any, ...], d: int, item: Any) -> tuple[Any, ...]:
    return (*of_axes[:d], item, *of_axes[d:])


jvp.linear(s.pad_p)
transpose.rules[s.pad_p] = _pad_transpose
vmap.rules[s.pad_p] = _pad_vmap

# ---- slicing -------------------------------------------------------------------------------------------------


def place(ct: Any, starts: Sequence[int], shape: tuple[int, ...]) -> Any:
    """Pad ct with zeros to `shape`, so that it begins at `starts`."""
    ends = [n - start - k for n, start, k in zip(shape, starts, aval_of(ct).shape)]
    return s.pad(ct, 0, [(start, end, 0) for start, end in zip(starts, ends)])


def add_at(whole: Any, ct: Any, starts: Sequence[int]) -> Any:
    """Add ct to the window of `whole` that begins at `starts`, in place."""
    limits = [start + k for start, k in zip(starts, aval_of(ct).shape)]
    window = s.slice(whole, starts, limits)
    return dynamic_update_slice(whole, add(window, ct), starts, allow_negative_indices=False)


def _slice_transpose(cts: Any, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    """Transpose a slice: spread a strided cotangent to its window, then update, so the work is that of the window."""
    ct = cts[0]
    if not aval_of(ct).size:
        return (Zero(x.aval),)
    if any(step > 1 for step in strides):
        ct = s.pad(ct, 0, [(0, 0, step - 1) for step in strides])
    dense, onto = lambda: place(ct, start_indices, x.aval.shape), lambda whole: add_at(whole, ct, start_indices)
    return (Update(dense, onto, (ct, start_indices)),)


jvp.linear(s.slice_p)
transpose.rules[s.slice_p] = transpose.ReadingPart(_slice_transpose)
vmap.front(
    s.slice_p,
    lambda size, *, start_indices, limit_indices, strides: {
        "start_indices": (0, *start_indices),
        "limit_indices": (size, *limit_indices),
        "strides": (1, *strides),
    },
    lambda size, *, start_indices, limit_indices, strides: {
        "start_indices": (*start_indices, 0),
        "limit_indices": (*limit_indices, size),
        "strides": (*strides, 1),
    },
)


def _split_transpose(cts: Any, x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
    """Concatenate the cotangents of all parts; if some are symbolic zeros, return an `Update` by the others."""
    starts = [tuple(sum(sizes[:k]) if d == axis else 0 for d in range(x.aval.ndim)) for k in range(len(sizes))]
    parts = [(ct, start) for ct, start in zip(cts, starts) if type(ct) is not Zero]

    def dense() -> Any:
        if len(parts) == 1:
            return place(*parts[0], x.aval.shape)
        return s.concatenate([instantiate(ct) for ct in cts], axis)

    def onto(whole: Any) -> Any:
        for ct, start in parts:
            whole = add_at(whole, ct, start)
        return whole

    return (dense() if len(parts) == len(cts) else Update(dense, onto),)


jvp.linear(s.split_p)
transpose.rules[s.split_p] = transpose.ReadingPart(_split_transpose)
vmap.front(s.split_p, lambda size, *, sizes, axis: {"sizes": sizes, "axis": axis + 1}, lambda size, **params: params)

# ---- index rows ----------------------------------------------------------------------------------------------
# Each is a sum of terms of one factor.

ZERO = Affine()

# ---- index rows: creation and broadcasting -------------------------------------------------------------------


def _broadcast_in_dim_row(params: Params, avals: Avals) -> IndexRow:
    box, shape = Box(), params["shape"]
    out = box.axes(shape)
    access = [out[d] if n == shape[d] else ZERO for n, d in zip(avals[0].shape, params["dims"])]
    return terms([box.term(out, Read(0, tuple(access)))])


def _iota_row(params: Params, avals: Avals) -> IndexRow:
    """Make the row of an iota: a function of the index along one axis, without operands."""
    return core((), params["shape"])


rows[s.broadcast_in_dim_p], rows[s.iota_p] = _broadcast_in_dim_row, _iota_row

# ---- index rows: the same elements in another shape ----------------------------------------------------------


def _reshape_row(params: Params, avals: Avals) -> IndexRow:
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


def _transpose_row(params: Params, avals: Avals) -> IndexRow:
    box = Box()
    i = box.axes(avals[0].shape)
    return terms([box.term([i[d] for d in params["permutation"]], Read(0, i))])


def _rev_row(params: Params, avals: Avals) -> IndexRow:
    box = Box()
    i = box.axes(avals[0].shape)
    turned = [n - 1 - v if d in params["dimensions"] else v for d, (v, n) in enumerate(zip(i, avals[0].shape))]
    return terms([box.term(turned, Read(0, i))])


rows[s.reshape_p], rows[s.transpose_p], rows[s.rev_p] = _reshape_row, _transpose_row, _rev_row

# ---- index rows: joining and cutting -------------------------------------------------------------------------


def _slice_row(params: Params, avals: Avals) -> IndexRow:
    box = Box()
    cut = list(zip(params["start_indices"], params["limit_indices"], params["strides"]))
    i = box.axes([-(-(b - a) // step) for a, b, step in cut])
    return terms([box.term(i, Read(0, tuple([step * v + a for v, (a, _, step) in zip(i, cut)])))])


def _split_row(params: Params, avals: Avals) -> IndexRow:
    axis, sizes = params["axis"], params["sizes"]
    starts = accumulate(sizes, initial=0)
    return terms(*[[_piece(avals[0].shape, axis, n, 0, 0, start)] for n, start in zip(sizes, starts)])


def _concatenate_row(params: Params, avals: Avals) -> IndexRow:
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


rows[s.slice_p], rows[s.split_p], rows[s.concatenate_p] = _slice_row, _split_row, _concatenate_row

# ---- index rows: padding -------------------------------------------------------------------------------------


class _Padded(NamedTuple):
    """An axis of a padded array: element first + step k is element start + k of the operand, for k below n."""

    size: int
    first: int
    step: int
    start: int
    n: int


def _pad_row(params: Params, avals: Avals) -> IndexRow:
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


rows[s.pad_p] = _pad_row
