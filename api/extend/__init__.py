"""Modules for libraries that extend transformations: `jax.extend` and `jax.interpreters`."""

from tapeless.extend import core, interpreters

__all__ = ["core", "interpreters"]
