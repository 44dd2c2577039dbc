"""Vector quantization under the names of `scipy.cluster.vq`."""

import typing as _typing

from tapeless.tracer.late_imports import imported_late as _imported_late
from tapeless.tracer.vector_quantization import vq

__all__ = ["vq"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
