"""Traces, types and primitives: the names of `jax._src.core` that libraries use."""

from tapeless.core import AbstractValue, Atom, Trace, Tracer, ensure_compile_time_eval, eval_jaxpr
from tapeless.custom.primitives import LibraryPrimitive as Primitive
from tapeless.like_jax.library_traces import TraceTag, set_current_trace, take_current_trace
from tapeless.like_jax.program_types import (
    check_jaxpr,
    concrete_or_error,
    full_lower,
    is_concrete,
    jaxpr_as_fun,
    subjaxprs,
    trace_state_clean,
)
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from tapeless.tracer.jaxpr import Equation as JaxprEqn
from tapeless.tracer.types import ShapedArray

__all__ = [
    "AbstractValue",
    "Atom",
    "ClosedJaxpr",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Primitive",
    "ShapedArray",
    "Trace",
    "TraceTag",
    "Tracer",
    "Var",
    "check_jaxpr",
    "concrete_or_error",
    "ensure_compile_time_eval",
    "eval_jaxpr",
    "full_lower",
    "is_concrete",
    "jaxpr_as_fun",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "trace_state_clean",
]
