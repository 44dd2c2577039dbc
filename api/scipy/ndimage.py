"""Interpolation in arrays under the names of `scipy.ndimage`."""

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    broadcast,
    mixing_inside,
    number_operand,
    promoted_inexact_dtypes,
)

__all__ = ["map_coordinates"]


@mixing_inside
def map_coordinates(
    input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str = "constant", cval: ArrayLike = 0.0
) -> Array:
    """Interpolate an array at positions between its elements.

    Args:
      input: an array of d axes.
      coordinates: d arrays of positions, one for each axis, which broadcast; element i is at position i.
      order: 0 for the nearest element, 1 for linear interpolation.
      mode: how the array continues beyond its edges: "constant" with elements `cval`, with interpolation between these
        and the edges ("grid-constant" in SciPy); "nearest" with the element at the edge; "wrap" periodically
        ("grid-wrap" in SciPy); "mirror" and "reflect" by reflection, about the last element or the edge.
      cval: a number.
    Returns: the shape of the coordinates, and the dtype of input; integers are rounded.
    Raises: ValueError if there is not one array of coordinates for each axis, or an axis has no elements; TypeError
      for complex coordinates; NotImplementedError for another order or mode.
    """
    x = number_operand("map_coordinates", input)
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates: order must be 0 or 1, not {order}: splines are not there.")
    if mode not in _INSIDE:
        raise NotImplementedError(f"map_coordinates: mode must be one of {', '.join(_INSIDE)}, not {mode!r}.")
    if len(coordinates) != x.ndim or not x.ndim:
        raise ValueError(f"map_coordinates: one array of places for each axis of {x.aval}, not {len(coordinates)}.")
    if not x.size:
        raise ValueError(f"map_coordinates: {x.aval} has no elements to interpolate.")
    places = promoted_inexact_dtypes("map_coordinates", *coordinates)
    if dtypes.is_complex(places[0].dtype):
        raise TypeError(f"map_coordinates: coordinates must be real: {as_array(places[0]).aval}.")
    values = map(as_array, broadcast("map_coordinates", *places))
    outside = array_operand("map_coordinates", cval).astype(x.dtype)
    return _interpolated(x, outside, *values, order=int(order), mode=mode)


@core.compound
def _interpolated(x: Any, outside: Any, *places: Any, order: int, mode: str) -> Any:
    neighbours = [_neighbours(p, order) for p in places]
    total: Any = 0
    for corner in itertools.product(*neighbours):
        indices = tuple(_INSIDE[mode](i, n) for (i, _), n in zip(corner, x.shape, strict=True))
        value = x[indices]
        if mode == "constant":
            inside = [(i >= 0) & (i < n) for (i, _), n in zip(corner, x.shape, strict=True)]
            value = tnp.where(functools.reduce(operator.and_, inside), value, outside)
        total = total + functools.reduce(operator.mul, [w for _, w in corner]) * value
    return (tnp.round(total) if dtypes.kind(x.dtype) in "iub" else total).astype(x.dtype)


def _neighbours(place: Any, order: int) -> list[tuple[Any, Any]]:
    """Return the index and the weight of each element beside a position."""
    if order == 0:
        half_away = tnp.trunc(place + tnp.copysign(0.5, place))
        return [(half_away.astype(np.int32), tnp.ones_like(place))]
    below = tnp.floor(place)
    index, weight = below.astype(np.int32), place - below
    return [(index, 1 - weight), (index + 1, weight)]


def _mirrored(i: Any, n: int) -> Any:
    last = n - 1
    return tnp.abs((i + last) % (2 * last) - last) if last else 0 * i


_INSIDE: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda i, n: tnp.clip(i, 0, n - 1),
    "nearest": lambda i, n: tnp.clip(i, 0, n - 1),
    "wrap": lambda i, n: i % n,
    "mirror": _mirrored,
    "reflect": lambda i, n: (_mirrored(2 * i + 1, 2 * n + 1) - 1) // 2,
}


_complete_namespace(globals())
