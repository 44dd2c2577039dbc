"""Recognise constants that are functions of their indices (identities, triangles, bands, ranges); write equations.

Search terms: structured matrices, Toeplitz band, affine map. NumPy arrays that a program closes over are constants of
its `ClosedJaxpr`. If the elements are an affine function of their indices, or 1 where such a function is within bounds
and 0 elsewhere, the array becomes iotas and comparisons, as `tnp.arange` and `tnp.eye` are, so that the same rules
simplify it. All elements are compared, bit by bit; most other arrays are rejected after a few. Left out: numbers that
are not integers, bands in more than two axes (repeated ones are fine), arrays on devices, and axes of fewer than
`STRUCTURE` elements: these often fit by chance, and the program would have to be compiled again for other values.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.terms.index_arrays import INDEX, index_array, where
from tapeless.interpreters.writer import Writer, fill_array
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, ClosedJaxpr
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.bits import and_p
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import Bracket, IsZero, NotNegative, with_indices
from tapeless.tracer.types import ShapedArray

_BLOCK = 1 << 16  # elements that are compared at once


# Elements as a function of their indices, variable d along axis d; a tuple of brackets is 1 where all hold, else 0.
Structure = Affine | tuple[Bracket, ...]


def with_structure(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Replace constants that have a structure by equations; the same object if there are none."""
    constants = [(v, x) for v, x in zip(closed.jaxpr.invars, closed.consts) if _is_looked_at(v.aval, x)]
    found = {v: s for v, x in constants if (s := structure(x)) is not None}
    if not found:
        return closed
    w = Writer(closed.jaxpr)
    for v, s in found.items():
        w.substitute(v, _written(w, s, v.aval))
    for eqn in closed.jaxpr.eqns:
        w.keep(w.renamed(eqn))
    jaxpr, n = w.finish(), len(closed.consts)
    kept = [(v, x) for v, x in zip(jaxpr.invars, closed.consts) if v not in found]
    return ClosedJaxpr(jaxpr.replace(invars=[*[v for v, _ in kept], *jaxpr.invars[n:]]), [x for _, x in kept])


def _is_looked_at(aval: ShapedArray, x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == aval.dtype and dtypes.kind(aval.dtype) in "biuf"


def _written(w: Writer, s: Structure, aval: ShapedArray) -> Atom:
    """Write the array of type `aval` that has this structure."""
    axes = range(aval.ndim)
    if isinstance(s, Affine):
        return w.write(e.convert_element_type_p, index_array(w, s, axes, aval.shape), dtype=aval.dtype, weak_type=False)
    found = [where(w, bracket, axes, aval.shape) for bracket in s]
    if not found:
        return fill_array(w, 1, aval)
    mask = reduce(lambda x, y: w.write(and_p, x, y), found)
    return w.write(e.convert_element_type_p, mask, dtype=aval.dtype, weak_type=False)


# ---- recognizing ---------------------------------------------------------------------------------------------


def structure(x: Any) -> Structure | None:
    """Find the structure of a NumPy array; None if it has none."""
    if not x.size or not float(x.item(0)).is_integer() or not float(x.item(-1)).is_integer():
        return None  # a glance, as all elements of a structure are integers
    axes = [d for d in range(x.ndim) if not _is_repeated(x, d)]
    if min([x.shape[d] for d in axes], default=x.size) < limits.STRUCTURE:
        return None
    y = x[tuple([slice(None) if d in axes else 0 for d in range(x.ndim)])]
    found = None if dtypes.is_bool(x.dtype) else _affine(y)
    if found is not None:
        return found.renamed(axes.__getitem__)
    brackets = _band(y)
    return brackets and tuple([with_indices(b, lambda a: a.renamed(axes.__getitem__)) for b in brackets])


def _is_repeated(x: Any, axis: int) -> bool:
    """Tell whether an array is the same at all indices of an axis."""
    rows = np.moveaxis(x, axis, 0)
    return len(rows) == 1 or (_same_bits(rows[0], rows[1]) and all(_same_bits(rows[0], row) for row in rows[2:]))


def _affine(x: Any) -> Affine | None:
    """Return the affine function of the indices that all elements equal, or None.

    Its coefficients are read from the first element and its neighbours, then checked on all elements.
    """
    near = [x[(0,) * x.ndim], *[x[tuple([int(k == d) for k in range(x.ndim)])] for d in range(x.ndim)]]
    if not all(float(value).is_integer() for value in near):
        return None
    first, *others = map(int, near)
    found = Affine(first, tuple([(d, k - first) for d, k in enumerate(others) if k != first]))
    bounds = found.bounds(x.shape)
    held = dtypes.holds_integers(x.dtype, *bounds) and dtypes.holds_integers(INDEX, *bounds)
    if not held or not dtypes.holds_integers(INDEX, *(found - first).bounds(x.shape)):
        return None
    last = _at(found, [n - 1 for n in x.shape])
    return found if float(x[(-1,) * x.ndim]) == last and _is(x, lambda i: _at(found, i)) else None


def _band(x: Any) -> tuple[Bracket, ...] | None:
    """Return the brackets that hold at the ones of a band of diagonals or antidiagonals, or of a range in a vector.

    None if the ones are elsewhere, or an element is neither 0 nor 1.
    """
    if not x.ndim:
        return _within(x, x.reshape(1), Affine())
    if x.ndim == 1:
        return _within(x, x, Affine(0, ((0, 1),)))
    if x.ndim > 2:
        return None
    up, down = np.concatenate([x[:0:-1, 0], x[0]]), np.concatenate([x[0], x[1:, -1]])
    return _within(x, up, Affine(len(x) - 1, ((0, -1), (1, 1)))) or _within(x, down, Affine(0, ((0, 1), (1, 1))))


def _within(x: Any, line: Any, index: Affine) -> tuple[Bracket, ...] | None:
    """Return the brackets that hold between the least and the greatest value of `index` where `x` is 1.

    `line` has an element of `x` for each value of `index`. None if `x` is not exactly 1 there and 0 elsewhere.
    """
    if (line != line.astype(bool)).any():
        return None
    ones = np.flatnonzero(line)
    if not len(ones):
        found = (NotNegative(Affine(-1)),)
    elif len(ones) == 1 < len(line):
        found = (IsZero(index - int(ones[0])),)
    else:
        ends = NotNegative(index - int(ones[0])), NotNegative(int(ones[-1]) - index)
        found = tuple([end for end in ends if end.index.bounds(x.shape)[0] < 0])
    return found if _is(x, lambda i: _holding(found, i)) else None


def _holding(brackets: Sequence[Bracket], i: Sequence[Any]) -> Any:
    values = [(_at(b.index, i) == 0 if isinstance(b, IsZero) else _at(b.index, i) >= 0) for b in brackets]
    return reduce(np.logical_and, values, np.True_)


def _at(a: Affine, i: Sequence[Any]) -> Any:
    return sum([c * i[d] for d, c in a.variables], a.constant)


def _is(x: Any, value: Callable[[Sequence[Any]], Any]) -> bool:
    """Tell whether an array equals `value` of its indices, bit by bit; compared in blocks of rows."""
    rows = x if x.ndim else x.reshape(1)
    step = max(_BLOCK * len(rows) // x.size, 1)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        first, *others = np.ogrid[tuple([slice(n) for n in part.shape])]
        found = np.broadcast_to(np.asarray(value([first + start, *others])), part.shape).astype(x.dtype)
        if not _same_bits(part, found):
            return False
    return True


def _same_bits(x: Any, y: Any) -> bool:
    return np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes()
