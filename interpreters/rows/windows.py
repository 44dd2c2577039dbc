"""Index rows of window reductions: window o reads at its offset k the element stride o + dilation k - padding."""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.interpreters.index_rows import Box, Combination, IndexRow, Params, monoid, rows, terms
from tapeless.tracer.primitives import windows as w
from tapeless.tracer.terms.affine import Access, Affine
from tapeless.tracer.terms.term import Bracket, IsZero, NotNegative, Read, Term
from tapeless.tracer.types import ShapedArray

Avals = Sequence[ShapedArray]


def window_index(box: Box, place: Affine, n: int, base: int) -> tuple[Affine, list[Bracket]]:
    """Return the index of the element at a place of an axis, and the brackets that hold if there is one.

    The axis has `n` elements, `base` apart.
    """
    if base == 1:
        return place, [NotNegative(place), NotNegative(n - 1 - place)]
    element = box.axis(n)
    return element, [IsZero(place - base * element)]


def _places(box: Box, params: Params, x: ShapedArray, out: Access) -> tuple[Access, list[Bracket]]:
    """Return the access of an array in the windows of a result at `out`, and the brackets that hold inside of it."""
    found, brackets = list[Affine](), list[Bracket]()
    for n, o, k, stride, (low, _), base, dilation in zip(x.shape, out, *_by_axis(params, x)):
        element, more = window_index(box, stride * o + dilation * box.axis(k) - low, n, base)
        found.append(element)
        brackets += more
    return tuple(found), brackets


def _counts(params: Params, x: ShapedArray) -> list[int]:
    """Count the positions of the window along each axis."""
    return list(map(w.count, x.shape, *_by_axis(params, x)))


def _by_axis(params: Params, x: ShapedArray) -> list[Sequence[Any]]:
    """List sizes, strides, padding and dilations of a window, each with an item for each axis."""
    ones = (1,) * x.ndim
    given = [params[name] for name in ("window_dimensions", "window_strides", "padding")]
    return [*given, *[params.get(name, ones) for name in ("base_dilation", "window_dilation")]]


def _windowed(params: Params, avals: Avals, operand: int = 0) -> Term:
    box, x = Box(), avals[operand]
    out = box.axes(_counts(params, x))
    access, brackets = _places(box, params, x, out)
    return box.term(out, Read(operand, access), brackets=brackets)


def _monoid(operation: str) -> Callable[[Params, Avals], IndexRow]:
    return lambda params, avals: monoid(operation, _windowed(params, avals))


def _select_and_gather_add(params: Params, avals: Avals) -> IndexRow:
    """Make the index row: an element is a function of both operands in its window."""
    return IndexRow(Combination.CORE, (tuple([_windowed(params, avals, k) for k in (0, 1)]),))


def _select_and_scatter_add(params: Params, avals: Avals) -> IndexRow:
    """Make the index row: an element reads the sources of all windows around it, and the operand in these windows."""
    x = avals[1]
    box = Box()
    o = box.axes(_counts(params, x))
    out, inside = _places(box, params, x, o)
    source = box.term(out, Read(0, o), brackets=inside)
    access, more = _places(box, params, x, o)
    return IndexRow(Combination.CORE, ((source, box.term(out, Read(1, access), brackets=[*inside, *more])),))


rows[w.reduce_window_sum_p] = lambda params, avals: terms([_windowed(params, avals)])
rows[w.reduce_window_prod_p], rows[w.reduce_window_max_p] = _monoid("mul"), _monoid("max")
rows[w.reduce_window_min_p] = _monoid("min")
rows[w.select_and_gather_add_p], rows[w.select_and_scatter_add_p] = _select_and_gather_add, _select_and_scatter_add
