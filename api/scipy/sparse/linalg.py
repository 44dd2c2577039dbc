"""Iterative solvers under the names of `scipy.sparse.linalg`."""

from tapeless.scipy.iterative.krylov import bicgstab, cg, gmres

__all__ = ["bicgstab", "cg", "gmres"]
