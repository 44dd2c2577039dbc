"""Geometry under the names of `scipy.spatial`: `tapeless.scipy.spatial`."""

import typing as _typing

from tapeless.scipy.spatial import transform
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["transform"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
