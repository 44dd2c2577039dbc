"""Interpolation on grids under the names of `scipy.interpolate`."""

from tapeless.tracer.grid_interpolation import RegularGridInterpolator

__all__ = ["RegularGridInterpolator"]
