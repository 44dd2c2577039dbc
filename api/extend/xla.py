"""Running primitives, and types that are arrays: the names of `jax.interpreters.xla`."""

from tapeless.custom.primitives import apply_primitive
from tapeless.like_jax.array_types import array_types as canonicalize_dtype_handlers
from tapeless.like_jax.array_types import array_types as pytype_aval_mappings

__all__ = ["apply_primitive", "canonicalize_dtype_handlers", "pytype_aval_mappings"]
