"""Norms of vectors and matrices.

Where a norm has a kink its derivative is the smallest subgradient, so 0 where the norm is 0: see docs/linalg.md.
"""

from collections.abc import Callable

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.arithmetic import select
from tapeless.tracer.numpy.promotion import array_operand, cast, inexact, strong
from tapeless.tracer.numpy.reductions import Axis, checked_axes, total
from tapeless.tracer.numpy.shaping import moveaxis
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import listed_axes
from tapeless.tracer.primitives.reduction import reduce_max, reduce_min, reduce_sum
from tapeless.tracer.primitives.shape import expand_dims
from tapeless.tracer.primitives.spectral import svd

Order = int | float | str | None


@one_program
def norm(x: ArrayLike, ord: Order = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """Compute the norm of vectors or matrices.

    Args:
      x: numbers; integers become floating point.
      ord: of vectors 2 (also None), inf, -inf, 0 (the count of nonzero elements), or p, for the p-th root of the sum of
        p-th powers; of matrices "fro" (also None), "nuc", 1, -1, 2, -2, inf, -inf.
      axis: the axis of vectors, or the two of matrices; None for a vector or a matrix, or, if `ord` is None, for any
        array as one vector.
      keepdims: keep the axes, with size 1.
    Returns: real, the shape of x without the axes.
    Raises: ValueError if there is no such norm or axis, for a minimum over no elements, or if x has other than one or
      two axes and neither `ord` nor `axis` says what to do; TypeError for norms by singular values, "nuc", 2 and -2, of
      half precision.
    Source: numpy.linalg.norm.
    """
    operand = inexact("norm", array_operand("norm", x))
    if axis is None:
        if ord is None or operand.ndim == 1:
            return _vectors("norm", operand, ord, tuple(range(operand.ndim)), keepdims)
        if operand.ndim != 2:
            raise ValueError(f"norm: of {operand.aval} ord={ord!r} is not defined: pass axis, one of it or two.")
        return _matrices("norm", operand, ord, (0, 1), keepdims)
    axes = tuple(listed_axes(axis))
    given = tuple(checked_axes("norm", operand, d)[0] for d in axes)
    if len(axes) == 1:
        return _vectors("norm", operand, ord, given, keepdims)
    checked_axes("norm", operand, axes)
    if len(axes) != 2:
        raise ValueError(f"norm: axis={axis!r} has {len(axes)} axes: vectors have one and matrices two.")
    return _matrices("norm", operand, ord, given, keepdims)


@one_program
def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: Order = 2) -> Array:
    """Compute the norm of vectors.

    Args:
      x: numbers; integers become floating point.
      axis: the axis of vectors, or several, flattened to one; None for all.
      keepdims: keep the axes, with size 1.
      ord: 2, inf, -inf, 0 or p, as for `norm`.
    Returns: real, the shape of x without the axes.
    Raises: ValueError if there is no such norm, or an axis is out of range or named twice.
    """
    operand = inexact("vector_norm", array_operand("vector_norm", x))
    return _vectors("vector_norm", operand, ord, checked_axes("vector_norm", operand, axis), keepdims)


@one_program
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Order = "fro") -> Array:
    """Compute the norm of the matrices in the last two axes.

    Args:
      x: [.., m, n]; integers become floating point.
      keepdims: keep the axes, with size 1.
      ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf, as for `norm`.
    Returns: [..], real.
    Raises: ValueError if x has fewer than two axes or there is no such norm; TypeError for norms by singular values,
      "nuc", 2 and -2, of half precision.
    """
    operand = inexact("matrix_norm", array_operand("matrix_norm", x))
    if operand.ndim < 2:
        raise ValueError(f"matrix_norm: a matrix has at least two axes, [.., m, n]: {operand.aval}.")
    return _matrices("matrix_norm", operand, ord, (operand.ndim - 2, operand.ndim - 1), keepdims)


# ---- vectors -------------------------------------------------------------------------------------------------


