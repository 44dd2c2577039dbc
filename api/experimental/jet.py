"""Taylor mode: the names of `jax.experimental.jet`."""

from tapeless.differentiate.taylor_mode import jet

__all__ = ["jet"]
