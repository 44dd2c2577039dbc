"""Frames that messages name: the functions of `jax._src.traceback_util` that libraries use."""

from tapeless.tracer.source import api_boundary, include_frame, register_exclusion

__all__ = ["api_boundary", "include_frame", "register_exclusion"]
