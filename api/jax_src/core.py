"""Traces, types and primitives: the names of `jax._src.core` that libraries use."""

from tapeless.core import Atom, Trace, Tracer, ensure_compile_time_eval, eval_jaxpr
from tapeless.custom.primitives import LibraryPrimitive as Primitive
from tapeless.custom.program_types import (
    check_jaxpr,
    concrete_or_error,
    is_concrete,
    jaxpr_as_fun,
    subjaxprs,
    trace_state_clean,
)
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from tapeless.tracer.jaxpr import Equation as JaxprEqn
from tapeless.tracer.types import ShapedArray

__all__ = [
    "Atom",
    "ClosedJaxpr",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Primitive",
    "ShapedArray",
    "Trace",
    "Tracer",
    "Var",
    "check_jaxpr",
    "concrete_or_error",
    "ensure_compile_time_eval",
    "eval_jaxpr",
    "is_concrete",
    "jaxpr_as_fun",
    "subjaxprs",
    "trace_state_clean",
]
