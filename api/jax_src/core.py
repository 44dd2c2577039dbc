"""Traces and types: the names of `jax._src.core` that libraries use."""

from tapeless.custom.program_types import trace_state_clean
from tapeless.tracer.types import ShapedArray

__all__ = ["ShapedArray", "trace_state_clean"]
