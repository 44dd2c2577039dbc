"""Linear maps without matrices, under the names of `scipy.sparse`: `tapeless.scipy.sparse`."""

import typing as _typing

from tapeless.scipy.sparse import linalg
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["linalg"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
