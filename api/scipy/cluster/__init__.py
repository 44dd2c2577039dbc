"""Clusters under the names of `scipy.cluster`: `tapeless.scipy.cluster`."""

from tapeless.scipy.cluster import vq
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["vq"]

_complete_namespace(globals())
