"""Rules of gather, scatter, dynamic_slice and dynamic_update_slice.

An operand read in part has an `Update` of this part as its cotangent: dense zeros are built at most
once. Writes are transposed to reads. Where windows may overlap, the derivative belongs to the update that won.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import Avals, Box, IndexRow, Params, elements, monoid, rows, terms
from tapeless.interpreters.transpose import Update, is_linear
from tapeless.interpreters.zero import Zero, instantiate, zero_of, zeros_of
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.bits import bitwise_and
from tapeless.tracer.primitives.checkpoint import materialize
from tapeless.tracer.primitives.dimension_numbers import DimensionNumbers, window_sizes, windows_shape
from tapeless.tracer.primitives.elementwise import add, convert_element_type, div, eq, gt, lt, mul, ne, select_n, sub
from tapeless.tracer.primitives.reduction import linear_recurrence
from tapeless.tracer.primitives.shape import full, full_like, iota, pad, reshape, zeros_like
from tapeless.tracer.primitives.sorting import sort
from tapeless.tracer.terms.affine import Access, Affine, symbol
from tapeless.tracer.terms.term import Bracket, Coefficient, Lookup, NotNegative, Read, Term, term
from tapeless.tracer.types import ShapedArray, aval_of, exact

# ---- one window ----------------------------------------------------------------------------------------------


def _zeros(aval: ShapedArray) -> Any:
    return full(aval.shape, 0, aval.dtype)


# Starts come from a primitive here, not from a user: negative ones do not count from the end.
_cut = partial(i.dynamic_slice, allow_negative_indices=False)
_put = partial(i.dynamic_update_slice, allow_negative_indices=False)


def _dynamic_slice_transpose(cts: Any, x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
    ct = cts[0]

    def onto(whole: Any) -> Any:
        return _put(whole, add(_cut(whole, starts, slice_sizes), ct), starts)

    return Update(lambda: _put(_zeros(x.aval), ct, starts), onto), *[None] * len(starts)


jvp.linear_in(i.dynamic_slice_p, 0)
transpose.rules[i.dynamic_slice_p] = transpose.ReadingPart(_dynamic_slice_transpose)


def _dynamic_update_slice_transpose(cts: Any, x: Any, update: Any, *starts: Any) -> Any:
    ct, window = cts[0], aval_of(update)
    return (
        _put(ct, _zeros(window), starts) if is_linear(x) else None,
        _cut(ct, starts, window.shape) if is_linear(update) else None,
        *[None] * len(starts),
    )


jvp.linear_in(i.dynamic_update_slice_p, 0, 1)
transpose.rules[i.dynamic_update_slice_p] = _dynamic_update_slice_transpose

# ---- gather --------------------------------------------------------------------------------------------------


def _gather_jvp(primals: Any, tangents: Any, *, fill_value: Any, **params: Any) -> Any:
    """Gather the tangents; the tangent of fill values is zero."""
    out = i.gather_p.bind(*primals, fill_value=fill_value, **params)
    if type(tangents[0]) is Zero:
        return out, zeros_of(out)
    return out, (i.gather(tangents[0], primals[1], fill_value=0, **params),)


def _gather_transpose(
    cts: Any, x: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, fill_value: Any, **params: Any
) -> Any:
    numbers = i.ScatterDimensionNumbers(*dimension_numbers)

    def onto(whole: Any) -> Any:
        return i.scatter_add(whole, indices, cts[0], numbers, **params)

    return Update(lambda: onto(_zeros(x.aval)), onto), None


jvp.rules[i.gather_p] = _gather_jvp
jvp.structurally_linear[i.gather_p] = (0,)
transpose.rules[i.gather_p] = transpose.ReadingPart(_gather_transpose)


def _numbers_later(d: Any, windows: int, operand: int, indices: int) -> Any:
    """Shift dimension numbers behind this many new first axes of the array of windows, the operand, the indices."""
    shifts = (windows, operand, operand, operand, indices)
    return type(d)(*[tuple([k + n for k in dims]) for dims, n in zip(d, shifts)])


def _gather_vmap(size: int, args: Any, dims: Any, *, dimension_numbers: Any, slice_sizes: Any, **params: Any) -> Any:
    """Batch a gather: the mapped axis is one more window axis, one more axis of indices, or a batching axis of both."""
    if dims[1] is None:
        return _gather_longer(size, args[0], args[1], dims[0], dimension_numbers, slice_sizes, params)
    x, indices = [y if d is None else vmap.to_front(y, d) for y, d in zip(args, dims)]
    mapped = dims[0] is not None
    d = _numbers_later(dimension_numbers, 1, mapped, 1)
    if mapped:
        d, slice_sizes = _batching(d), (min(1, size), *slice_sizes)
    else:
        params |= _NO_PROMISES
    return i.gather_p.bind(x, indices, dimension_numbers=d, slice_sizes=slice_sizes, **params), [0]


def _gather_longer(size: int, x: Any, indices: Any, dim: int, d: Any, slice_sizes: Any, params: Any) -> Any:
    """Gather windows of one axis more, which is among those of a window where it is among those of the operand."""
    before = sum(axis not in (*d.collapsed_slice_dims, *d.operand_batching_dims) for axis in range(dim))
    last = len(d.offset_dims) + aval_of(indices).ndim - 1
    place = d.offset_dims[before] if before < len(d.offset_dims) else last
    offsets = (*d.offset_dims[:before], place, *[k + 1 for k in d.offset_dims[before:]])
    of_operand = [tuple([axis + (axis >= dim) for axis in axes]) for axes in d[1:4]]
    d, sizes = type(d)(offsets, *of_operand, d[4]), (*slice_sizes[:dim], size, *slice_sizes[dim:])
    return i.gather_p.bind(x, indices, dimension_numbers=d, slice_sizes=sizes, **params), [place]


def _batching(d: Any) -> Any:
    """Make the first axes of operand and indices batching axes in dimension numbers."""
    return type(d)(*d[:3], (0, *d[3]), (0, *d[4]))


# Promises about the indices of each example do not hold for the indices of all examples into one operand.
_NO_PROMISES = {"unique_indices": False, "indices_are_sorted": False}

vmap.rules[i.gather_p] = _gather_vmap


def _read(x: Any, indices: Any, updates: ShapedArray, dimension_numbers: Any, **params: Any) -> Any:
    """Gather the windows of x that a scatter of updates of this type would write; zeros for those it would drop."""
    whole = aval_of(x)
    if 0 in (updates.size, whole.size):
        return full(updates.shape, 0, whole.dtype)  # x may be too small for a window
    sizes = window_sizes(whole, updates, dimension_numbers)
    numbers = i.GatherDimensionNumbers(*dimension_numbers)
    return i.gather(x, indices, numbers, sizes, fill_value=0, **params)


# ---- scatter -------------------------------------------------------------------------------------------------


def _scatter_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """Push tangents through scatter: linear if no windows overlap; else only the updates that win have a derivative.

    The winners are found first, and the result is computed from them too, since others might win another time.
    """
    operand, indices, updates = primals
    t, t_updates = tangents[0], tangents[2]
    if type(t) is Zero and type(t_updates) is Zero:
        out = i.scatter_p.bind(*primals, **params)
        return out, zeros_of(out)
    write = _writer(primals, params) if type(t_updates) is not Zero else _plain_writer(indices, params)
    t_updates = zeros_like(updates) if type(t_updates) is Zero else t_updates
    return (write(operand, updates),), (write(instantiate(t), t_updates),)


def _plain_writer(indices: Any, params: Any) -> Callable[[Any, Any], Any]:
    return lambda x, updates: i.scatter(x, indices, updates, **params)


def _writer(primals: Any, params: Any) -> Callable[[Any, Any], Any]:
    """Make `write(operand, updates)`, linear in both, in which the same of several overlapping updates always win."""
    operand, indices, updates = primals
    if params["unique_indices"]:
        return _plain_writer(indices, params)
    wins = _winners(aval_of(operand), indices, aval_of(updates), params)
    zero = zeros_like(updates)

    def write(x: Any, updates: Any) -> Any:
        cleared = i.scatter(x, indices, zero, **params)
        return i.scatter_add(cleared, indices, select_n(wins, zero, updates), **params)

    return write


def _winners(operand: ShapedArray, indices: Any, updates: ShapedArray, params: Any) -> Any:
    """Flag the elements of updates that win at their places: number them from 1, scatter the numbers, and read them."""
    numbers = add(reshape(iota(np.int32, updates.size), updates.shape), 1)
    kept = i.scatter(full(operand.shape, 0, np.int32), indices, numbers, **params)
    return eq(_read(kept, indices, updates, **params), numbers)


def _scatter_transpose(cts: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
    ct, whole, windows = cts[0], aval_of(operand), aval_of(updates)
    ct_updates = None
    if is_linear(updates):
        ct_updates = _read(ct, indices, windows, **params)
        if not params["unique_indices"]:
            ct_updates = select_n(_winners(whole, indices, windows, params), _zeros(windows), ct_updates)
    return i.scatter(ct, indices, _zeros(windows), **params) if is_linear(operand) else None, None, ct_updates


jvp.rules[i.scatter_p] = _scatter_jvp
jvp.structurally_linear[i.scatter_p] = (0, 2)
transpose.rules[i.scatter_p] = _scatter_transpose


def _scatter_add_transpose(cts: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
    return (
        cts[0] if is_linear(operand) else None,
        None,
        _read(cts[0], indices, aval_of(updates), **params) if is_linear(updates) else None,
    )


jvp.linear_in(i.scatter_add_p, 0, 2)
transpose.rules[i.scatter_add_p] = _scatter_add_transpose


def _scatter_mul_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """Apply the product rule. The derivative by one of several updates of an element is the product of the others."""
    operand, indices, updates = primals
    t, _, t_updates = tangents
    out = i.scatter_mul(operand, indices, updates, **params)
    if type(t) is Zero and type(t_updates) is Zero:
        return (out,), (zero_of(out),)
    tangent = _zeros(aval_of(out)) if type(t) is Zero else i.scatter_mul(t, indices, updates, **params)
    if type(t_updates) is not Zero and params["unique_indices"]:
        factor = _read(operand, indices, aval_of(updates), **params)
        tangent = i.scatter_add(tangent, indices, mul(t_updates, factor), **params)
    elif type(t_updates) is not Zero and aval_of(updates).size and aval_of(operand).size:
        tangent = add(tangent, _by_repeated_factors(operand, indices, updates, t_updates, params))
    return (out,), (tangent,)


def _by_repeated_factors(operand: Any, indices: Any, updates: Any, t: Any, params: Any) -> Any:
    """Push the tangents of factors of which several multiply one element, also where some of them are 0.

    Factors are sorted by the element that they multiply. Along them the product p' = u p, beginning with the operand,
    and its tangent ṗ' = u ṗ + p u̇, beginning with 0, are linear recurrences; the last ṗ' is the element's.
    """
    whole, n = aval_of(operand), aval_of(updates).size
    numbers = reshape(add(iota(np.int32, whole.size), 1), whole.shape)
    places = reshape(_read(numbers, indices, aval_of(updates), **params), (n,))  # from 1; 0 where updates are dropped
    places, order = sort((places, iota(np.int32, n)), num_keys=1)
    before = e.ne(places, _moved_by(places, 1))
    last = e.ne(places, _moved_by(places, -1))
    factors, pushed = _taken(updates, order), _taken(t, order)
    begin = _taken(operand, e.max(sub(places, 1), 0))
    zero = zeros_like(factors)
    decay = select_n(before, factors, zero)
    products = linear_recurrence(decay, select_n(before, zero, mul(begin, factors)))
    ahead = select_n(before, _moved_by(products, 1), begin)
    tangents = linear_recurrence(decay, mul(ahead, pushed))
    kept = bitwise_and(last, gt(places, 0))
    found = i.scatter_add(
        full((whole.size,), 0, whole.dtype),
        reshape(select_n(kept, full_like(places, whole.size), sub(places, 1)), (n, 1)),
        tangents,
        i.ScatterDimensionNumbers((), (0,), (0,)),
        mode=i.GatherScatterMode.FILL_OR_DROP,
    )
    return reshape(found, whole.shape)


def _moved_by(x: Any, steps: int) -> Any:
    """Move the elements of a vector by one place, to the right or left; the free one is filled with -1."""
    return pad(x, exact(-1, aval_of(x).dtype), [(steps, -steps, 0)])


def _taken(x: Any, order: Any) -> Any:
    """Read elements of an array, numbered in row-major order."""
    flat = reshape(x, (aval_of(x).size,))
    numbers = i.GatherDimensionNumbers((), (0,), (0,))
    return i.gather(flat, reshape(order, (aval_of(order).size, 1)), numbers, (1,), mode=i.GatherScatterMode.CLIP)


def _scatter_mul_transpose(cts: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
    if is_linear(updates):
        raise transpose.not_linear(i.scatter_mul_p, "it multiplies by updates that are linear")
    return i.scatter_mul(cts[0], indices, updates, **params), None, None


jvp.rules[i.scatter_mul_p] = _scatter_mul_jvp
jvp.structurally_linear[i.scatter_mul_p] = (0,)
transpose.rules[i.scatter_mul_p] = _scatter_mul_transpose


def _extreme(primitive: Primitive, extreme: Callable[[Any, Any], Any], loses: Callable[[Any, Any], Any]) -> None:
    """Register the rule of scatter_min or scatter_max: elements that equal the result share its derivative equally.

    They are materialized, to equal it bit for bit. `loses(x, result)` is false for nan, so that a nan wins.
    """

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        t, _, t_updates = tangents
        if (type(t) is Zero and type(t_updates) is Zero) or params["unique_indices"]:
            (out,) = primitive.bind(*primals, **params)
            if type(t) is Zero and type(t_updates) is Zero:
                return (out,), (zero_of(out),)
            return (out,), (_extreme_tangent(primals, tangents, extreme, loses, params),)
        operand, indices, updates = primals = [materialize(primals[0]), primals[1], materialize(primals[2])]
        (out,) = primitive.bind(*primals, **params)
        wins = _one_where_not(loses(operand, out), out)
        updates_win = _one_where_not(loses(updates, _read(out, indices, aval_of(updates), **params)), out)
        share = div(full_like(out, 1), i.scatter_add(wins, indices, updates_win, **params))
        tangent = _zeros(aval_of(out)) if type(t) is Zero else mul(t, mul(wins, share))
        if type(t_updates) is not Zero:
            weight = mul(updates_win, _read(share, indices, aval_of(updates), **params))
            tangent = i.scatter_add(tangent, indices, mul(t_updates, weight), **params)
        return (out,), (tangent,)

    jvp.rules[primitive] = rule


def _extreme_tangent(
    primals: Any, tangents: Any, extreme: Callable[[Any, Any], Any], loses: Callable[[Any, Any], Any], params: Any
) -> Any:
    """Compute the tangent of scatter_min or scatter_max if no windows overlap: scatter into the operand's tangent.

    Only the windows are read and compared with their updates; no whole array is.
    """
    operand, indices, updates = primals
    t, _, t_updates = tangents

    def read(x: Any) -> Any:
        return _read(x, indices, aval_of(updates), **params)

    before = read(operand)
    after = extreme(before, updates)
    kept, won = _one_where_not(loses(before, after), after), _one_where_not(loses(updates, after), after)
    both = add(kept, won)
    moved = [] if type(t) is Zero else [mul(read(t), div(kept, both))]
    moved += [] if type(t_updates) is Zero else [mul(t_updates, div(won, both))]
    whole = _zeros(aval_of(operand)) if type(t) is Zero else t
    return i.scatter(whole, indices, reduce(add, moved), **params)


def _one_where_not(lost: Any, like: Any) -> Any:
    dtype = aval_of(like).dtype
    return select_n(lost, full((), 1, dtype), full((), 0, dtype))


def _loses(less: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the predicate `less(x, result)`; for complex numbers, which `less` does not order, x != result, no nan."""
    return lambda x, out: bitwise_and(ne(x, out), eq(out, out)) if dtypes.is_complex(aval_of(x).dtype) else less(x, out)


