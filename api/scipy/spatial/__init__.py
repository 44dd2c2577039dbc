"""Geometry under the names of `scipy.spatial`: `tapeless.scipy.spatial`."""

from tapeless.scipy.spatial import transform
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["transform"]

_complete_namespace(globals())
