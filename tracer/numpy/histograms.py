"""Histograms, of one or several coordinates: edges of bins, and counts."""

import builtins
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy import reductions
from tapeless.tracer.numpy.arithmetic import add, multiply, subtract, true_divide
from tapeless.tracer.numpy.creation import linspace
from tapeless.tracer.numpy.indexing import getitem
from tapeless.tracer.numpy.joining import stack, unstack
from tapeless.tracer.numpy.logic import choose_between
from tapeless.tracer.numpy.promotion import array_operand, as_array, cast, mixing_inside, promoted_dtypes
from tapeless.tracer.numpy.sorting import bincount, searchsorted
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import full, reshape, slice_in_dim

# ---- of one coordinate ---------------------------------------------------------------------------------------


@one_program
@mixing_inside
def histogram_bin_edges(a: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None) -> Array:
    """Make edges of equal bins from the least to the greatest element, or over `range`; or return a vector `bins`.

    Args:
      a: real numbers. bins: the number of bins, or the edges.
      range: (least, greatest), the ends.
      weights: has no effect.
    Returns: [bins + 1], in the floating-point dtype of a; from 0 to 1 if there are no elements.
    Raises: ValueError if `bins` is less than 1 or `range` descends, TypeError for complex numbers;
      NotImplementedError for the name of a rule that chooses the bins.
    """
    x = array_operand("histogram_bin_edges", a)
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"histogram: complex numbers have no order: {x.aval}.")
    dtype = dtypes.inexact_of(x.dtype)
    if np.ndim(bins):
        return as_array(cast(array_operand("histogram_bin_edges", bins), dtype))
    if isinstance(bins, str):
        raise NotImplementedError("histogram_bin_edges: bins must be a number or a vector.")
    if operator.index(bins) < 1:
        raise ValueError(f"histogram: bins must be at least 1, not {bins}.")
    low, high = (as_array(cast(v, dtype)) for v in _extent(x, range))
    same = lax.eq(low, high)
    low, high = choose_between(same, subtract(low, 0.5), low), choose_between(same, add(high, 0.5), high)
    return linspace(low, high, operator.index(bins) + 1)


def _extent(x: Array, range: Any) -> tuple[Any, Any]:
    """Return the ends of the bins: `range`, or the extreme elements. Raises: ValueError if `range` descends."""
    if range is None:
        return (reductions.min(x), reductions.max(x)) if x.size else (0, 1)
    low, high = range
    least, greatest = known_elements(low), known_elements(high)
    if least is not None and greatest is not None and least > greatest:
        raise ValueError(f"histogram: range must rise, but is from {low} to {high}.")
    return low, high


@one_program
@mixing_inside
def histogram(
    a: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None, density: bool | None = None
) -> tuple[Array, Array]:
    """Count the elements in each bin. Bins include their lower end, and the last one both ends.

    Args:
      a: real numbers. bins, range: as for `histogram_bin_edges`.
      weights: of the shape of a, how much each element counts, 1 if None.
      density: whether counts are divided by their sum and the widths of the bins.
    Returns: (counts [bins], edges [bins + 1]), both in the floating-point dtype of a and `weights`, as in JAX.
    Raises: ValueError if weights have another shape; as `histogram_bin_edges`.
    """
    x = array_operand("histogram", a)
    weighed = full((), 1, x.dtype) if weights is None else array_operand("histogram", weights)
    if weights is not None and weighed.shape != x.shape:
        raise ValueError(f"histogram: weights {weighed.aval} must have the shape of {x.aval}.")
    dtype = dtypes.inexact_of(dtypes.result_type(x, weighed)[0])
    edges = lax.convert_element_type(histogram_bin_edges(x, bins, range), dtypes.real_part_dtype(dtype))
    place, n = _bins(reshape(x, (x.size,)), array_operand("histogram", bins) if np.ndim(bins) else edges)
    counted = lax.convert_element_type(weighed if weights is None else reshape(weighed, (x.size,)), dtype)
    counts = bincount(place, counted, length=n)
    return (_density(counts, edges), edges) if density else (counts, edges)


def _bins(x: Array, edges: Array) -> tuple[Array, int]:
    """Return the bin of each element of a vector, n if outside, and the number n; compared in the common dtype."""
    x, edges = (as_array(v) for v in promoted_dtypes("histogram", x, edges))
    n = edges.shape[0] - 1
    place = lax.sub(searchsorted(edges, x, "right"), 1)
    place = choose_between(lax.eq(x, getitem(edges, -1)), n - 1, place)
    return choose_between(lax.lt(place, 0), n, place), n


