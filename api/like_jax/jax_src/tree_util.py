"""Names of `jax._src.tree_util`: the registry of pytrees, in which flax looks classes up, and children of nodes."""

from tapeless.tracer.pytree.treedef import node_types as _registry
from tapeless.tree_util import flatten_one_level

__all__ = ["_registry", "flatten_one_level"]
