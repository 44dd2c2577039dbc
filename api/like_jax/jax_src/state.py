"""Types of references: the module of `jax._src.state` that libraries use."""

from tapeless import ref as types

__all__ = ["types"]
