"""Iterative solvers under the names of `scipy.sparse.linalg`."""

import typing as _typing

from tapeless.scipy.iterative.krylov import bicgstab, cg, gmres
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["bicgstab", "cg", "gmres"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
