"""Running programs: the names of `jax._src.dispatch` that libraries use."""

from tapeless.custom.primitives import apply_primitive
from tapeless.lowering.host import effects_barrier as wait_for_tokens

__all__ = ["apply_primitive", "wait_for_tokens"]
