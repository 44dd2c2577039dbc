"""Sharing arrays with other libraries: the names of `jax.dlpack`."""

import typing as _typing

from tapeless.lowering.array import from_dlpack, is_supported_dtype
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["from_dlpack", "is_supported_dtype"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
