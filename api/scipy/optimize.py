"""Minima under the names of `scipy.optimize`: `tapeless.scipy.optimize`."""

import typing as _typing

from tapeless.scipy.iterative.minimization import OptimizeResults, minimize
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["OptimizeResults", "minimize"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