_extreme(i.scatter_min_p, e.min, _loses(lambda x, out: lt(out, x)))
_extreme(i.scatter_max_p, e.max, _loses(lambda x, out: lt(x, out)))


def _scatter_vmap(primitive: Primitive) -> Callable[..., Any]:
    """Return the vmap rule of a scatter: every example has an operand of its own.

    The mapped axis is one more window axis if indices are the same for all examples, else a batching axis.
    """

    def rule(size: int, args: Any, dims: Any, *, dimension_numbers: Any, **params: Any) -> Any:
        operand, updates = [vmap.move_mapped_axis_first(args[k], dims[k], size) for k in (0, 2)]
        if dims[1] is None:
            indices, d = args[1], _numbers_later(dimension_numbers, 1, 1, 0)
            d = d._replace(update_window_dims=(0, *d.update_window_dims))
        else:
            indices, d = vmap.to_front(args[1], dims[1]), _batching(_numbers_later(dimension_numbers, 1, 1, 1))
        return primitive.bind(operand, indices, updates, dimension_numbers=d, **params), [0]

    return rule


for _primitive in (i.scatter_p, i.scatter_add_p, i.scatter_mul_p, i.scatter_min_p, i.scatter_max_p):
    vmap.rules[_primitive] = _scatter_vmap(_primitive)

