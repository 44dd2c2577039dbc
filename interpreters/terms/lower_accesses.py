"""Write reads and writes at any affine access as operations: strided views where possible, else windows or gathers.

Search terms: im2col, Toeplitz matrix, overlap-add, gather, scatter. An access that `accesses.py` decomposes is a view
(`lower_views.py`). Otherwise, in this order: symbols become the starts of a dynamic slice; an array is padded along the
axes that an index leaves where brackets fail; windows `x[s i + d j]` are read from copies of the array end to end, cut
into rows that are longer than a copy, so that each begins d elements later. The remaining accesses are gathers: those
with symbols that may leave the array, or with too large a padding. A write is the transpose of a read.
"""

from collections.abc import Sequence
from math import prod

from tapeless.interpreters import limits
from tapeless.interpreters.terms.accesses import DigitAxis, axes_of
from tapeless.interpreters.terms.index_arrays import WIDE, SymbolValue, gather, index_array, index_dtype
from tapeless.interpreters.terms.lower_views import Order, arrange_axes, cut, pad_value, read_view
from tapeless.interpreters.transpose import backward
from tapeless.interpreters.writer import Writer, literal
from tapeless.interpreters.zero import instantiate
from tapeless.tracer.jaxpr import Atom, Jaxpr, Var
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.dimension_numbers import GatherDimensionNumbers
from tapeless.tracer.primitives.indexing import GatherScatterMode, dynamic_slice_p
from tapeless.tracer.primitives.reduction import reduce_sum_p
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.terms.affine import Access, Affine, Symbol, Variable, variable
from tapeless.tracer.terms.term import variables_in, variables_of

_UNBOUNDED = 1 << 62