def _density(counts: Array, edges: Array) -> Array:
    widths = lax.sub(slice_in_dim(edges, 1, None), slice_in_dim(edges, 0, -1))
    shares = true_divide(counts, widths)
    return lax.div(shares, reduce_sum(counts, (0,)))


# ---- of several coordinates ----------------------------------------------------------------------------------


@mixing_inside
def histogramdd(
    sample: ArrayLike | Sequence[ArrayLike],
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Count points in d dimensions in each bin of a grid.

    Args:
      sample: points [n, d], or a sequence of d coordinates [n].
      bins: the number of bins along every axis, or for each axis such a number or a vector of edges.
      range: for each axis None or (least, greatest), the ends of equal bins.
      weights: [n], how much each point counts, 1 if None.
      density: whether counts are divided by their sum and the volumes of the bins.
    Returns: counts, with an axis for each coordinate, of the dtype of weights or the default integer, or floating point
      for a density; and a list of the d vectors of edges, floating point.
    Raises: ValueError if shapes do not fit, or not as many bins or ranges as coordinates are given; as
      `histogram_bin_edges`.
    """
    points = sample if isinstance(sample, Sequence) else array_operand("histogramdd", sample)
    points = stack([array_operand("histogramdd", x) for x in points], 1) if isinstance(points, Sequence) else points
    if points.ndim != 2:
        raise ValueError(f"histogramdd: points are a matrix [n, d], not {points.aval}.")
    n, d = points.shape
    each: list[Any] = [*bins] if isinstance(bins, Sequence) or np.ndim(bins) else [bins] * d
    ranges = [None] * d if range is None else list(range)
    if len(each) != d or len(ranges) != d:
        raise ValueError(f"histogramdd: bins for {len(each)} and ranges for {len(ranges)} coordinates, of {d}.")
    weighed = full((n,), 1, dtypes.default_dtype("i")) if weights is None else array_operand("histogramdd", weights)
    if weighed.shape != (n,):
        raise ValueError(f"histogramdd: weights must be a vector [{n}], not {weighed.aval}.")
    columns = unstack(points, axis=1)
    edges = [histogram_bin_edges(x, b, r) for x, b, r in zip(columns, each, ranges, strict=True)]
    counts = _counted(columns, edges, weighed)
    return (_density_of_grid(counts, edges) if density else counts), edges


def _counted(columns: Sequence[Array], edges: Sequence[Array], weights: Array) -> Array:
    """Count points by the flat number of their bin; points outside get a number beyond the grid, and are dropped."""
    flat, outside, shape = full(weights.shape, 0, np.int32), full(weights.shape, False), list[int]()
    for x, e in zip(columns, edges, strict=True):
        place, n = _bins(x, e)
        outside = choose_between(lax.eq(place, n), True, outside)
        flat = add(multiply(flat, n), cast(place, np.dtype(np.int32)))
        shape.append(n)
    size = int(np.prod(shape))
    return reshape(bincount(choose_between(outside, size, flat), weights, length=size), shape)


def _density_of_grid(counts: Array, edges: Sequence[Array]) -> Array:
    found = true_divide(counts, reductions.sum(counts))
    for axis, e in enumerate(edges):
        widths = lax.sub(slice_in_dim(e, 1, None), slice_in_dim(e, 0, -1))
        found = true_divide(
            found, reshape(widths, [widths.size if a == axis else 1 for a in builtins.range(len(edges))])
        )
    return found


@one_program
@mixing_inside
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Count the points (x, y) in each bin of a grid.

    Args:
      x, y: [n].
      bins: a number for both axes, a vector of edges for both, or one of these for each.
      range, weights, density: as for `histogramdd`.
    Returns: (counts, with x along the first axis; edges along x; edges along y).
    Raises: ValueError if x and y differ in size; as `histogramdd`.
    """
    a, b = array_operand("histogram2d", x), array_operand("histogram2d", y)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"histogram2d: x and y must be vectors of one size, not {a.aval} and {b.aval}.")
    pair = isinstance(bins, Sequence) and len(bins) == 2
    edges = bins if pair else [bins, bins]
    found, (along_x, along_y) = histogramdd([a, b], edges, range, weights, density)
    return found, along_x, along_y
