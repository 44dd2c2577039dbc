"""Interpolation in arrays under the names of `scipy.ndimage`."""

import typing as _typing

from tapeless.tracer.interpolation import map_coordinates
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["map_coordinates"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