class Accesses:
    """The writer of reads and writes at accesses, over variables of these sizes.

    value: returns the value of a symbol. outside: how a gather reads out of bounds.
    """

    def __init__(
        self, w: Writer, sizes: Sequence[int], value: SymbolValue, outside: GatherScatterMode = GatherScatterMode.CLIP
    ) -> None:
        self._w, self._sizes, self._value, self._outside = w, sizes, value, outside

    # reading

    def read(self, x: Atom, access: Access) -> tuple[Atom, Order]:
        """Write a read of an array at an access, arbitrary out of bounds; return it with the variable of each axis."""
        axes = axes_of(access, x.aval.shape, self._sizes)
        return self._copied(x, access) if axes is None else read_view(self._w, x, axes, self._sizes)

    def _copied(self, x: Atom, access: Access) -> tuple[Atom, Order]:
        """Write a read that is no view of the array."""
        if any(a.symbols for a in access):
            if not all(self._stays_inside(a, n) for a, n in zip(access, x.aval.shape) if a.symbols):
                return self._gathered(x, access)
            x, access = self._sliced(x, access)
        is_view = all(_digits(a, self._sizes) is not None for a in access)
        flat = None if is_view else self._flat(access, x.aval.shape)
        if flat is not None:
            x, access = self._w.write(s.reshape_p, x, shape=(x.aval.size,)), (flat,)
        around = _around(access, x.aval.shape, self._sizes)
        if any(map(any, around)):
            own = x.aval.size + self._box(access)
            if limits.PADDING.is_passed(_size(x.aval.shape, around), self._w.source, unit=own):
                return self._gathered(x, access)
            x = pad_value(self._w, x, [(low, high, 0) for low, high in around], literal(0, x.aval))
            access = tuple([a + low for a, (low, _) in zip(access, around)])
        while (axes := axes_of(access, x.aval.shape, self._sizes)) is None:
            x, access = self._windows(x, access)
        return read_view(self._w, x, axes, self._sizes)

    def _flat(self, access: Access, shape: Sequence[int]) -> Affine | None:
        """Return the flat position of an access whose axes share variables; None if its digits overlap.

        Where an index leaves its axis, it is the position of another element.
        """
        if sum(len(a.variables) for a in access) == len(_variables(access)):
            return None
        flat = Affine()
        for a, n in zip(access, shape):
            flat = n * flat + a
        return flat if _digits(flat, self._sizes) is not None else None

    def _stays_inside(self, a: Affine, n: int) -> bool:
        low, high = a.bounds(self._sizes)
        return low >= 0 and high < n

    def _box(self, access: Access) -> int:
        return prod([self._sizes[v] for v in _variables(access)])

    def _sliced(self, x: Atom, access: Access) -> tuple[Atom, Access]:
        """Write the dynamic slice that starts at the symbols; return it with the access within it."""
        windows = [self._window(a, n) for a, n in zip(access, x.aval.shape)]
        sizes = tuple([size for _, size, _ in windows])
        x = self._w.write(dynamic_slice_p, x, *[start for start, _, _ in windows], slice_sizes=sizes)
        return x, tuple([inner for _, _, inner in windows])

    def _window(self, a: Affine, n: int) -> tuple[Atom, int, Affine]:
        """Return the start and the size of the window along an axis, and the index within it; all without symbols."""
        if not a.symbols:
            return self._index(Affine()), n, a
        moving = Affine(a.constant, a.variables)
        low, high = moving.bounds(self._sizes)
        return self._index(Affine(low, (), a.symbols)), high - low + 1, moving - low

    def _index(self, a: Affine) -> Atom:
        """Write an index without variables as a scalar, in the same dtype for all axes."""
        return index_array(self._w, a, (), (), WIDE, self._value)

    def _windows(self, x: Atom, access: Access) -> tuple[Atom, Access]:
        """Copy an array along a new axis, for a variable of overlapping windows; return the copies and their access."""
        d, v = self._overlapping(access, x.aval.shape)
        a, w = access[d], self._w
        n, step, turned = self._sizes[v], abs(a.coefficient(v)), a.coefficient(v) < 0
        low, high, rest = self._rest(a, v)
        length = high - low + 1 + step * (n - 1)
        x = cut(w, x, d, low - (step * (n - 1) if turned else 0), length)
        before, after = x.aval.shape[:d], x.aval.shape[d + 1 :]
        others = [k + (k >= d) for k in range(x.aval.ndim)]
        x = w.write(s.broadcast_in_dim_p, x, shape=(*before, n, length, *after), dims=tuple(others))
        x = w.write(s.reshape_p, x, shape=(*before, n * length, *after))
        x = pad_value(w, x, [(0, n * step if k == d else 0, 0) for k in range(x.aval.ndim)], literal(0, x.aval))
        x = w.write(s.reshape_p, x, shape=(*before, n, length + step, *after))
        x = cut(w, x, d + 1, 0, high - low + 1)
        x = w.write(s.rev_p, x, dimensions=(d,)) if turned else x
        return x, (*access[:d], variable(v), rest - low, *access[d + 1 :])

    def _rest(self, a: Affine, v: Variable) -> tuple[int, int, Affine]:
        """Remove a variable from an index; return the bounds of the rest, and the rest."""
        rest = a.without(v)
        return *rest.bounds(self._sizes), rest

    def _overlapping(self, access: Access, shape: Sequence[int]) -> tuple[int, Variable]:
        """Find an axis with overlapping digits, and the variable of least range without which they do not overlap."""
        d = next(d for d, (a, n) in enumerate(zip(access, shape)) if axes_of((a,), (n,), self._sizes) is None)
        found = sorted(variables_of(access[d]), key=lambda v: self._sizes[v])
        for v in found:
            low, high, rest = self._rest(access[d], v)
            if axes_of((rest - low,), (high - low + 1,), self._sizes) is not None:
                return d, v
        return d, found[0]

    def _gathered(self, x: Atom, access: Access) -> tuple[Atom, Order]:
        order, every = _variables(access), tuple(range(x.aval.ndim))
        numbers = GatherDimensionNumbers((), every, every, (), ())
        return gather(self._w, x, self._positions(access, order), numbers, (1,) * x.aval.ndim, self._outside), order

    def _positions(self, access: Access, order: Order) -> list[Atom]:
        """Write each index of an access, in one dtype, for all values of the variables in `order`."""
        shape = tuple([self._sizes[v] for v in order])
        dtype = max([index_dtype(a, order, shape) for a in access], key=lambda dtype: dtype.itemsize)
        return [index_array(self._w, a, order, shape, dtype, self._value) for a in access]

    # writing

    def is_place(self, access: Access, shape: Sequence[int]) -> bool:
        """Tell whether an access can be written as a view of a result: axes may share a variable only as a diagonal."""
        every = [v for a in access for v in variables_of(a)]
        alone = all(len(a.variables) == 1 for a in access if any(every.count(v) > 1 for v in variables_of(a)))
        return alone and all(axes_of((a,), (n,), self._sizes) is not None for a, n in zip(access, shape))

    def written(self, x: Atom, order: Order, access: Access, shape: tuple[int, ...]) -> Atom:
        """Write the sum, into zeros of this shape, of elements with axes `order` at an access: the transpose of a read.

        Elements out of bounds are dropped.
        """
        source = Var(x.aval.update(shape=shape), linear=True)
        symbols = dict[Symbol, Var]()

        def value(s: Symbol) -> Atom:
            return symbols.setdefault(s, Var(self._value(s).aval))

        reading = Writer(Jaxpr([source], [], [source], "read"))
        found, axes = Accesses(reading, self._sizes, value, GatherScatterMode.FILL_OR_DROP).read(source, access)
        read = Jaxpr([*symbols.values(), source], reading.eqns, [found], "read")
        avals = [v.aval for v in (found, *symbols.values())]
        writing = trace_closed(lambda ct, *symbols: list(map(instantiate, backward(read, symbols, [ct]))), avals)
        same = tuple([d for d, v in enumerate(order) if v not in axes])  # elements of one place, which are added up
        x = self._w.write(reduce_sum_p, x, axes=same) if same else x
        x = arrange_axes(self._w, x, tuple([v for v in order if v in axes]), axes, self._sizes)
        return self._w.inlined(writing, [x, *map(self._value, symbols)])[0]


def _variables(access: Access) -> Order:
    return tuple(sorted(variables_in(access)))


def _around(access: Access, shape: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return how many elements of padding each index needs below and above its axis, for all values of its digits."""
    return [_beyond(a, n, sizes) for a, n in zip(access, shape, strict=True)]


def _beyond(a: Affine, n: int, sizes: Sequence[int]) -> tuple[int, int]:
    low, high = a.bounds(sizes)
    digits = _digits(a, sizes)
    stop = high + 1 if digits is None else max(high + 1, digits.stop + min(low, 0))
    return max(-low, 0), max(stop - n, 0)


def _digits(a: Affine, sizes: Sequence[int]) -> DigitAxis | None:
    """Decompose an index, shifted to be at least 0, into digits; None if they overlap."""
    found = axes_of((a - min(a.bounds(sizes)[0], 0),), (_UNBOUNDED,), sizes)
    return None if found is None else found[0]


def _size(shape: Sequence[int], around: Sequence[tuple[int, int]]) -> int:
    return prod([low + n + high for n, (low, high) in zip(shape, around)])
