"""Programs, their types and primitives of one's own: the names of `jax.extend.core`."""

from tapeless.custom.primitives import LibraryPrimitive as Primitive
from tapeless.extend import primitives
from tapeless.like_jax.hijax import Effect
from tapeless.like_jax.library_traces import TraceTag, set_current_trace, take_current_trace
from tapeless.like_jax.program_types import (
    check_jaxpr,
    concrete_or_error,
    find_top_trace,
    get_opaque_trace_state,
    jaxpr_as_fun,
    jaxprs_in_params,
    mapped_aval,
    subjaxprs,
    unmapped_aval,
    valid_jaxtype,
)
from tapeless.tracer.dtypes import tangent_dtype as primal_dtype_to_tangent_dtype
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from tapeless.tracer.jaxpr import Equation as JaxprEqn

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "ClosedJaxpr", "Effect", "Jaxpr", "JaxprEqn", "Literal", "Primitive", "TraceTag", "Var", "check_jaxpr",
    "concrete_or_error", "find_top_trace", "get_opaque_trace_state", "jaxpr_as_fun", "jaxprs_in_params", "mapped_aval",
    "primal_dtype_to_tangent_dtype", "primitives", "set_current_trace", "subjaxprs", "take_current_trace",
    "unmapped_aval", "valid_jaxtype",
]  # fmt: skip
# ---- end of what is written
