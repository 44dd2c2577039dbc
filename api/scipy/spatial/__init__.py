"""Geometry under the names of `scipy.spatial`: `tapeless.scipy.spatial`."""

from tapeless.scipy.spatial import transform

__all__ = ["transform"]
