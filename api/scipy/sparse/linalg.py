"""Iterative solvers under the names of `scipy.sparse.linalg`."""

from tapeless.scipy.iterative.krylov import bicgstab, cg, gmres
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["bicgstab", "cg", "gmres"]

_complete_namespace(globals())