def _vectors(name: str, x: Array, ord: Order, axes: tuple[int, ...], keepdims: bool) -> Array:
    if isinstance(ord, str):
        raise ValueError(f"{name}: vectors have no norm ord={ord!r}: it is a number, or None for 2.")
    y = _vector_norm(strong(x), ord=2 if ord is None else ord, axes=axes)
    return expand_dims(y, axes) if keepdims and axes else y


@core.compound
def _vector_norm(x: Array, *, ord: int | float, axes: tuple[int, ...]) -> Array:
    if ord == 2:
        return _euclidean(x, axes)
    sizes = lax.abs(x)
    if ord == np.inf:
        return _greatest(sizes, axes)
    if ord == -np.inf:
        return _least(sizes, axes)
    if ord == 0:
        return reduce_sum(lax.convert_element_type(lax.ne(x, 0), sizes.dtype), axes)
    return total(sizes, axes) if ord == 1 else _root_of_powers(sizes, float(ord), axes)


def _greatest(sizes: Array, axes: tuple[int, ...]) -> Array:
    """Compute the maximum over axes; 0 for no elements."""
    return (reduce_max if sizes.size else reduce_sum)(sizes, axes)


def _least(sizes: Array, axes: tuple[int, ...]) -> Array:
    """Compute the minimum over axes. Raises: ValueError if there are no elements."""
    if any(sizes.shape[d] == 0 for d in axes):
        raise ValueError(f"norm: there is no least of the sizes {sizes.aval} over axes {axes}, which have no elements.")
    return reduce_min(sizes, axes)


def _euclidean(x: Array, axes: tuple[int, ...]) -> Array:
    wide = _wide(x)
    return cast(lax.root_of_squares(reduce_sum(_squared_size(wide), axes)), dtypes.real_part_dtype(x.dtype))


def _wide(x: Array) -> Array:
    """Convert half precision to float32, which squares do not overflow."""
    return cast(x, np.dtype(np.float32)) if dtypes.is_float(x.dtype) and dtypes.bits_of(x.dtype) < 32 else x


def _squared_size(x: Array) -> Array:
    if not dtypes.is_complex(x.dtype):
        return lax.square(x)
    return lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))


def _root_of_powers(sizes: Array, p: float, axes: tuple[int, ...]) -> Array:
    """Compute (sum of sizes**p)**(1/p) over `axes`; a size of 0 has the power 0, or infinity if p is negative."""
    powers = away_from(0.0, lambda y: lax.pow(y, p), _wide(sizes))
    found = away_from(0.0 if p > 0 else np.inf, lambda y: lax.pow(y, 1 / p), total(powers, axes))
    return cast(found, sizes.dtype)


# ---- matrices ------------------------------------------------------------------------------------------------


_OF_MATRICES = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)


def _matrices(name: str, x: Array, ord: Order, axes: tuple[int, ...], keepdims: bool) -> Array:
    if ord not in _OF_MATRICES:
        raise ValueError(
            f"{name}: matrices have no norm ord={ord!r}: it is 'fro', 'nuc', 1, -1, 2, -2, inf, -inf or None."
        )
    y = _matrix_norm(strong(x), ord=ord, axes=axes)
    return expand_dims(y, tuple(sorted(axes))) if keepdims else y


@core.compound
def _matrix_norm(x: Array, *, ord: Order, axes: tuple[int, ...]) -> Array:
    x, n = moveaxis(x, axes, (-2, -1)), x.ndim
    if ord is None or ord == "fro":
        return _euclidean(x, (n - 2, n - 1))
    extreme = _greatest if ord in (1, 2, np.inf) else _least
    if ord in ("nuc", 2, -2):
        values = svd(x, compute_uv=False)
        return (reduce_sum if ord == "nuc" else extreme)(values, (n - 2,))
    if ord in (1, -1):
        return extreme(total(lax.abs(x), (n - 2,)), (n - 2,))
    return extreme(total(lax.abs(x), (n - 1,)), (n - 2,))


# ---- kinks ---------------------------------------------------------------------------------------------------


def away_from(point: float, f: Callable[[Array], Array], x: Array) -> Array:
    """Compute f(x), with derivative 0 at `point`, where that of f is infinite."""
    there = lax.eq(x, point)
    return select(there, f(lax.stop_gradient(x)), f(select(there, 1.0, x)))
