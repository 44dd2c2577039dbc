"""Tracers of programs, dead code elimination, and partial evaluation: the names of `jax.interpreters.partial_eval`."""

from tapeless.like_jax.partial_values import PartialVal, trace_to_jaxpr_dynamic, trace_to_jaxpr_nounits
from tapeless.like_jax.program_types import dce_jaxpr
from tapeless.tracer.staging import StagedTracer as DynamicJaxprTracer

__all__ = ["DynamicJaxprTracer", "PartialVal", "dce_jaxpr", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"]
