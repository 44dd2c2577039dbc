"""Interpolation in arrays under the names of `scipy.ndimage`."""

from tapeless.tracer.interpolation import map_coordinates

__all__ = ["map_coordinates"]
