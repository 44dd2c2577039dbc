"""Interpolation on grids under the names of `scipy.interpolate`."""

import typing as _typing

from tapeless.tracer.grid_interpolation import RegularGridInterpolator
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["RegularGridInterpolator"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