# ---- one window per example ----------------------------------------------------------------------------------


def _dynamic_slice_vmap(size: int, args: Any, dims: Any, *, slice_sizes: tuple[int, ...]) -> Any:
    """Batch a dynamic_slice: add an axis to the window; if starts differ between examples, gather the windows."""
    (x, *starts), (dim, *start_dims) = args, dims
    starts, start_dims = _starts_that_matter(starts, start_dims, vmap.example_shape(x, dim), slice_sizes)
    if any(d is not None for d in start_dims):
        vectors, axes = _index_vectors(size, starts, start_dims)
        numbers = i.GatherDimensionNumbers(tuple(range(len(starts))), (), axes)
        params = {"dimension_numbers": numbers, "slice_sizes": slice_sizes, "fill_value": None, **_ONE_WINDOW}
        return _gather_vmap(size, [x, vectors], [dim, 0], **params)
    if dim is None:
        return (_cut(x, starts, slice_sizes),), [None]
    return (_cut(vmap.to_front(x, dim), (_ZERO, *starts), (size, *slice_sizes)),), [0]


def _dynamic_update_slice_vmap(size: int, args: Any, dims: Any) -> Any:
    """Batch a dynamic_update_slice: add an axis to the window; if starts differ, scatter the windows."""
    (x, update, *starts), (dim, update_dim, *start_dims) = args, dims
    shape, window = vmap.example_shape(x, dim), vmap.example_shape(update, update_dim)
    starts, start_dims = _starts_that_matter(starts, start_dims, shape, window)
    if any(d is not None for d in start_dims):
        vectors, axes = _index_vectors(size, starts, start_dims)
        numbers = i.ScatterDimensionNumbers(tuple(range(len(shape))), (), axes)
        given, given_dims = [x, vectors, update], [dim, 0, update_dim]
        return vmap.rules[i.scatter_p](size, given, given_dims, dimension_numbers=numbers, **_ONE_WINDOW)
    place = next((d for d in (dim, update_dim) if d is not None), 0)
    x, update = vmap.move_mapped_axis(x, dim, place, size), vmap.move_mapped_axis(update, update_dim, place, size)
    return (_put(x, update, (*starts[:place], _ZERO, *starts[place:])),), [place]


