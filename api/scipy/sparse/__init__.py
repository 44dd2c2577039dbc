"""Linear maps without matrices, under the names of `scipy.sparse`: `tapeless.scipy.sparse`."""

from tapeless.scipy.sparse import linalg
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["linalg"]

_complete_namespace(globals())
