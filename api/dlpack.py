"""Sharing arrays with other libraries: the names of `jax.dlpack`."""

from tapeless.lowering.array import from_dlpack, is_supported_dtype
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["from_dlpack", "is_supported_dtype"]

_complete_namespace(globals())
