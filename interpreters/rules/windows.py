"""Rules of reductions over windows (pooling): sums are linear; extremes follow the element that was chosen.

Products are not linear, and select_and_gather_add takes no extremes of dilated windows or operands. For both,
windows are laid out along an axis of their own, and the derivative is that of the reduction over it.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import (
    Avals,
    Box,
    Combination,
    IndexRow,
    Params,
    monoid,
    rows,
    terms,
    window_index,
)
from tapeless.interpreters.rules.reduction import joined_last, product_of_last
from tapeless.interpreters.zero import Zero, zeros_of
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import windows as w
from tapeless.tracer.primitives.indexing import GatherDimensionNumbers, gather
from tapeless.tracer.primitives.reduction import argmax, argmin
from tapeless.tracer.primitives.shape import broadcasted_iota, concatenate, expand_dims, full, pad, reshape, squeeze
from tapeless.tracer.primitives.shape import slice as cut
from tapeless.tracer.primitives.sorting import take_along_axis
from tapeless.tracer.primitives.windows import dilate_size, select_and_gather_add, select_and_scatter_add
from tapeless.tracer.terms.affine import Access, Affine
from tapeless.tracer.terms.term import Bracket, Read, Term
from tapeless.tracer.types import ShapedArray, aval_of, exact

# ---- sum -----------------------------------------------------------------------------------------------------


def _reduce_window_sum_transpose(
    ct: Any,
    x: Any,
    *,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: w.Padding,
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
) -> Any:
    """Collect for every element from the windows it is in: a sum over windows of ct, dilated by the stride."""
    sizes = zip(x.aval.shape, base_dilation, aval_of(ct).shape, window_strides, window_dimensions, window_dilation)
    lengths = [(dilate_size(n, d), dilate_size(m, s), dilate_size(k, e)) for n, d, m, s, k, e in sizes]
    pairs = [(wide - 1 - lo, n + lo - m) for (n, m, wide), (lo, _) in zip(lengths, padding)]
    return w.reduce_window_sum(ct, window_dimensions, base_dilation, pairs, window_strides, window_dilation)


jvp.linear(w.reduce_window_sum_p)
transpose.unary(w.reduce_window_sum_p, _reduce_window_sum_transpose)

# ---- extremes ------------------------------------------------------------------------------------------------


def _reduce_window_extreme_jvp(select: str, fill: float) -> Callable[..., Any]:
    def row(t: Any, y: Any, x: Any, *, base_dilation: Any, window_dilation: Any, **window: Any) -> Any:
        if not aval_of(x).size or not aval_of(y).size:  # negative padding may cut more than there is off
            return Zero(aval_of(y))
        if set(base_dilation) | set(window_dilation) <= {1}:
            return select_and_gather_add(t, x, select, **window)
        dilations = {"base_dilation": base_dilation, "window_dilation": window_dilation}
        first = expand_dims((argmax if select == "ge" else argmin)(_laid_out(x, fill, **window, **dilations), 0), (0,))
        places = take_along_axis(_laid_out(_places(x), -1, **window, **dilations), first, 0)
        return _at(t, squeeze(places, (0,)))

    return row


def _places(x: Any) -> Any:
    """Number every element in row-major order."""
    aval = aval_of(x)
    dtype = np.int32 if aval.size <= np.iinfo(np.int32).max else np.int64
    return reshape(broadcasted_iota(dtype, (aval.size,), 0), aval.shape)


def _at(t: Any, places: Any) -> Any:
    """Gather the elements at `places`; 0 at places in the padding."""
    numbers = GatherDimensionNumbers((), (0,), (0,))
    index = expand_dims(places, (aval_of(places).ndim,))
    return gather(reshape(t, (aval_of(t).size,)), index, numbers, (1,), fill_value=0)


def _reduce_window_prod_jvp(primals: Any, tangents: Any, **window: Any) -> Any:
    (x,), (t,) = primals, tangents
    (aval,) = w.reduce_window_prod_p.type((aval_of(x),), window)
    if type(t) is Zero or not aval.size:  # negative padding may cut more than there is off
        out = w.reduce_window_prod_p.bind(x, **window)
        return out, zeros_of(out)
    edges = any(map(any, window["padding"])) or any(d > 1 for d in window["base_dilation"])
    moves = _elements_last(full(aval_of(x).shape, True, bool), False, **window) if edges else None
    y, ty = product_of_last(_elements_last(x, 1, **window), _elements_last(t, 0, **window), moves)
    return (y,), (ty,)


def _elements_last(x: Any, fill: float, **window: Any) -> Any:
    return joined_last(_laid_out(x, fill, **window), (0,))


def _laid_out(
    x: Any,
    fill: float,
    *,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: w.Padding,
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
) -> Any:
    """Lay out the elements of every window along a new first axis, in row-major order of the window."""
    aval = aval_of(x)
    edges = [(lo, hi, d - 1) for (lo, hi), d in zip(padding, base_dilation)]
    padded = pad(x, exact(fill, aval.dtype), edges)
    out = _windows_shape(aval, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    offsets = itertools.product(*[range(0, k * e, e) for k, e in zip(window_dimensions, window_dilation)])
    return concatenate([expand_dims(_every(padded, o, out, window_strides), (0,)) for o in offsets], 0)


def _windows_shape(aval: ShapedArray, *window: Any) -> tuple[int, ...]:
    return tuple(map(w.count, aval.shape, *window))


def _every(x: Any, start: tuple[int, ...], shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Slice `shape` elements of x, `strides` apart, from `start` on."""
    if not all(shape):
        start = tuple(0 for _ in shape)
    stop = [a + dilate_size(n, s) for a, n, s in zip(start, shape, strides)]
    return cut(x, start, stop, strides)


