"""The registry of pytree node classes as an object, for libraries that use `tree_util.default_registry`."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from tapeless.tracer.pytree import (
    IsLeaf,
    KeyPath,
    PyTreeDef,
    flatten,
    flatten_one_level,
    flatten_one_level_with_keys,
    flatten_with_path,
    register_dataclass,
    register_pytree_node,
)
from tapeless.tracer.pytree.treedef import classify


class PyTreeRegistry:
    """The registry of all classes whose instances are nodes. There is one, `default_registry`."""

    def flatten(self, tree: Any, leaf_predicate: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
        """Return the leaves of a tree, in order, and its structure."""
        return flatten(tree, leaf_predicate)

    def flatten_with_path(
        self, tree: Any, leaf_predicate: Callable[[KeyPath, Any], bool] | None = None
    ) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
        """Return pairs of a path and a leaf, in order, and the structure; `leaf_predicate` takes (path, node)."""
        return flatten_with_path(tree, leaf_predicate, is_leaf_takes_path=True)

    def flatten_one_level(self, tree: Any) -> tuple[Sequence[Any], Any] | None:
        """Return children and auxiliary data of a node; None for a leaf."""
        return flatten_one_level(tree) if self.is_node(type(tree)) else None

    def flatten_one_level_with_keys(self, tree: Any) -> tuple[Sequence[tuple[Any, Any]], Any] | None:
        """Return pairs of a key and a child, and auxiliary data, of a node; None for a leaf."""
        return flatten_one_level_with_keys(tree) if self.is_node(type(tree)) else None

    def is_node(self, type: type) -> bool:
        """Tell whether instances of a class are nodes, those of named tuples included."""
        return classify(type) is not None

    def register_node(
        self,
        type: type,
        to_iterable: Callable[[Any], tuple[Any, Any]],
        from_iterable: Callable[[Any, Any], Any],
        to_iterable_with_keys: Callable[[Any], tuple[Any, Any]] | None = None,
    ) -> None:
        """Register a class as a pytree node: see `register_pytree_node`, also for the errors raised."""
        register_pytree_node(type, to_iterable, from_iterable, to_iterable_with_keys)

    def register_dataclass_node(self, type: type, data_fields: Sequence[str], meta_fields: Sequence[str], /) -> None:
        """Register a dataclass as a pytree node: see `register_dataclass`, also for the errors raised."""
        register_dataclass(type, data_fields, meta_fields)


default_registry: Final = PyTreeRegistry()
