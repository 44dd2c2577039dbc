"""Types of tracing under JAX's names: those of `jax.core`, and `Primitive` of `jax.extend.core`."""

from tapeless.custom.primitives import LibraryPrimitive as Primitive
from tapeless.like_jax.array_types import array_types as pytype_aval_mappings
from tapeless.like_jax.library_traces import LibraryTrace as Trace
from tapeless.like_jax.program_types import eval_jaxpr
from tapeless.tracer.core import Tracer
from tapeless.tracer.folding import ensure_compile_time_eval
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.types import ShapedArray
from tapeless.tracer.types import ShapedArray as AbstractValue

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "AbstractValue", "Atom", "Primitive", "ShapedArray", "Trace", "Tracer", "ensure_compile_time_eval", "eval_jaxpr",
    "pytype_aval_mappings",
]  # fmt: skip
# ---- end of what is written

_complete_namespace(globals())
