"""Rules of one's own for `vmap`, under the names of `jax.custom_batching`."""

from tapeless.custom.vmap import custom_vmap, sequential_vmap
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["custom_vmap", "sequential_vmap"]

_complete_namespace(globals())
