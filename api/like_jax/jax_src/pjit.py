"""The primitive of calls: the name of `jax._src.pjit` that libraries use."""

from tapeless.tracer.primitives.call import jit_p

__all__ = ["jit_p"]
