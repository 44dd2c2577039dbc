"""Frames that messages name: the functions of `jax._src.traceback_util` that libraries use."""

from tapeless.tracer.source import include_frame, register_exclusion

__all__ = ["include_frame", "register_exclusion"]