_ZERO = np.zeros((), np.int32)
_ONE_WINDOW = {"mode": i.GatherScatterMode.CLIP, "unique_indices": True, "indices_are_sorted": True}


def _starts_that_matter(
    starts: Sequence[Any], dims: Sequence[vmap.Dim], shape: tuple[int, ...], window: tuple[int, ...]
) -> tuple[list[Any], list[vmap.Dim]]:
    """Replace the starts of a window by 0 along axes that it spans, as clamping would; return starts, mapped axes."""
    spanned = [n == k for n, k in zip(shape, window)]
    return (
        [_ZERO if whole else x for x, whole in zip(starts, spanned)],
        [None if whole else d for d, whole in zip(dims, spanned)],
    )


def _index_vectors(size: int, starts: Sequence[Any], dims: Sequence[vmap.Dim]) -> tuple[Any, tuple[int, ...]]:
    """Stack starts into index vectors, one per example; return these, and the axes they index: not those that are 0."""
    axes = tuple([k for k, x in enumerate(starts) if x is not _ZERO])
    dtype = _index_dtype([aval_of(starts[k]).dtype for k in axes])
    scalars = [convert_element_type(starts[k], dtype) for k in axes]
    return i.stack_indices([vmap.move_mapped_axis_first(x, dims[k], size) for x, k in zip(scalars, axes)]), axes


