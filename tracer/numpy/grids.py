"""Grids and index arrays: open and dense grids, `r_` and `c_`, flat and multi-dimensional positions, signal windows."""

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.numpy.arithmetic import add, clip, multiply, remainder, select
from tapeless.tracer.numpy.at import AtIndexer
from tapeless.tracer.numpy.creation import arange, asarray, linspace, meshgrid
from tapeless.tracer.numpy.joining import concatenate, stack
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    cast,
    check_operands,
    concrete,
    mixing_inside,
    promoted_all,
)
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import canonical_axis
from tapeless.tracer.primitives.shape import broadcasted_iota, expand_dims, full, reshape, static_ints
from tapeless.tracer.types import aval_of, by_protocol

s_: Final = np.s_
index_exp: Final = np.index_exp

# ---- grids ---------------------------------------------------------------------------------------------------


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Make an open grid of vectors, each along its own axis, so that `x[ix_(rows, columns)]` is a block of x.

    A vector of booleans, known, stands for the positions where it is true.

    Returns: for k vectors a tuple of k arrays with k axes, of which the i-th has the vector along axis i.
    Raises: ValueError if an operand is no vector; ConcretizationTypeError for booleans that are traced.
    """
    xs = [_positions_or_mask(a) for a in args]
    if any(x.ndim != 1 for x in xs):
        raise ValueError(f"ix_: operands must be vectors, not {', '.join(str(x.aval) for x in xs)}.")
    return tuple(reshape(x, [x.size if a == d else 1 for a in range(len(xs))]) for d, x in enumerate(xs))


def _positions_or_mask(a: ArrayLike) -> Array:
    a = by_protocol(a)
    check_operands("ix_", a)
    if not dtypes.is_bool(aval_of(a).dtype):
        return array_operand("ix_", a)
    known = concrete("ix_", a, "Use positions.")
    return as_array(np.flatnonzero(known).astype(dtypes.default_dtype("i")) if known.ndim == 1 else known)


class Grid:
    """Grids by slicing: `mgrid[0:3, 0:1:5j]` stacks the coordinates on the grid of the ranges.

    A complex step is the number of elements, both ends included. An open grid (`sparse`) is a list of arrays that
    broadcast. A single range gives a vector.
    """

    def __init__(self, sparse: bool) -> None:
        self.sparse: Final = sparse

    @mixing_inside
    def __getitem__(self, index: Any) -> Any:
        ranges = [_range(s) for s in (index if isinstance(index, tuple) else (index,))]
        if not isinstance(index, tuple):
            return ranges[0]
        grids = meshgrid(*ranges, indexing="ij", sparse=self.sparse)
        return grids if self.sparse else stack(grids) if grids else arange(0)


def _range(s: slice) -> Array:
    """Make the vector start, start + step, ... below stop of a slice; a step of nj gives n numbers, with both ends."""
    start, step = s.start or 0, 1 if s.step is None else s.step
    return linspace(start, s.stop, int(abs(step))) if isinstance(step, complex) else arange(start, s.stop, step)


mgrid: Final = Grid(sparse=False)
ogrid: Final = Grid(sparse=True)


class Concatenator:
    """Join by indexing: `r_[0:3, 7, x]` joins ranges, numbers and arrays along the first axis; `c_` as columns.

    A text before them, "axis,ndim,place" or the first of these, gives the axis to join along, the least number of axes,
    and where among these an item's own axes begin. "r" makes a row of a resulting vector, with two axes, "c" a column.
    """

    def __init__(self, axis: int, ndim: int, place: int) -> None:
        self.given: Final = axis, ndim, place

    def __getitem__(self, index: Any) -> Array:
        items = list(index) if isinstance(index, tuple) else [index]
        text = items.pop(0) if items and isinstance(items[0], str) else ""
        axis, ndim, place = self.given if text in ("", "r", "c") else _directive(text, self.given)
        if not items:
            raise ValueError("r_: there is nothing to join.")
        found = concatenate([_with_axes(_range(x) if isinstance(x, slice) else x, ndim, place) for x in items], axis)
        return expand_dims(found, ("rc".index(text),)) if text in ("r", "c") and found.ndim == 1 else found


def _directive(text: str, given: tuple[int, int, int]) -> tuple[int, int, int]:
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"r_: {text!r} is neither 'r', 'c' nor 'axis,ndim,place', integers.") from None
    axis, ndim, place = (*found[:3], *given[len(found) :])
    return axis, ndim, place


def _with_axes(x: Any, ndim: int, place: int) -> Array:
    """Reshape x to `ndim` axes by axes of size 1, its own from `place` on; at the end if that is -1."""
    array = asarray(x)
    more = ndim - array.ndim
    if more <= 0:
        return array
    before = more if not array.ndim else place + more + 1 if place < 0 else place
    return reshape(array, (*(1,) * before, *array.shape, *(1,) * (more - before)))


r_: Final = Concatenator(0, 1, -1)
c_: Final = Concatenator(-1, 2, 0)

# ---- flat positions ------------------------------------------------------------------------------------------


def unravel_index(indices: ArrayLike, shape: int | Sequence[int]) -> tuple[Array, ...]:
    """Convert positions in the flattened array to positions along each axis of `shape`.

    Negative positions count from the end, and positions outside move to the nearest end.

    Args:
      indices: [k..], integers.
      shape: sizes of the axes, known.
    Returns: for each axis an array [k..], in the dtype of `indices` if it holds the results, else the default integer.
    Raises: TypeError if indices are not integers.
    """
    x = array_operand("unravel_index", indices)
    if not dtypes.is_integer(x.dtype):
        raise TypeError(f"unravel_index: indices must be integers, not {x.aval}.")
    sizes = static_ints((shape,) if isinstance(shape, int) else shape, "unravel_index", "shape")
    size, own = math.prod(sizes), x.dtype
    if size > dtypes.iinfo(own).max:
        x = lax.convert_element_type(x, dtypes.default_dtype("i") if size < 2**31 else np.int64)
    found = _unravel(x, sizes=sizes)
    fits = max(sizes, default=0) <= dtypes.iinfo(own).max or not dtypes.is_signed(own)  # then none exceeds its operand
    return tuple(cast(i, own) for i in found) if fits else found


@core.compound
def _unravel(x: Array, *, sizes: tuple[int, ...]) -> tuple[Array, ...]:
    size = math.prod(sizes)
    if dtypes.is_signed(x.dtype):
        x = select(lax.lt(x, 0), lax.add(lax.max(x, -size), size), x)
    x = lax.min(x, max(size - 1, 0))
    steps = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
    return tuple(lax.rem(lax.div(x, step), n) if n else x for step, n in zip(steps, sizes, strict=True))


@mixing_inside
def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Convert positions along each axis to positions in the flattened array of shape `dims`.

    Args:
      multi_index: for each axis an array of integers; they broadcast.
      mode: for positions outside: an error ("raise", for known positions only), "clip", "wrap" or "ignore".
      order: "C", or "F" where the first axis is the fastest.
      dtype: of the result; the default integer, or that of positions if it is wider.
    Returns: an array of the broadcast shape.
    Raises: ValueError for a position outside, another mode or order, or a dtype that does not hold the size of the
      array; TypeError for positions that are not integers; ConcretizationTypeError for "raise" of traced positions.
    """
    sizes = static_ints(dims, "ravel_multi_index", "dims")
    multi_index = [by_protocol(i) for i in multi_index]
    xs = [array_operand("ravel_multi_index", i) for i in multi_index]
    _check_positions(multi_index, sizes, mode, order)
    common = dtypes.result_type(np.zeros(0, dtypes.default_dtype("i")), *xs)[0]  # of uint64 and others none
    wanted = dtypes.canonical(dtype if dtype is not None else common if dtypes.is_integer(common) else np.int64)
    if not dtypes.is_integer(wanted) or math.prod(sizes) - 1 > dtypes.iinfo(wanted).max:
        raise ValueError(f"ravel_multi_index: {wanted} does not hold positions in an array of shape {sizes}.")
    given = [_inside(x, n, mode) for x, n in zip(promoted_all("ravel_multi_index", *xs), sizes, strict=True)]
    pairs = list(zip(given, sizes, strict=True))
    flat = full((), 0, wanted)
    for x, n in pairs if order == "C" else pairs[::-1]:
        flat = add(multiply(flat, n), cast(x, wanted))
    return flat


