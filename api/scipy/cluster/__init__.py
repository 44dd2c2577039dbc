"""Clusters under the names of `scipy.cluster`: `tapeless.scipy.cluster`."""

import typing as _typing

from tapeless.scipy.cluster import vq
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["vq"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
