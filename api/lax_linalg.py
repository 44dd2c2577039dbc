"""Triangular factors and systems, under the names of `jax.lax.linalg`."""

from tapeless.tracer.primitives.linalg import cholesky, triangular_solve

__all__ = ["cholesky", "triangular_solve"]
