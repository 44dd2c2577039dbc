"""Functions on pytrees, under the names of `jax.tree_util`."""

import typing as _typing

from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.pytree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    Partial,
    PyTreeDef,
    SequenceKey,
    all_leaves,
    broadcast_prefix,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    tree_all,
    tree_broadcast,
    tree_map,
    tree_map_with_path,
    tree_reduce,
    tree_reduce_associative,
    tree_transpose,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)
from tapeless.tracer.pytree import flatten as tree_flatten
from tapeless.tracer.pytree import flatten_with_path as tree_flatten_with_path
from tapeless.tracer.pytree import leaves as tree_leaves
from tapeless.tracer.pytree import leaves_with_path as tree_leaves_with_path
from tapeless.tracer.pytree import structure as tree_structure
from tapeless.tracer.pytree import unflatten as tree_unflatten

if _typing.TYPE_CHECKING:
    from tapeless.like_jax.default_registry import default_registry

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef", "SequenceKey",
    "all_leaves", "broadcast_prefix", "default_registry", "flatten_one_level", "flatten_one_level_with_keys",
    "is_tree_node", "keystr", "register_dataclass", "register_pytree_node", "register_pytree_node_class",
    "register_pytree_with_keys", "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path",
    "tree_reduce", "tree_reduce_associative", "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children",
    "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip

_LATE = {
    "like_jax.default_registry": "default_registry",
}  # fmt: skip
# ---- end of what is written

_complete_namespace(globals(), _LATE)
