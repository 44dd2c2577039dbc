"""Minima under the names of `scipy.optimize`: `tapeless.scipy.optimize`."""

from tapeless.scipy.iterative.minimization import OptimizeResults, minimize
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["OptimizeResults", "minimize"]

_complete_namespace(globals())
