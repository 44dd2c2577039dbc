"""Sharing arrays with other libraries: the names of `jax.dlpack`."""

from tapeless.lowering.array import from_dlpack, is_supported_dtype

__all__ = ["from_dlpack", "is_supported_dtype"]
