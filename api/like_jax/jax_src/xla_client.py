"""Exceptions of the compiled program: the names of `jax._src.lib.xla_client` that libraries use."""

from tapeless.lowering.xla_workarounds.compat import xc as _xc

__all__ = ["XlaRuntimeError"]

XlaRuntimeError = _xc.XlaRuntimeError
