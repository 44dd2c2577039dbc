"""Pytrees as vectors: the names of `jax.flatten_util`."""

from tapeless.arguments.flat_vectors import ravel_pytree
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["ravel_pytree"]

_complete_namespace(globals())
