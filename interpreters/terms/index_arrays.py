"""Write affine functions of indices as integer arrays, brackets as boolean masks, and gathers at such arrays."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tapeless.interpreters.writer import Writer, fill_array, literal
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.dimension_numbers import GatherDimensionNumbers
from tapeless.tracer.primitives.indexing import GatherScatterMode, gather_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, concatenate_p, iota_p, reshape_p
from tapeless.tracer.terms.affine import Affine, Symbol, Variable
from tapeless.tracer.terms.term import Bracket, IsZero
from tapeless.tracer.types import ShapedArray

INDEX = np.dtype(np.int32)  # dtype of index arrays
WIDE = np.dtype(np.int64)  # dtype of index arrays with elements that INDEX does not hold
SymbolValue = Callable[[Symbol], Atom]  # symbol -> the integer scalar that is its value


def where(
    w: Writer, bracket: Bracket, order: Sequence[Variable], shape: Sequence[int], value: SymbolValue | None = None
) -> Atom:
    """Write a mask of this `shape` that is true where a bracket holds; its axes are the variables in `order`.

    Args:
      value: returns the value of a symbol; None if the bracket has no symbols.
    """
    left = bracket.index.part(lambda c: c > 0) + max(bracket.index.constant, 0)
    sides = left, left - bracket.index  # without symbols, both sides are nonnegative everywhere
    dtype = max([index_dtype(a, order, shape) for a in sides], key=lambda dtype: dtype.itemsize)
    one, other = [index_array(w, a, order, shape, dtype, value) for a in sides]
    return w.write(e.eq_p if isinstance(bracket, IsZero) else e.ge_p, one, other)


def index_dtype(a: Affine, order: Sequence[Variable], shape: Sequence[int]) -> np.dtype[Any]:
    """Return the dtype that holds all elements of `index_array`, and those of its addends."""
    largest = abs(a.constant) + sum(abs(k) * max(shape[order.index(v)], 1) for v, k in a.variables)
    largest += sum(abs(k) * max(abs(s.low), abs(s.high)) for s, k in a.symbols)
    return INDEX if largest < 2**31 else WIDE


def index_array(
    w: Writer,
    a: Affine,
    order: Sequence[Variable],
    shape: Sequence[int],
    dtype: np.dtype[Any] = INDEX,
    value: SymbolValue | None = None,
) -> Atom:
    """Write an affine function as an array of this `shape`, whose axes are the variables in `order`.

    Args:
      value: returns the value of a symbol; None if `a` has no symbols.
    """
    aval, parts = ShapedArray(tuple(shape), dtype), list[Atom]()
    for v, k in a.variables:
        i = w.write(iota_p, dtype=dtype, shape=aval.shape, dimension=order.index(v))
        parts.append(i if k == 1 else w.write(e.mul_p, literal(k, aval), i))
    for s, k in a.symbols:
        assert value is not None
        x = value(s)
        x = x if x.aval.dtype == dtype else w.write(e.convert_element_type_p, x, dtype=dtype, weak_type=False)
        x = w.write(broadcast_in_dim_p, x, shape=aval.shape, dims=()) if aval.shape else x
        parts.append(x if k == 1 else w.write(e.mul_p, literal(k, aval), x))
    if a.constant or not parts:
        parts.append(literal(a.constant, aval))
    total = reduce(lambda x, y: w.write(e.add_p, x, y), parts)
    return total if total.aval.shape == aval.shape else fill_array(w, a.constant, aval)


def index_vectors(w: Writer, columns: Sequence[Atom]) -> Atom:
    """Write the index vectors of a gather or scatter, along a new last axis, from an array for each indexed axis."""
    vectors = [w.write(reshape_p, x, shape=(*x.aval.shape, 1)) for x in columns]
    return vectors[0] if len(vectors) == 1 else w.write(concatenate_p, *vectors, dimension=columns[0].aval.ndim)


def gather(
    w: Writer,
    x: Atom,
    columns: Sequence[Atom],
    numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    mode: GatherScatterMode = GatherScatterMode.CLIP,
) -> Atom:
    """Write a gather at index vectors that need be neither sorted nor unique."""
    how = {"unique_indices": False, "indices_are_sorted": False, "mode": mode, "fill_value": None}
    vectors = index_vectors(w, columns)
    return w.write(gather_p, x, vectors, dimension_numbers=numbers, slice_sizes=slice_sizes, **how)
