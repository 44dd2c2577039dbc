"""Rules of primitives, one module for each transformation: the names of `jax.interpreters`."""

from tapeless.extend import ad, batching, mlir, partial_eval, xla

__all__ = ["ad", "batching", "mlir", "partial_eval", "xla"]
