"""The registry of pytrees, in which flax looks classes up: the name of `jax._src.tree_util` that it uses."""

from tapeless.tracer.pytree.treedef import node_types as _registry

__all__ = ["_registry"]
