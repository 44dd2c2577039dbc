"""One vector of the leaves of a pytree: the name of `jax._src.flatten_util` that libraries use."""

from tapeless.flatten_util import ravel_pytree

__all__ = ["ravel_pytree"]
