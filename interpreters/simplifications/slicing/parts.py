"""Parts of results: how an equation computes a view of its result from views of its operands, by its index row.

Search terms: image of an access, tiling of producers, dead elements. A view of an equation that only moves elements
reads the operands directly: a part of a concatenation is a part of one of them. Elementwise functions, sums and
products are applied to parts as they were to the whole; other functions to parts along their batch axes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.index_rows import Combination, IndexRow, index_row, is_elementwise
from tapeless.interpreters.simplifications.common_subexpressions import FENCES
from tapeless.interpreters.terms.accesses import DigitAxis, axes_of
from tapeless.interpreters.terms.index_arrays import index_array
from tapeless.interpreters.terms.lower_views import Order, arrange_axes, place_in_box, read_view
from tapeless.interpreters.terms.tiles import Box, fills_box, whole_box, written_box
from tapeless.interpreters.writer import Writer, fill_array, literal
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Literal
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.ein import ein_p, reduce_terms
from tapeless.tracer.primitives.indexing import dynamic_slice_p, dynamic_update_slice_p
from tapeless.tracer.primitives.operands import argsort, without
from tapeless.tracer.terms.affine import Access, Affine, Symbol, Variable, symbol, variables
from tapeless.tracer.terms.map import (
    Map,
    Shape,
    compose_with_term,
    find_box,
    identity_map,
    make_view,
    view_along_variables,
)
from tapeless.tracer.terms.solve import solve_term, substitute_sum
from tapeless.tracer.terms.term import Lookup, Sum, Term, looked_up, term, variables_of
from tapeless.tracer.types import ShapedArray

VIEWS = frozenset((s.slice_p, s.reshape_p, s.transpose_p, dynamic_slice_p))  # they only read one operand
FREE = VIEWS | {s.broadcast_in_dim_p, s.iota_p, s.concatenate_p, s.pad_p, s.rev_p, dynamic_update_slice_p}
_OVER = frozenset((s.pad_p, dynamic_update_slice_p))  # the first term of their rows is written over the others
_REDUCTIONS = frozenset((
    r.reduce_sum_p, r.reduce_prod_p, r.reduce_max_p, r.reduce_min_p, r.reduce_and_p, r.reduce_or_p, r.reduce_xor_p,
))  # fmt: skip
_SUMS = _REDUCTIONS | {dot_general_p}
_SCALAR = identity_map(())
_INDEX = ShapedArray((), np.dtype(np.int32))


# ---- views ---------------------------------------------------------------------------------------------------


class Starts:
    """The unknown window starts of one program, numbered: symbols of views are these numbers."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []

    def number_starts(self, eqn: Equation, t: Term) -> Term:
        """Renumber the symbols of a term of an equation as starts; literal starts become constants."""
        if not looked_up(t):
            return t

        def at(a: Affine) -> Affine:
            return sum(
                [c * self._start(eqn.invars[s.operand], s) for s, c in a.symbols], Affine(a.constant, a.variables)
            )

        return t.with_indices(at)

    def _start(self, x: Atom, s: Symbol) -> Affine:
        if type(x) is Literal:
            return Affine(min(max(int(x.value), s.low), s.high))
        if x not in self.atoms:
            self.atoms.append(x)
        return symbol(self.atoms.index(x), s.low, s.high)


def is_readable(view: Map) -> bool:
    """Tell whether `read_part` has operations for a view."""
    return _axes(view) is not None


def read_part(w: Writer, x: Atom, view: Map, starts: Sequence[Atom]) -> Atom:
    """Write the operations that read a view of a value: first a dynamic slice, if it has windows.

    Args:
      starts: the window starts, by their numbers.
    Raises: ValueError unless `is_readable` holds.
    """
    axes = _axes(view)
    if axes is None:
        raise ValueError(f"read: no operations are known for {view} of {x.aval}.")
    symbols = [next((starts[s.operand] for s, _ in a.symbols), None) for a in view.access]
    index = next((start.aval for start in symbols if start is not None), None)
    if index is not None:
        first = [literal(0, index) if start is None else start for start in symbols]
        x = w.write(dynamic_slice_p, x, *first, slice_sizes=tuple([a.size for a in axes]))
    x, order = read_view(w, x, axes, view.shape)
    return spread(w, x, order, view.shape)


