"""Running primitives: the names of `jax.interpreters.xla`."""

from tapeless.custom.primitives import apply_primitive

__all__ = ["apply_primitive"]
