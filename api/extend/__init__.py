"""What libraries that extend transformations use: the names of `jax.extend`, and of `jax.interpreters`."""

from tapeless.extend import core, interpreters

__all__ = ["core", "interpreters"]