def spread(w: Writer, x: Atom, order: Order, shape: Shape) -> Atom:
    """Broadcast a value to a shape; its axes are the axes `order` of that."""
    return arrange_axes(w, x, order, tuple(range(len(shape))), shape)


def _axes(view: Map) -> tuple[DigitAxis, ...] | None:
    """Return the digits of a view along each axis of the windows of a value; None if no operations read it."""
    if not view.has_symbols:
        return axes_of(view.access, view.of, view.shape)
    windows = [_window(a, n) for a, n in zip(view.access, view.of)]
    inside = tuple([Affine(a.constant, a.variables) for a in view.access])
    return None if None in windows else axes_of(inside, tuple(windows), view.shape)  # type: ignore[arg-type]


def _window(a: Affine, n: int) -> int | None:
    """Return the size of the window that an index reads in; None if its start is more than one symbol.

    A window of this size is clamped as the start itself is.
    """
    if not a.symbols:
        return n
    (s, c), *others = a.symbols
    return n - s.high if not others and c == 1 and s.low == 0 else None


# ---- parts of results ----------------------------------------------------------------------------------------


class ResultPart(NamedTuple):
    """A way to compute a part of a result: views of operands, by their numbers, and the function that joins them."""

    views: Mapping[int, Map]
    write: Callable[..., Atom] | None = None  # write(writer, *parts) -> the part; None if it is the only view itself
    computed: int = 0  # number of elements that are computed, if more than the part has

    def written(self, w: Writer, parts: Sequence[Atom]) -> Atom:
        """Write the part from the views of the operands."""
        return parts[0] if self.write is None else self.write(w, *parts)


def is_fused(eqn: Equation) -> bool:
    """Tell whether XLA computes an equation in the kernels that read it, so that nearly all of it is no copy."""
    if eqn.primitive in FREE or eqn.primitive in _REDUCTIONS:
        return eqn.primitive is not dynamic_update_slice_p  # which is computed in place
    row = index_row(eqn)
    return row is not None and len(row.results) == 1 and is_elementwise(row.results[0])


def restrict(eqn: Equation, view: Map, starts: Starts) -> ResultPart | None:
    """Restrict an equation to a view of its only result; None if it is not computed in parts.

    The view is composed with the terms of the index row: they then read parts of the operands. The primitive is applied
    to these parts again, along the axes that its terms sum over; elements that only move are written in place.
    """
    row = index_row(eqn) if eqn.primitive not in FENCES and view.size else None
    if row is None or len(row.results) != 1:
        return None
    (terms,) = row.results
    if eqn.primitive is s.iota_p:
        return _iota(eqn, view)
    if eqn.primitive is ein_p:
        return None if view.has_symbols else _summed(eqn, view, terms)
    is_free = eqn.primitive in FREE
    if not is_free and eqn.primitive not in _SUMS:
        return _elementwise(eqn, view, row) or _batched(eqn, view, terms, starts)
    every = [starts.number_starts(eqn, t) for t in (terms[:1] if eqn.primitive in _OVER else terms)]
    found = [compose_with_term(view, t) for t in every if _meets(t, view)]
    if None in found:
        return None
    return (_moved if is_free else _again)(eqn, view, [_view_term(eqn, t) for own in found for t in own or ()])


def _meets(t: Term, view: Map) -> bool:
    """Tell whether a term may write what a view reads, by the bounds of both along each axis: a quick test."""
    read = _bounds(view.access, view.shape)
    return all(low <= end and start <= high for (low, high), (start, end) in zip(_bounds(t.out, t.sizes), read))


@lru_cache(maxsize=4096)
def _bounds(access: Access, sizes: Sequence[int]) -> Sequence[tuple[int, int]]:
    return [a.bounds(sizes) for a in access]


