"""Interpolation on grids under the names of `scipy.interpolate`."""

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.promotion import array_operand, inexact, number_operand

__all__ = ["RegularGridInterpolator"]


_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """Linear or nearest-neighbour interpolation of values on a rectangular grid, which may be unevenly spaced."""

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = np.nan,
    ):
        """Make the interpolator; calling it evaluates it.

        Args:
          points: d vectors, ascending, of at least two elements: the coordinates of the grid along each axis.
          values: [n.., ..] at the points of the grid, n.. being the lengths of these vectors.
          method: "linear" or "nearest".
          bounds_error: must be False; positions outside of the grid give `fill_value`.
          fill_value: a number; None to extrapolate.
        Raises: ValueError if shapes do not fit, or for another method; TypeError for a complex fill value of real
          values; NotImplementedError for `bounds_error`, as positions are not known while tracing.
        """
        _check_method(method)
        if bounds_error:
            raise NotImplementedError("RegularGridInterpolator: places are not known beforehand: bounds_error=False.")
        self.method: Final = method
        self.bounds_error: Final = False
        self.grid: Final = tuple(number_operand("RegularGridInterpolator", p) for p in points)
        self.values: Final = array_operand("RegularGridInterpolator", inexact("RegularGridInterpolator", values))
        sizes = self.values.shape[: len(self.grid)]
        if any(p.ndim != 1 or p.size < 2 for p in self.grid) or tuple(p.size for p in self.grid) != sizes:
            given = ", ".join(str(p.aval) for p in self.grid)
            raise ValueError(f"RegularGridInterpolator: points {given} are no grid for values {self.values.aval}.")
        self.fill_value: Final = None if fill_value is None else number_operand("RegularGridInterpolator", fill_value)
        fill = self.fill_value
        if fill is not None and dtypes.is_complex(fill.dtype) and not dtypes.is_complex(self.values.dtype):
            raise TypeError(f"RegularGridInterpolator: fill_value {fill.aval} for values {self.values.aval}.")

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """Interpolate at positions.

        Args:
          xi: [.., d]; [k] for one axis, or a single position for several; or a tuple of d arrays, which broadcast.
          method: the one given to the constructor if None.
        Returns: the leading axes of the positions, then the axes of `values` behind those of the grid.
        Raises: ValueError for positions of other dimensions, or another method.
        """
        how = self.method if method is None else method
        _check_method(how)
        d = len(self.grid)
        given: list[Any] = list(xi) if isinstance(xi, tuple) else [xi]
        if len(given) > 1:
            places = tnp.stack(tnp.broadcast_arrays(*given), -1)
        else:
            places = number_operand("RegularGridInterpolator", given[0])
            if places.ndim == 1:
                places = places.reshape(-1, 1) if d == 1 else places.reshape(1, -1)
        if not places.ndim or places.shape[-1] != d:
            raise ValueError(f"RegularGridInterpolator: places {places.aval} must have {d} elements in the last axis.")
        flat = places.reshape(-1, d)
        found = _interpolated(flat, self.values, *self.grid, method=how)
        if self.fill_value is not None:
            outside = _outside(flat, *self.grid).reshape(-1, *(1,) * (found.ndim - 1))
            found = tnp.where(outside, self.fill_value.astype(found.dtype), found)
        return found.reshape(*places.shape[:-1], *self.values.shape[d:])


def _check_method(method: str) -> None:
    if method not in _METHODS:
        raise ValueError(f"RegularGridInterpolator: method must be 'linear' or 'nearest', not {method!r}.")


@core.compound
def _outside(places: Any, *grid: Any) -> Any:
    found: Any = False
    for i, p in enumerate(grid):
        x = places[:, i]
        found = found | ~((x >= p[0]) & (x <= p[-1]))
    return found


@core.compound
def _interpolated(places: Any, values: Any, *grid: Any, method: str) -> Any:
    corners: list[list[tuple[Any, Any]]] = []
    for i, p in enumerate(grid):
        x = places[:, i]
        k = tnp.clip(tnp.searchsorted(p, x) - 1, 0, p.shape[0] - 2)
        part = (x - p[k]) / (p[k + 1] - p[k])
        if method == "nearest":
            corners.append([(tnp.where(part <= 0.5, k, k + 1), None)])
        else:
            corners.append([(k, 1 - part), (k + 1, part)])
    if method == "nearest":
        return values[tuple(c[0][0] for c in corners)]
    total: Any = 0
    for corner in itertools.product(*corners):
        weight: Any = 1
        for _, w in corner:
            weight = weight * w
        value = values[tuple(k for k, _ in corner)]
        total = total + value * weight.astype(value.dtype).reshape(-1, *(1,) * (value.ndim - 1))
    return total


_complete_namespace(globals())