def _check_positions(xs: Sequence[ArrayLike], sizes: tuple[int, ...], mode: str, order: str) -> None:
    if mode not in ("raise", "clip", "wrap", "ignore") or order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: there is no mode {mode!r} with order {order!r}.")
    if len(xs) != len(sizes):
        raise ValueError(f"ravel_multi_index: positions along {len(xs)} axes, and {len(sizes)} dims.")
    for axis, (x, n) in enumerate(zip(xs, sizes, strict=True)):
        if not dtypes.is_integer(aval_of(x).dtype):
            raise TypeError(f"ravel_multi_index: positions must be integers, not {aval_of(x)}.")
        if mode == "raise":
            known = concrete("ravel_multi_index", x, "Use the mode 'clip' or 'wrap'.")
            if np.any((known < 0) | (known >= n)):
                raise ValueError(f"ravel_multi_index: a position is outside axis {axis} of {n} elements.")


def _inside(x: Any, n: int, mode: str) -> Any:
    if mode not in ("clip", "wrap"):
        return x
    x = x if dtypes.bits_of(x.dtype) >= 32 else lax.convert_element_type(x, np.int32)
    return clip(x, 0, n - 1) if mode == "clip" else remainder(x, n)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Return the array with the elements at `indices` along `axis` replaced by `values`.

    Args:
      arr: [.., n, ..].
      indices: [.., k, ..] integers; the other axes broadcast with those of `arr`.
      values: broadcast with `indices`.
      axis: None for the flattened array and indices.
      inplace: must be False, as arrays are immutable.
      mode: for positions outside, as for `at`; if not given, known positions must be inside.
    Raises: ValueError if `inplace`; IndexError for a known position outside without a `mode`.
    """
    if inplace:
        raise ValueError("put_along_axis: arrays are never changed in place; pass inplace=False and use the result.")
    x, places = array_operand("put_along_axis", arr), array_operand("put_along_axis", indices)
    if axis is None:
        return reshape(AtIndexer(reshape(x, (x.size,)), reshape(places, (places.size,))).set(values), x.shape)
    axis = canonical_axis(axis, x.ndim)
    grid = [broadcasted_iota(np.int32, [n if a == d else 1 for a in range(x.ndim)], d) for d, n in enumerate(x.shape)]
    index = tuple(places if d == axis else grid[d] for d in range(x.ndim))
    return AtIndexer(x, index).set(values, mode=mode)


# ---- windows -------------------------------------------------------------------------------------------------


def bartlett(M: int) -> Array:
    """Make a triangular window of M elements, a vector of the default float; M is known."""
    return _window(np.bartlett(operator.index(M)))


def blackman(M: int) -> Array:
    """Make a Blackman window of M elements, a vector of the default float; M is known."""
    return _window(np.blackman(operator.index(M)))


def hamming(M: int) -> Array:
    """Make a Hamming window of M elements, a vector of the default float; M is known."""
    return _window(np.hamming(operator.index(M)))


def hanning(M: int) -> Array:
    """Make a Hann window of M elements, a vector of the default float; M is known."""
    return _window(np.hanning(operator.index(M)))


def kaiser(M: int, beta: float) -> Array:
    """Make a Kaiser window of M elements and shape `beta`, a vector of the default float; both are known."""
    return _window(np.kaiser(operator.index(M), float(beta)))


def _window(values: np.ndarray[Any, Any]) -> Array:
    return as_array(values.astype(dtypes.default_dtype("f")))