class _ViewTerm(NamedTuple):
    """A term that writes a view: for each factor the part that it reads, and the variable of each axis of that."""

    term: Term
    parts: tuple[tuple[Map, Order], ...]

    def place(self, shape: Shape) -> tuple[DigitAxis, ...] | None:
        """Return the digits of the result along each axis; None if a variable longer than 1 has no digit."""
        axes, sizes = axes_of(self.term.out, shape, self.term.sizes), self.term.sizes
        written = sorted([d.variable for a in axes or () for d in a.digits])
        return axes if written == [v for v, n in enumerate(sizes) if n != 1] else None

    def put(self, w: Writer, x: Atom, axes: Sequence[DigitAxis], box: Box, around: Atom | None = None) -> Atom:
        """Write the part that the only factor reads into its place in a box, padded with the number `around`."""
        digits, sizes = tuple([d.variable for a in axes for d in a.digits]), self.term.sizes
        return place_in_box(w, arrange_axes(w, x, self.parts[0][1], digits, sizes), axes, sizes, box, around)


def _view_term(eqn: Equation, t: Term) -> _ViewTerm:
    parts = [view_along_variables(f.access, t.sizes, eqn.invars[f.operand].aval.shape) for f in t.factors]
    return _ViewTerm(t, tuple(parts))


# ---- movement ------------------------------------------------------------------------------------------------


def _moved(eqn: Equation, view: Map, pieces: Sequence[_ViewTerm]) -> ResultPart | None:
    """Read the operands of an equation that moves elements where they are written into the view, each in its place."""
    shape = view.shape
    if not pieces:  # the padding number, or the array that is updated
        return _spread(1, _SCALAR, (), shape) if eqn.primitive is s.pad_p else ResultPart({0: view})
    if len(pieces) == 1 and pieces[0].term.out == variables(shape):
        (f,), ((part, order),) = pieces[0].term.factors, pieces[0].parts
        is_all = f.access != () and len(order) == len([n for n in shape if n != 1])  # a scalar may be a literal
        if is_all:
            return ResultPart({f.operand: make_view(f.access, part.of, shape)})
        return _spread(f.operand, part, order, shape)
    places = [axes for p in pieces if (axes := p.place(shape)) is not None]
    if len(places) < len(pieces):
        return None
    return _over(eqn, view, pieces[0], places[0]) if eqn.primitive in _OVER else _joined(pieces, places, shape)


def _spread(operand: int, part: Map, order: Order, shape: Shape) -> ResultPart:
    return ResultPart({operand: part}, lambda w, x: spread(w, x, order, shape))


def _over(eqn: Equation, view: Map, piece: _ViewTerm, axes: Sequence[DigitAxis]) -> ResultPart | None:
    """Write one piece into padding, or over the view of an updated array; None if it does not fill its box there."""
    part, whole = piece.parts[0][0], whole_box(view.shape)
    if eqn.primitive is s.pad_p:
        return ResultPart({0: part, 1: _SCALAR}, lambda w, x, number: piece.put(w, x, axes, whole, number))
    if not fills_box(axes, piece.term.sizes):
        return None
    box = written_box(axes)
    starts = [literal(low, _INDEX) for low, _ in box]
    write = lambda w, x, u: w.write(dynamic_update_slice_p, x, piece.put(w, u, axes, box), *starts)  # noqa: E731
    return ResultPart({0: view, 1: part}, write)


def _joined(pieces: Sequence[_ViewTerm], places: Sequence[Sequence[DigitAxis]], shape: Shape) -> ResultPart | None:
    """Concatenate pieces that fill their boxes side by side along one axis; None for other pieces."""
    boxes = [written_box(axes) for axes in places]
    apart = [d for d, n in enumerate(shape) if any(box[d] != (0, n) for box in boxes)] or [0]
    if len(apart) > 1 or not all(fills_box(axes, p.term.sizes) for p, axes in zip(pieces, places)):
        return None

    def write(w: Writer, *xs: Atom) -> Atom:
        order = argsort([box[apart[0]][0] for box in boxes])
        put = [pieces[k].put(w, xs[k], places[k], boxes[k]) for k in order]
        return w.write(s.concatenate_p, *put, dimension=apart[0])

    return ResultPart({p.term.factors[0].operand: p.parts[0][0] for p in pieces}, write)


# ---- functions of elements, sums, products -------------------------------------------------------------------


def _elementwise(eqn: Equation, view: Map, row: IndexRow) -> ResultPart | None:
    """Apply an elementwise function to the same view of each operand; None for others, or with params for axes."""
    if row.combination is not Combination.POINTWISE and any(isinstance(p, tuple) for p in eqn.params.values()):
        return None
    if not is_elementwise(row.results[0]):
        return None
    views = {k: view if x.aval.shape else _SCALAR for k, x in enumerate(eqn.invars)}
    return ResultPart(views, lambda w, *xs: w.write(eqn.primitive, *xs, **eqn.params))


