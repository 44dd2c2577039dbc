"""Rotations under the names of `scipy.spatial.transform`."""

import typing as _typing

from tapeless.tracer.late_imports import imported_late as _imported_late
from tapeless.tracer.rotations import Rotation, Slerp

__all__ = ["Rotation", "Slerp"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
