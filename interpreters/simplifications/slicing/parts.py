"""Parts of results: how an equation computes a view of its result from views of its operands, by its index row.

Search terms: image of an access, tiling of producers, dead elements. A view of an equation that only moves elements
reads the operands directly: a part of a concatenation is a part of one of them. Elementwise functions, sums and
products are applied to parts as they were to the whole; other functions to parts along their batch axes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from tapeless.interpreters.index_rows import Combination, IndexRow, index_row, is_elementwise
from tapeless.interpreters.simplifications.common_subexpressions import FENCES
from tapeless.interpreters.simplifications.slicing.views import (
    PartTerm,
    Starts,
    View,
    is_readable,
    read,
    spread,
    whole,
    with_view,
)
from tapeless.interpreters.terms.accesses import Shape
from tapeless.interpreters.terms.index_arrays import index_array
from tapeless.interpreters.terms.lower_views import Order
from tapeless.interpreters.terms.tiles import fills_box, whole_box, written_box
from tapeless.interpreters.writer import Writer, filled, literal
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.ein import ein_p, reduced
from tapeless.tracer.primitives.indexing import dynamic_slice_p, dynamic_update_slice_p
from tapeless.tracer.primitives.operands import argsort
from tapeless.tracer.terms.affine import Access, Affine, variables
from tapeless.tracer.terms.solve import solved, substituted
from tapeless.tracer.terms.term import Lookup, Read, Sum, Term, term, variables_of
from tapeless.tracer.types import ShapedArray

VIEWS = frozenset((s.slice_p, s.reshape_p, s.transpose_p, dynamic_slice_p))  # they only read one operand
FREE = VIEWS | {s.broadcast_in_dim_p, s.iota_p, s.concatenate_p, s.pad_p, s.rev_p, dynamic_update_slice_p}
_OVER = frozenset((s.pad_p, dynamic_update_slice_p))  # the first term of their rows is written over the others
_REDUCTIONS = frozenset((
    r.reduce_sum_p, r.reduce_prod_p, r.reduce_max_p, r.reduce_min_p, r.reduce_and_p, r.reduce_or_p, r.reduce_xor_p,
))  # fmt: skip
_SCALAR = View((), ())
_INDEX = ShapedArray((), np.dtype(np.int32))


class ResultPart(NamedTuple):
    """A way to compute a part of a result: views of operands, by their numbers, and the function that joins them."""

    views: Mapping[int, View]
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


def part_of(eqn: Equation, view: View, starts: Starts) -> ResultPart | None:
    """Find how to compute a view of the only result of an equation; None if it is not computed in parts."""
    if eqn.primitive in FENCES or not view.size:
        return None
    row = index_row(eqn)
    if row is None or len(row.results) != 1:
        return None
    if eqn.primitive is s.iota_p:
        return _iota(eqn, view)
    if eqn.primitive in FREE:
        return _moved(eqn, view, [starts.known(eqn, t) for t in row.results[0]])
    if eqn.primitive in _REDUCTIONS:
        return _reduced(eqn, view, row.results[0])
    if eqn.primitive is dot_general_p:
        return _contracted(eqn, view, row.results[0])
    if eqn.primitive is ein_p:
        return None if view.has_windows else _summed(eqn, view, row.results[0])
    return _elementwise(eqn, view, row) or _batched(eqn, view, row.results[0], starts)


def _meets(t: Term, view: View) -> bool:
    """Tell whether a term may write what a view reads, by the bounds of both along each axis: a quick test."""
    read = _bounds(view.access, view.shape)
    return all(low <= end and start <= high for (low, high), (start, end) in zip(_bounds(t.out, t.sizes), read))


@lru_cache(maxsize=4096)
def _bounds(access: Access, sizes: Sequence[int]) -> Sequence[tuple[int, int]]:
    return [a.bounds(sizes) for a in access]


# ---- movement ------------------------------------------------------------------------------------------------


def _moved(eqn: Equation, view: View, terms: Sequence[Term]) -> ResultPart | None:
    """Read the operands of an equation that moves elements where they are written into the view, each in its place."""
    is_over = eqn.primitive in _OVER
    found = [with_view(t, view) for t in (terms[:1] if is_over else terms) if _meets(t, view)]
    pieces = [p for own in found for p in own or ()]
    if None in found:
        return None
    if not pieces:  # the padding number, or the array that is updated
        return _spread(1, _SCALAR, (), view.shape) if eqn.primitive is s.pad_p else ResultPart({0: view})
    if len(pieces) == 1 and pieces[0].is_in_place:
        (f,), (part, order) = pieces[0].factors, pieces[0].view()
        is_all = f.access != () and len(order) == len([n for n in view.shape if n != 1])  # a scalar may be a literal
        return (
            ResultPart({f.operand: View(f.access, view.shape)})
            if is_all
            else _spread(f.operand, part, order, view.shape)
        )
    if any(p.place is None for p in pieces):
        return None
    return _over(eqn, view, pieces[0]) if is_over else _joined(pieces, view.shape)


def _spread(operand: int, part: View, order: Order, shape: Shape) -> ResultPart:
    return ResultPart({operand: part}, lambda w, x: spread(w, x, order, shape))


def _over(eqn: Equation, view: View, piece: PartTerm) -> ResultPart | None:
    """Write one piece into padding, or over the view of an updated array; None if it does not fill its box there."""
    part = piece.view()[0]
    if eqn.primitive is s.pad_p:
        return ResultPart({0: part, 1: _SCALAR}, lambda w, x, number: piece.put(w, x, whole_box(view.shape), number))
    if not fills_box(piece.place or (), piece.sizes):
        return None
    box = written_box(piece.place or ())
    starts = [literal(low, _INDEX) for low, _ in box]
    return ResultPart(
        {0: view, 1: part}, lambda w, x, u: w.write(dynamic_update_slice_p, x, piece.put(w, u, box), *starts)
    )


def _joined(pieces: Sequence[PartTerm], shape: Shape) -> ResultPart | None:
    """Concatenate pieces that fill their boxes side by side along one axis; None for other pieces."""
    boxes = [written_box(p.place or ()) for p in pieces]
    apart = [d for d, n in enumerate(shape) if any(box[d] != (0, n) for box in boxes)] or [0]
    if len(apart) > 1 or not all(fills_box(p.place or (), p.sizes) for p in pieces):
        return None

    def write(w: Writer, *xs: Atom) -> Atom:
        put = [pieces[k].put(w, xs[k], boxes[k]) for k in argsort([box[apart[0]][0] for box in boxes])]
        return w.write(s.concatenate_p, *put, dimension=apart[0])

    return ResultPart({p.factors[0].operand: p.view()[0] for p in pieces}, write)


# ---- functions of elements, sums, products -------------------------------------------------------------------


def _elementwise(eqn: Equation, view: View, row: IndexRow) -> ResultPart | None:
    """Apply an elementwise function to the same view of each operand; None for others, or with params for axes."""
    if row.combination is not Combination.POINTWISE and any(isinstance(p, tuple) for p in eqn.params.values()):
        return None
    if not is_elementwise(row.results[0]):
        return None
    views = {k: view if x.aval.shape else _SCALAR for k, x in enumerate(eqn.invars)}
    return ResultPart(views, lambda w, *xs: w.write(eqn.primitive, *xs, **eqn.params))


def _reduced(eqn: Equation, view: View, terms: Sum) -> ResultPart | None:
    found = with_view(terms[0], view)
    if not found or 0 in found[0].sizes:
        return None
    part, order = found[0].view(0)
    axes = tuple([d for d, v in enumerate(order) if v >= len(view.shape)])

    def write(w: Writer, x: Atom) -> Atom:
        x = w.write(eqn.primitive, x, axes=axes) if axes else x
        return spread(w, x, tuple([v for v in order if v < len(view.shape)]), view.shape)

    return ResultPart({0: part}, write)


def _contracted(eqn: Equation, view: View, terms: Sum) -> ResultPart | None:
    """Contract views of both operands; the variables of the view that both have are its batch axes."""
    found = with_view(terms[0], view)
    if not found or 0 in found[0].sizes:
        return None
    (x, of_x), (y, of_y) = found[0].view(0), found[0].view(1)
    rank = len(view.shape)
    summed, batch = [[v for v in of_x if v in of_y and (v >= rank) is over] for over in (True, False)]
    free = [v for v in (*of_x, *of_y) if v not in summed and v not in batch]
    dims = tuple([tuple([tuple(map(own.index, some)) for own in (of_x, of_y)]) for some in (summed, batch)])
    params = {**eqn.params, "dimension_numbers": dims}

    def write(w: Writer, x: Atom, y: Atom) -> Atom:
        return spread(w, w.write(dot_general_p, x, y, **params), (*batch, *free), view.shape)

    return ResultPart({0: x, 1: y}, write)


def from_boxes(eqn: Equation, operands: Collection[int]) -> ResultPart:
    """Compute an `ein` from the boxes around all that it reads of these operands, and from all of the others."""
    view = whole(eqn.outvars[0].aval.shape)
    return _summed(eqn, view, eqn.params["terms"], operands)


def read_in_boxes(eqn: Equation) -> tuple[int, ...]:
    """Return the operands of an `ein` of which it reads a smaller box."""
    shapes = [x.aval.shape for x in eqn.invars]
    return tuple([k for k, n in enumerate(shapes) if _hulls(eqn.params["terms"], k, n) != _all_of(n)])


def _all_of(shape: Shape) -> list[tuple[int, int]]:
    return [(0, n) for n in shape]


def _summed(eqn: Equation, view: View, terms: Sum, operands: Collection[int] | None = None) -> ResultPart:
    """Restrict the terms of an `ein` to the view, and operands, or all, to the box around all that they read of it."""
    reader = term(variables(view.shape), view.shape, [Read(0, view.access)])
    aval, precision = eqn.outvars[0].aval.update(shape=view.shape), eqn.params["precision"]
    read = reduced(substituted(reader, 0, terms), [x.aval for x in eqn.invars], view.shape, aval.dtype)
    given = [eqn.invars[k].aval for k in read.operands]
    in_boxes = [operands is None or k in operands for k in read.operands]
    hulls = [_hulls(read.terms, k, x.shape) if in_boxes[k] else _all_of(x.shape) for k, x in enumerate(given)]
    parts = [x.update(shape=tuple([size for _, size in hull])) for x, hull in zip(given, hulls)]
    starts = [[low for low, _ in hull] for hull in hulls]
    found = reduced([_from_starts(t, starts) for t in read.terms], parts, view.shape, aval.dtype)
    views = {read.operands[k]: View(_moved_by(variables(parts[k].shape), starts[k]), parts[k].shape)
             for k in found.operands}  # fmt: skip

    def write(w: Writer, *xs: Atom) -> Atom:
        if not found.terms:
            return filled(w, 0, aval)
        return w.write(ein_p, *xs, **found.params(view.shape, aval.dtype, precision))

    return ResultPart(views, write)


def _hulls(terms: Sum, operand: int, shape: Shape) -> list[tuple[int, int]]:
    """Return the start and the size, along each axis, of the box around all that terms read of an operand."""
    reads = [(t, access) for t in terms for k, access in t.reads if k == operand]
    found = list[tuple[int, int]]()
    for d, n in enumerate(shape):
        ends = [access[d].bounds(t.sizes) for t, access in reads]
        low, high = max(min(low for low, _ in ends), 0), min(max(high for _, high in ends), n - 1)
        found.append((low, high - low + 1))
    return found


def _from_starts(t: Term, starts: Sequence[Sequence[int]]) -> Term:
    """Rewrite a term to read operands that were cut off before these starts."""
    factors = [f._replace(access=_moved_by(f.access, [-n for n in starts[f.operand]])) for f in t.factors]
    brackets = [
        replace(b, access=_moved_by(b.access, [-n for n in starts[b.operand]])) if isinstance(b, Lookup) else b
        for b in t.brackets
    ]
    return term(t.out, t.sizes, factors, brackets, t.coefficient)


def _moved_by(access: Access, by: Sequence[int]) -> Access:
    return tuple([a + n for a, n in zip(access, by, strict=True)])


# ---- indices -------------------------------------------------------------------------------------------------


def _iota(eqn: Equation, view: View) -> ResultPart | None:
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


class _Hull(NamedTuple):
    """The indices `start + step k` along an axis, for k below `size`, that contain all that a view reads there."""

    start: Affine
    step: int
    size: int

    def along(self, d: int) -> Affine:
        return self.start + (Affine(0, ((d, self.step),)) if self.size > 1 else 0)


def _hull(a: Affine, sizes: Sequence[int]) -> _Hull:
    moving = Affine(a.constant, a.variables)
    (low, high), step = moving.bounds(sizes), moving.gcd or 1
    return _Hull(Affine(low, (), a.symbols), step, (high - low) // step + 1)


def _batched(eqn: Equation, view: View, terms: Sum, starts: Starts) -> ResultPart | None:
    """Apply the function to parts along its batch axes, then read the view of the result; None if none is smaller."""
    shape = eqn.outvars[0].aval.shape
    known = [t for t in map(solved, terms) if t is not None]
    batch = [d for d, n in enumerate(shape) if known and all(_is_batch(t, d, n) for t in known)]
    hulls = [_hull(view.access[d], view.shape) if d in batch else _Hull(Affine(), 1, n) for d, n in enumerate(shape)]
    counts = tuple([hull.size for hull in hulls])
    if counts == shape:
        return None
    views: dict[int, View] = {}
    for t in known:
        along = {t.out[d].variable: hulls[d] for d in batch}
        for k, access in t.reads:
            part = _within(eqn.invars[k].aval.shape, [along.get(a.variable) for a in access])
            if views.setdefault(k, part) != part:
                return None
    every = {k: views.get(k, whole(x.aval.shape)) for k, x in enumerate(eqn.invars)}
    inner = View(tuple([(a - h.start).divided(h.step) for a, h in zip(view.access, hulls)]), view.shape)
    if _shape(eqn, every) != counts or not is_readable(inner, counts):
        return None

    def write(w: Writer, *xs: Atom) -> Atom:
        return read(w, w.write(eqn.primitive, *xs, **eqn.params), inner, starts.atoms)

    return ResultPart(every, write, prod(counts))


def _is_batch(t: Term, d: int, n: int) -> bool:
    """Tell whether axis `d` of a result is a batch axis: its variable is alone in every index that it occurs in."""
    v, others = t.out[d].variable, (*t.out[:d], *t.out[d + 1 :], *[b.index for b in t.brackets])
    if v is None or t.sizes[v] != n or any(a.coefficient(v) for a in others):
        return False
    return all(a.variable == v for _, access in t.reads for a in access if a.coefficient(v))


def _within(shape: Shape, hulls: Sequence[_Hull | None]) -> View:
    """Return the view of an array that reads these hulls along some axes, and all of the others."""
    every = [_Hull(Affine(), 1, n) if hull is None else hull for n, hull in zip(shape, hulls, strict=True)]
    return View(tuple([hull.along(d) for d, hull in enumerate(every)]), tuple([hull.size for hull in every]))


def _shape(eqn: Equation, views: Mapping[int, View]) -> Shape | None:
    """Infer the shape of an equation on views of its operands; None if its params do not permit these shapes."""
    avals = tuple([x.aval.update(shape=views[k].shape) for k, x in enumerate(eqn.invars)])
    try:
        return eqn.primitive.type(avals, eqn.params)[0].shape
    except (TypeError, ValueError):
        return None
