"""Rules of one's own for `vmap`, under the names of `jax.custom_batching`."""

from tapeless.custom.vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
