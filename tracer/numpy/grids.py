"""Indices as arrays: open and dense grids, flat positions and back, and the window functions of signal processing."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.arithmetic import remainder
from tapeless.tracer.numpy.at import Place
from tapeless.tracer.numpy.creation import arange, linspace, meshgrid
from tapeless.tracer.numpy.joining import stack
from tapeless.tracer.numpy.promotion import array_operand, as_array
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import canonical_axis
from tapeless.tracer.primitives.shape import broadcasted_iota, reshape

s_, index_exp = np.s_, np.index_exp

# ---- grids ---------------------------------------------------------------------------------------------------


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors as an open grid: each along an axis of its own, so that `x[ix_(rows, columns)]` is a block of x.

    Raises: ValueError if an operand is no vector.
    """
    xs = [array_operand("ix_", a) for a in args]
    if any(x.ndim != 1 for x in xs):
        raise ValueError(f"ix_: operands must be vectors, not {', '.join(str(x.aval) for x in xs)}.")
    return tuple(reshape(x, [x.size if a == d else 1 for a in range(len(xs))]) for d, x in enumerate(xs))


class Grid:
    """`mgrid[0:3, 0:1:5j]`: coordinates on the grid of ranges, stacked; a list of thin arrays if open."""

    def __init__(self, sparse: bool) -> None:
        self.sparse = sparse

    def __getitem__(self, index: Any) -> Any:
        ranges = [_range(s) for s in (index if isinstance(index, tuple) else (index,))]
        if not isinstance(index, tuple):
            return ranges[0]
        grids = meshgrid(*ranges, indexing="ij", sparse=self.sparse)
        return grids if self.sparse else stack(grids)


def _range(s: slice) -> Array:
    """start, start + step, ... below stop; with a step of nj, n numbers from start to stop, both included."""
    start, step = s.start or 0, 1 if s.step is None else s.step
    return linspace(start, s.stop, int(abs(step))) if isinstance(step, complex) else arange(start, s.stop, step)


mgrid, ogrid = Grid(sparse=False), Grid(sparse=True)

# ---- flat positions ------------------------------------------------------------------------------------------


def unravel_index(indices: ArrayLike, shape: int | Sequence[int]) -> tuple[Array, ...]:
    """Positions along each axis of `shape` of positions in the flat array."""
    x = array_operand("unravel_index", indices)
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return tuple(remainder(lax.div(x, math.prod(sizes[d + 1 :])), n) for d, n in enumerate(sizes))


def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "raise") -> Array:
    """Positions in the flat array of shape `dims` of positions along each axis; "clip" or "wrap" those outside.

    Raises: ValueError for the mode "raise", which would have to look at elements, unless these are known.
    """
    xs = [array_operand("ravel_multi_index", i) for i in multi_index]
    if mode == "raise":
        return as_array(np.asarray(np.ravel_multi_index([np.asarray(x) for x in xs], dims)).astype(xs[0].dtype))
    inside = [lax.clamp(0, x, n - 1) if mode == "clip" else remainder(x, n) for x, n in zip(xs, dims, strict=True)]
    flat = inside[0]
    for x, n in zip(inside[1:], dims[1:], strict=True):
        flat = lax.add(lax.mul(flat, n), x)
    return flat


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """arr with elements at positions along `axis`, which differ from place to place, replaced by `values`.

    Raises: ValueError if `inplace`: arrays are never changed.
    """
    if inplace:
        raise ValueError("put_along_axis: arrays are never changed in place; pass inplace=False and use the result.")
    x, places = array_operand("put_along_axis", arr), array_operand("put_along_axis", indices)
    if axis is None:
        return reshape(Place(reshape(x, (x.size,)), reshape(places, (places.size,))).set(values), x.shape)
    axis = canonical_axis(axis, x.ndim)
    grid = [broadcasted_iota(np.int32, [n if a == d else 1 for a in range(x.ndim)], d) for d, n in enumerate(x.shape)]
    index = tuple(places if d == axis else grid[d] for d in range(x.ndim))
    return Place(x, index).set(values, mode=mode)


# ---- windows -------------------------------------------------------------------------------------------------


def bartlett(M: int) -> Array:
    """Triangular window of M elements."""
    return _window(np.bartlett(operator.index(M)))


def blackman(M: int) -> Array:
    """Blackman window of M elements."""
    return _window(np.blackman(operator.index(M)))


def hamming(M: int) -> Array:
    """Hamming window of M elements."""
    return _window(np.hamming(operator.index(M)))


def hanning(M: int) -> Array:
    """Hann window of M elements."""
    return _window(np.hanning(operator.index(M)))


def kaiser(M: int, beta: float) -> Array:
    """Kaiser window of M elements."""
    return _window(np.kaiser(operator.index(M), float(beta)))


def _window(values: np.ndarray[Any, Any]) -> Array:
    return as_array(values.astype(dtypes.default_dtype("f")))
