"""Tracers of programs, and dead code elimination: the names of `jax.interpreters.partial_eval`."""

from tapeless.custom.program_types import dce_jaxpr
from tapeless.tracer.staging import StagedTracer as DynamicJaxprTracer

__all__ = ["DynamicJaxprTracer", "dce_jaxpr"]
