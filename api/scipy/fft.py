"""Cosine transforms under the names of `scipy.fft`: `tapeless.scipy.fft`."""

import typing as _typing

from tapeless.tracer.cosine_transforms import dct, dctn, idct, idctn
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["dct", "dctn", "idct", "idctn"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