def _again(eqn: Equation, view: Map, pieces: Sequence[_ViewTerm]) -> ResultPart | None:
    """Sum, reduce or contract the parts of operands, along the variables that are not axes of the view."""
    if not pieces or 0 in pieces[0].term.sizes:
        return None
    (piece,), rank = pieces, len(view.shape)
    orders = [order for _, order in piece.parts]
    summed = {v for order in orders for v in order if v >= rank}
    params, kept = _along(eqn, orders, summed)

    def write(w: Writer, *xs: Atom) -> Atom:
        is_idle = len(orders) == 1 and not summed
        x = xs[0] if is_idle else w.write(eqn.primitive, *xs, **eqn.params | params)
        return spread(w, x, kept, view.shape)

    return ResultPart({k: part for k, (part, _) in enumerate(piece.parts)}, write)


def _along(eqn: Equation, orders: Sequence[Order], summed: Collection[Variable]) -> tuple[dict[str, Any], Order]:
    """Return the params of a reduction or contraction over some variables, and the variables of its result."""
    if eqn.primitive is not dot_general_p:
        (order,) = orders
        axes = tuple([d for d, v in enumerate(order) if v in summed])
        return {"axes": axes}, without(order, axes)
    x, y = orders
    both = [v for v in x if v in y]
    over, batch = [v for v in both if v in summed], [v for v in both if v not in summed]
    dims = tuple([tuple([tuple(map(own.index, some)) for own in orders]) for some in (over, batch)])
    return {"dimension_numbers": dims}, (*batch, *[v for v in (*x, *y) if v not in both])


def from_boxes(eqn: Equation, operands: Collection[int]) -> ResultPart:
    """Compute an `ein` from the boxes around all that it reads of these operands, and from all of the others."""
    view = identity_map(eqn.outvars[0].aval.shape)
    return _summed(eqn, view, eqn.params["terms"], operands)


def read_in_boxes(eqn: Equation) -> tuple[int, ...]:
    """Return the operands of an `ein` of which it reads a smaller box."""
    shapes = [x.aval.shape for x in eqn.invars]
    return tuple([k for k, n in enumerate(shapes) if _box(eqn.params["terms"], k, n).shape != n])


def _summed(eqn: Equation, view: Map, terms: Sum, operands: Collection[int] | None = None) -> ResultPart:
    """Restrict the terms of an `ein` to the view, and operands, or all, to the box around all that they read of it."""
    aval, precision = eqn.outvars[0].aval.update(shape=view.shape), eqn.params["precision"]
    read = reduce_terms(substitute_sum(view.term, 0, terms), [x.aval for x in eqn.invars], view.shape, aval.dtype)
    given = [eqn.invars[k].aval for k in read.operands]
    boxes = [_box(read.terms, k, x.shape) if operands is None or read.operands[k] in operands else identity_map(x.shape)
             for k, x in enumerate(given)]  # fmt: skip
    parts = [x.update(shape=box.shape) for x, box in zip(given, boxes)]
    found = reduce_terms([_in_boxes(t, boxes) for t in read.terms], parts, view.shape, aval.dtype)
    views = {read.operands[k]: boxes[k] for k in found.operands}

    def write(w: Writer, *xs: Atom) -> Atom:
        if not found.terms:
            return fill_array(w, 0, aval)
        return w.write(ein_p, *xs, **found.params(view.shape, aval.dtype, precision))

    return ResultPart(views, write)


def _box(terms: Sum, operand: int, shape: Shape) -> Map:
    """Return the box around all that terms read of an operand."""
    return find_box([(access, t.sizes) for t in terms for k, access in t.reads if k == operand], shape)


def _in_boxes(t: Term, boxes: Sequence[Map]) -> Term:
    """Rewrite a term to read operands of which only boxes are left."""

    def moved(access: Access, k: int) -> Access:
        return tuple([a - start.constant for a, start in zip(access, boxes[k].access, strict=True)])

    factors = [f._replace(access=moved(f.access, f.operand)) for f in t.factors]
    brackets = [replace(b, access=moved(b.access, b.operand)) if isinstance(b, Lookup) else b for b in t.brackets]
    return term(t.out, t.sizes, factors, brackets, t.coefficient)


