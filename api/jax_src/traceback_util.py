"""Whose lines messages name: what libraries use of `jax._src.traceback_util`."""

from tapeless.tracer.source import include_frame, register_exclusion

__all__ = ["include_frame", "register_exclusion"]
