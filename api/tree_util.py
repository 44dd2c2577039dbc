"""Functions on pytrees, under the names of `jax.tree_util`."""

from tapeless.tracer.pytree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Partial,
    PyTreeDef,
    SequenceKey,
    all_leaves,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    tree_all,
    tree_map,
    tree_map_with_path,
    tree_reduce,
    tree_transpose,
)
from tapeless.tracer.pytree import flatten as tree_flatten
from tapeless.tracer.pytree import flatten_with_path as tree_flatten_with_path
from tapeless.tracer.pytree import leaves as tree_leaves
from tapeless.tracer.pytree import leaves_with_path as tree_leaves_with_path
from tapeless.tracer.pytree import structure as tree_structure
from tapeless.tracer.pytree import unflatten as tree_unflatten

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
]
