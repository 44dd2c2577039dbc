"""Functions on pytrees, under the short names of `jax.tree`."""

from tapeless.tracer.pytree import broadcast_prefix as broadcast_leaves
from tapeless.tracer.pytree import flatten, flatten_with_path, leaves, leaves_with_path, structure, unflatten
from tapeless.tracer.pytree import tree_all as all
from tapeless.tracer.pytree import tree_map as map
from tapeless.tracer.pytree import tree_map_with_path as map_with_path
from tapeless.tracer.pytree import tree_reduce as reduce
from tapeless.tracer.pytree import tree_transpose as transpose

__all__ = [
    "all",
    "broadcast_leaves",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "structure",
    "transpose",
    "unflatten",
]
