"""Index rows of dynamic slices, gathers and scatters: reads and writes at computed positions.

A clamped start of a single window is a symbol. An array of positions is a lookup bracket, which holds for no index if
the position is outside. The elements of an operand around an updated window are a term for each side of each axis, with
the axes before it inside of the window.
"""

from collections.abc import Callable, Iterator, Sequence

from tapeless.interpreters.index_rows import Box, IndexRow, Params, elements, monoid, rows, terms
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.dimension_numbers import DimensionNumbers, window_sizes, windows_shape
from tapeless.tracer.terms.affine import Access, Affine, symbol
from tapeless.tracer.terms.term import Bracket, Coefficient, Lookup, NotNegative, Read, Term, term
from tapeless.tracer.types import ShapedArray

Avals = Sequence[ShapedArray]
_MODES = i.GatherScatterMode

# ---- one window ----------------------------------------------------------------------------------------------


def _starts(first: int, shape: Sequence[int], sizes: Sequence[int]) -> list[Affine]:
    """Make the symbols of the clamped starts, which are the operands from number `first` on."""
    return [symbol(first + d, 0, n - k) for d, (n, k) in enumerate(zip(shape, sizes))]


def _dynamic_slice(params: Params, avals: Avals) -> IndexRow:
    box, sizes = Box(), params["slice_sizes"]
    out = box.axes(sizes)
    return terms([box.term(out, Read(0, _sum(_starts(1, avals[0].shape, sizes), out)))])


def _sum(starts: Sequence[Affine], offsets: Access) -> Access:
    return tuple([a + b for a, b in zip(starts, offsets)])


def _dynamic_update_slice(params: Params, avals: Avals) -> IndexRow:
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


rows[i.dynamic_slice_p], rows[i.dynamic_update_slice_p] = _dynamic_slice, _dynamic_update_slice

# ---- many windows --------------------------------------------------------------------------------------------


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


def _gather(params: Params, avals: Avals) -> IndexRow:
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


def _scatter(operation: str) -> Callable[[Params, Avals], IndexRow]:
    return lambda params, avals: monoid(operation, elements(avals[:1], [0]), _updates(params, avals))


rows[i.gather_p] = _gather
rows[i.scatter_add_p] = lambda params, avals: terms([elements(avals[:1], [0]), _updates(params, avals)])
for _primitive, _operation in (
    (i.scatter_p, "last"), (i.scatter_mul_p, "mul"), (i.scatter_min_p, "min"), (i.scatter_max_p, "max"),
):  # fmt: skip
    rows[_primitive] = _scatter(_operation)
