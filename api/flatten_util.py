"""Pytrees as vectors: the names of `jax.flatten_util`."""

from tapeless.arguments.flat_vectors import ravel_pytree

__all__ = ["ravel_pytree"]