jvp.partials_of_result(w.reduce_window_max_p, _reduce_window_extreme_jvp("ge", -np.inf))
jvp.partials_of_result(w.reduce_window_min_p, _reduce_window_extreme_jvp("le", np.inf))
jvp.rules[w.reduce_window_prod_p] = _reduce_window_prod_jvp

# ---- by the position of an extreme ---------------------------------------------------------------------------


def _select_and_gather_add_transpose(ct: Any, tangents: Any, x: Any, **params: Any) -> Any:
    return select_and_scatter_add(ct, x, **params)


def _select_and_scatter_add_transpose(ct: Any, source: Any, x: Any, **params: Any) -> Any:
    return select_and_gather_add(ct, x, **params)


jvp.linear_in(w.select_and_gather_add_p, 0)
jvp.linear_in(w.select_and_scatter_add_p, 0)
transpose.multilinear(w.select_and_gather_add_p, _select_and_gather_add_transpose, transpose.no_transpose)
transpose.multilinear(w.select_and_scatter_add_p, _select_and_scatter_add_transpose, transpose.no_transpose)

# ---- vmap: along the mapped axis a window of one element -------------------------------------------------------

_ONE = {"window_dimensions": 1, "window_strides": 1, "padding": (0, 0), "base_dilation": 1, "window_dilation": 1}


def _windowed_vmap(primitive: Primitive) -> None:
    def rule(size: int, args: Any, dims: Any, **params: Any) -> Any:
        given, d = vmap.together(size, args, dims)
        wider = {k: (*params[k][:d], one, *params[k][d:]) for k, one in _ONE.items() if k in params}
        return primitive.bind(*given, **{**params, **wider}), [d]

    vmap.rules[primitive] = rule


for _primitive in (w.reduce_window_sum_p, w.reduce_window_prod_p, w.reduce_window_max_p, w.reduce_window_min_p):
    _windowed_vmap(_primitive)
for _primitive in (w.select_and_gather_add_p, w.select_and_scatter_add_p):
    _windowed_vmap(_primitive)

# ---- index rows ----------------------------------------------------------------------------------------------
# Window o reads at its offset k the element stride o + dilation k - padding.


def _elements(box: Box, params: Params, x: ShapedArray, out: Access) -> tuple[Access, list[Bracket]]:
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
    access, brackets = _elements(box, params, x, out)
    return box.term(out, Read(operand, access), brackets=brackets)


def _monoid_row(operation: str) -> Callable[[Params, Avals], IndexRow]:
    return lambda params, avals: monoid(operation, _windowed(params, avals))


def _select_and_gather_add_row(params: Params, avals: Avals) -> IndexRow:
    """Make the index row: an element is a function of both operands in its window."""
    return IndexRow(Combination.CORE, (tuple([_windowed(params, avals, k) for k in (0, 1)]),))


def _select_and_scatter_add_row(params: Params, avals: Avals) -> IndexRow:
    """Make the index row: an element reads the sources of all windows around it, and the operand in these windows."""
    x = avals[1]
    box = Box()
    o = box.axes(_counts(params, x))
    out, inside = _elements(box, params, x, o)
    source = box.term(out, Read(0, o), brackets=inside)
    access, more = _elements(box, params, x, o)
    return IndexRow(Combination.CORE, ((source, box.term(out, Read(1, access), brackets=[*inside, *more])),))


rows[w.reduce_window_sum_p] = lambda params, avals: terms([_windowed(params, avals)])
rows[w.reduce_window_prod_p], rows[w.reduce_window_max_p] = _monoid_row("mul"), _monoid_row("max")
rows[w.reduce_window_min_p] = _monoid_row("min")
rows[w.select_and_gather_add_p] = _select_and_gather_add_row
rows[w.select_and_scatter_add_p] = _select_and_scatter_add_row