def _index_dtype(found: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Return an integer dtype for indices of all these dtypes."""
    joined = np.result_type(*found)
    return joined if joined.kind in "iu" else np.dtype(np.int64)  # NumPy joins uint64 and a signed dtype to a float


vmap.rules[i.dynamic_slice_p] = _dynamic_slice_vmap
vmap.rules[i.dynamic_update_slice_p] = _dynamic_update_slice_vmap

# ---- index rows ----------------------------------------------------------------------------------------------
# Reads and writes at computed positions. A clamped start of a single window is a symbol. An array of positions is a
# lookup bracket, which holds for no index if the position is outside. The elements of an operand around an updated
# window are a term for each side of each axis, with the axes before it inside of the window.

_MODES = i.GatherScatterMode

# ---- index rows: one window ----------------------------------------------------------------------------------


def _starts(first: int, shape: Sequence[int], sizes: Sequence[int]) -> list[Affine]:
    """Make the symbols of the clamped starts, which are the operands from number `first` on."""
    return [symbol(first + d, 0, n - k) for d, (n, k) in enumerate(zip(shape, sizes))]


def _dynamic_slice_row(params: Params, avals: Avals) -> IndexRow:
    box, sizes = Box(), params["slice_sizes"]
    out = box.axes(sizes)
    return terms([box.term(out, Read(0, _sum(_starts(1, avals[0].shape, sizes), out)))])


def _sum(starts: Sequence[Affine], offsets: Access) -> Access:
    return tuple([a + b for a, b in zip(starts, offsets)])


def _dynamic_update_slice_row(params: Params, avals: Avals) -> IndexRow:
    x, update, box = avals[0], avals[1], Box()
    starts, k = _starts(2, x.shape, update.shape), box.axes(update.shape)
    around = _around(x.shape, starts, update.shape)
    kept = [elements([x], [0], lambda _, brackets=brackets: brackets) for brackets in around]
    return terms([box.term(_sum(starts, k), Read(1, k)), *kept])


def _around(shape: Sequence[int], starts: Sequence[Affine], sizes: Sequence[int]) -> Iterator[Sequence[Bracket]]:
    """Yield the brackets of each part of a box that is outside of a window: two parts for each axis."""
    inside: list[Bracket] = []
    for v, n, a, k in zip(Box().axes(shape), shape, starts, sizes):
        if k < n:
            yield [*inside, NotNegative(a - 1 - v)]
            yield [*inside, NotNegative(v - a - k)]
            inside += [NotNegative(v - a), NotNegative(a + k - 1 - v)]


rows[i.dynamic_slice_p], rows[i.dynamic_update_slice_p] = _dynamic_slice_row, _dynamic_update_slice_row

# ---- index rows: many windows --------------------------------------------------------------------------------


class _Windows:
    """The windows of a gather or scatter: `access` in the array of windows, and `places` in the operand.

    The variables are the axes of the array of windows, then a start for each axis that positions are given for.
    `brackets` equate these with the positions.
    """

    def __init__(self, params: Params, x: ShapedArray, windows: Sequence[int], sizes: Sequence[int]) -> None:
        self.box, d = Box(), params["dimension_numbers"]
        self.access = self.box.axes(windows)
        self._batch = tuple([v for k, v in enumerate(self.access) if k not in d[0]])
        self._last = [x.shape[axis] - sizes[axis] for axis in d[2]]
        self._clips = params["mode"] in (_MODES.CLIP, _MODES.PROMISE_IN_BOUNDS)  # clipping changes nothing in bounds
        starts = [self.box.axis(n + 1) for n in self._last]
        self.brackets = [self._lookup(k, start, (0, self._last[k])) for k, start in enumerate(starts)]
        self.places = self._in_operand(x.ndim, d, starts)

    def _lookup(self, k: int, index: Affine, limits: tuple[int, int]) -> Lookup:
        return Lookup(index, 1, (*self._batch, Affine(k)), limits if self._clips else None)

    def _in_operand(self, rank: int, d: DimensionNumbers, starts: Sequence[Affine]) -> Access:
        offsets = iter([self.access[k] for k in d[0]])
        found = [Affine() if axis in (*d[1], *d[3]) else next(offsets) for axis in range(rank)]
        for axis, start in zip(d[2], starts):
            found[axis] = found[axis] + start
        for axis, k in zip(d[3], d[4]):
            found[axis] = self._batch[k]
        return tuple(found)

    def filled(self, fill: Coefficient) -> Iterator[Term]:
        """Yield the terms that write `fill` for windows out of bounds, by the first such position; none if clipped."""
        for k, last in enumerate(self._last if not self._clips else ()):
            for beyond in (-1, last + 1):
                position = Lookup(Affine(beyond), 1, (*self._batch, Affine(k)), (-1, last + 1))
                sizes = self.box.sizes[: len(self.access) + k]  # with the starts before
                yield term(self.access, sizes, [], [*self.brackets[:k], position], fill)


def _gather_row(params: Params, avals: Avals) -> IndexRow:
    (x, indices), sizes = avals, params["slice_sizes"]
    shape = windows_shape(indices, params["dimension_numbers"], sizes)
    w = _Windows(params, x, shape, sizes)
    found = [w.box.term(w.access, Read(0, w.places), brackets=w.brackets)]
    fill = _fill_value(params, x)
    return terms([*found, *(w.filled(fill) if fill != 0 else ())])


def _fill_value(params: Params, x: ShapedArray) -> Coefficient:
    """Return the number that a gather fills in for windows out of bounds."""
    if params["mode"] is not _MODES.FILL_OR_DROP:
        return 0
    if params["fill_value"] is not None:
        return params["fill_value"]
    if dtypes.is_inexact(x.dtype):
        return _NAN
    if dtypes.is_bool(x.dtype) or dtypes.is_key(x.dtype):
        return 1 if dtypes.is_bool(x.dtype) else 2**32 - 1  # in both words of a key
    limits = dtypes.iinfo(x.dtype)
    return limits.min or limits.max


_NAN = float("nan")  # the same object each time, so that equal rows are equal


def _updates(params: Params, avals: Avals) -> Term:
    x, _, updates = avals
    w = _Windows(params, x, updates.shape, window_sizes(x, updates, params["dimension_numbers"]))
    return w.box.term(w.places, Read(2, w.access), brackets=w.brackets)


def _scatter_row(operation: str) -> Callable[[Params, Avals], IndexRow]:
    return lambda params, avals: monoid(operation, elements(avals[:1], [0]), _updates(params, avals))


rows[i.gather_p] = _gather_row
rows[i.scatter_add_p] = lambda params, avals: terms([elements(avals[:1], [0]), _updates(params, avals)])
for _primitive, _operation in (
    (i.scatter_p, "last"), (i.scatter_mul_p, "mul"), (i.scatter_min_p, "min"), (i.scatter_max_p, "max"),
):  # fmt: skip
    rows[_primitive] = _scatter_row(_operation)