# ---- indices -------------------------------------------------------------------------------------------------


def _iota(eqn: Equation, view: Map) -> ResultPart | None:
    """Write a view of an iota as an affine function of its indices, which no index row has; None if it overflows."""
    index, dtype = view.access[eqn.params["dimension"]], eqn.params["dtype"]
    multiples = Affine(0, index.variables)  # `index_array` computes these before it adds the constant
    ends = [*index.bounds(view.shape), *multiples.bounds(view.shape), index.constant]
    if index.symbols or not dtypes.holds_integers(dtype, min(ends), max(ends)):
        return None
    order = tuple(variables_of(index))
    own = [view.shape[v] for v in order]
    return ResultPart({}, lambda w: spread(w, index_array(w, index, order, own, dtype), order, view.shape))


# ---- batches -------------------------------------------------------------------------------------------------


def _batched(eqn: Equation, view: Map, terms: Sum, starts: Starts) -> ResultPart | None:
    """Apply the function to parts along its batch axes, then read the view of the result; None if none is smaller."""
    known = [t for t in map(solve_term, terms) if t is not None]
    batch = [d for d, n in enumerate(view.of) if known and all(_is_batch(t, d, n) for t in known)]
    box = _box_along(batch, view)
    if box.shape == view.of:
        return None
    views: dict[int, Map] = {}
    for t in known:
        along = {t.out[d].variable: d for d in batch}
        for k, access in t.reads:
            part = _read_in(box, eqn.invars[k].aval.shape, [along.get(a.variable) for a in access])
            if views.setdefault(k, part) != part:
                return None
    every = {k: views.get(k, identity_map(x.aval.shape)) for k, x in enumerate(eqn.invars)}
    places = [
        (a - b.without(d)).divided(b.coefficient(d) or 1) for d, (a, b) in enumerate(zip(view.access, box.access))
    ]
    inner = make_view(tuple(places), box.shape, view.shape)
    if _shape(eqn, every) != box.shape or not is_readable(inner):
        return None

    def write(w: Writer, *xs: Atom) -> Atom:
        return read_part(w, w.write(eqn.primitive, *xs, **eqn.params), inner, starts.atoms)

    return ResultPart(every, write, box.size)


def _box_along(axes: Sequence[int], view: Map) -> Map:
    """Return the box with all elements that a view reads: elements one step apart along some axes, all along others."""
    access, sizes = list(identity_map(view.of).access), list(view.of)
    for d in axes:
        a = view.access[d]
        moving = Affine(a.constant, a.variables)
        (low, high), step = moving.bounds(view.shape), moving.gcd or 1
        sizes[d] = (high - low) // step + 1
        access[d] = Affine(low, ((d, step),) if sizes[d] > 1 else (), a.symbols)
    return make_view(tuple(access), view.of, tuple(sizes))


def _is_batch(t: Term, d: int, n: int) -> bool:
    """Tell whether axis `d` of a result is a batch axis: its variable is alone in every index that it occurs in."""
    v, others = t.out[d].variable, (*t.out[:d], *t.out[d + 1 :], *[b.index for b in t.brackets])
    if v is None or t.sizes[v] != n or any(a.coefficient(v) for a in others):
        return False
    return all(a.variable == v for _, access in t.reads for a in access if a.coefficient(v))


def _read_in(box: Map, shape: Shape, along: Sequence[int | None]) -> Map:
    """Return the view of an operand whose axis e is read as axis `along[e]` of a box of the result; None: all along."""
    access, sizes = list(identity_map(shape).access), list(shape)
    for e, d in enumerate(along):
        if d is not None:
            access[e], sizes[e] = box.access[d].renamed(lambda _, e=e: e), box.shape[d]
    return make_view(tuple(access), shape, tuple(sizes))


def _shape(eqn: Equation, views: Mapping[int, Map]) -> Shape | None:
    """Infer the shape of an equation on views of its operands; None if its params do not permit these shapes."""
    avals = tuple([x.aval.update(shape=views[k].shape) for k, x in enumerate(eqn.invars)])
    try:
        return eqn.primitive.type(avals, eqn.params)[0].shape
    except (TypeError, ValueError):
        return None
