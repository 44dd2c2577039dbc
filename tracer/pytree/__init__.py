"""Pytrees: flatten nested containers of arrays into leaves and a structure (tree definition), and unflatten them.

Nodes are tuples, lists, dicts (in the order of their sorted keys), OrderedDict, defaultdict, deque, named tuples, None,
and registered classes; a type counts exactly, so an instance of a subclass is a leaf. Everything else is a leaf. Names
and meanings are JAX's (jax.tree, jax.tree_util). Knowingly different: a deque is a node, and auxiliary data are equal
only if their types are (1, 1.0 and True are three), so that no structure is taken for one with another dtype in it.

Paths are in keypath.py, structures in treedef.py, the kinds of nodes and their registration in registry.py.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from tapeless.tracer.pytree.differences import (
    article_of,
    compare,
    describe_differences,
    describe_node,
    differences,
    first,
)
from tapeless.tracer.pytree.keypath import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    keystr,
)
from tapeless.tracer.pytree.registry import (
    Partial,
    is_tree_node,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    static,
)
from tapeless.tracer.pytree.treedef import (
    LEAF,
    PyTreeDef,
    caller_of,
    classify,
    flatten_deep,
    flatten_into,
    flatten_up_to,
    node_types,
)

__all__ = [
    "LEAF",
    "PyTreeDef",
    "caller_of",
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "SequenceKey",
    "keystr",
    "flatten",
    "unflatten",
    "leaves",
    "structure",
    "flatten_with_path",
    "leaves_with_path",
    "flatten_up_to",
    "flatten_one_level",
    "all_leaves",
    "flatten_one_level_with_keys",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_all",
    "tree_transpose",
    "broadcast_prefix",
    "tree_broadcast",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
    "article_of",
    "compare",
    "describe_differences",
    "describe_node",
    "differences",
    "first",
    "Partial",
    "is_tree_node",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "static",
]

IsLeaf: TypeAlias = Callable[[Any], bool]
_UNGIVEN: Any = object()

# ---- flatten and unflatten


def flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """Return the leaves of a tree, in order, and its structure.

    Args:
      tree: any object.
      is_leaf: called with each part of the tree; a node for which it returns true is a leaf.
    Raises: ValueError if a dict's keys cannot be sorted; RecursionError if the tree contains itself.

    >>> flatten({"b": [1, 2], "a": None})
    ([1, 2], PyTreeDef({'a': None, 'b': [*, *]}))
    """
    found: list[Any] = []
    try:
        return found, flatten_into(tree, found) if is_leaf is None else _flatten_until(tree, found, is_leaf)
    except RecursionError:  # the tree is deep, or Python's stack nearly full
        found = []
    stops = None if is_leaf is None else lambda path, part: is_leaf(part)
    return found, flatten_deep(tree, lambda path, leaf: found.append(leaf), stops)


def _flatten_until(tree: Any, found: list[Any], is_leaf: IsLeaf) -> PyTreeDef:
    opened = None if is_leaf(tree) else classify(type(tree))
    if opened is None:
        found.append(tree)
        return LEAF
    children, node = opened(tree)
    return node.nest([_flatten_until(child, found, is_leaf) for child in children])


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Make a tree from a structure and leaves. Raises: ValueError if there are too many or too few."""
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Return the leaves of a tree, in order."""
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf | None = None) -> PyTreeDef:
    """Return the structure of a tree."""
    return flatten(tree, is_leaf)[1]


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Tell whether all items are leaves."""
    return all(classify(type(x)) is None or (is_leaf is not None and is_leaf(x)) for x in iterable)


def flatten_one_level(tree: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the children and auxiliary data of a node. Raises: ValueError if it is a leaf."""
    opened = classify(type(tree))
    if opened is None:
        name = type(tree).__name__
        raise ValueError(f"flatten_one_level: {article_of(name)} {name} is a leaf, which has no children.")
    children, node = opened(tree)
    return tuple(children), node.aux


def flatten_one_level_with_keys(tree: Any) -> tuple[tuple[tuple[KeyEntry, Any], ...], Any]:
    """Return pairs of a key and a child, and auxiliary data, of a node. Raises: ValueError if it is a leaf."""
    children, aux = flatten_one_level(tree)
    keys = node_types[type(tree)].keys(tree, aux, len(children))
    return tuple(zip(keys, children, strict=True)), aux


# ---- with paths


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Return pairs of a path and a leaf, in order, and the structure.

    Args:
      tree, is_leaf: as in `flatten`.
      is_leaf_takes_path: whether `is_leaf` is called with (path, node) instead of (node).

    >>> flatten_with_path({"a": [1]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    pairs: list[tuple[KeyPath, Any]] = []

    def stops(path: KeyPath, part: Any) -> bool:
        return is_leaf is not None and (is_leaf(path, part) if is_leaf_takes_path else is_leaf(part))

    try:
        return pairs, _flatten_onto(pairs, (), tree, stops)
    except RecursionError:  # the tree is deep, or Python's stack nearly full
        pairs = []
    return pairs, flatten_deep(tree, lambda path, leaf: pairs.append((path, leaf)), stops, paths=True)


def _flatten_onto(
    pairs: list[tuple[KeyPath, Any]], path: KeyPath, part: Any, stops: Callable[[KeyPath, Any], bool]
) -> PyTreeDef:
    """Append the leaves of a part of a tree, with their paths; return the structure of the part."""
    opened = None if stops(path, part) else classify(type(part))
    if opened is None:
        pairs.append((path, part))
        return LEAF
    children, node = opened(part)
    keys = node.type.keys(part, node.aux, len(children))
    return node.nest([_flatten_onto(pairs, (*path, key), x, stops) for key, x in zip(keys, children, strict=True)])


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Return pairs of a path and a leaf, in order."""
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


# ---- over leaves


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Apply `f` to each leaf of `tree` and the corresponding leaves of `rest`, and return the tree of the results.

    Raises: ValueError if a tree of `rest` lacks a node of `tree`; names the path and both trees.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """
    first, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([*map(f, first)])
    return treedef.unflatten([f(*xs) for xs in zip(first, *_alike("tree_map", treedef, rest), strict=True)])


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function to each path and leaf, and return the tree of the results: see `tree_map`."""
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = _alike("tree_map_with_path", treedef, rest)
    return treedef.unflatten([f(*pair, *xs) for pair, *xs in zip(pairs, *others, strict=True)])


def _alike(who: str, treedef: PyTreeDef, rest: tuple[Any, ...]) -> list[list[Any]]:
    return [flatten_up_to(treedef, tree, who, ("tree 1", f"tree {i}")) for i, tree in enumerate(rest, 2)]


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _UNGIVEN, is_leaf: IsLeaf | None = None
) -> Any:
    """Reduce the leaves by a function of two, as `functools.reduce` does."""
    found = leaves(tree, is_leaf)
    return (
        functools.reduce(function, found) if initializer is _UNGIVEN else functools.reduce(function, found, initializer)
    )


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _UNGIVEN, is_leaf: IsLeaf | None = None
) -> Any:
    """Reduce the leaves by an associative function, in a balanced order of depth log(n).

    Raises: TypeError if there is no leaf and no `identity`.
    """
    found = leaves(tree, is_leaf)
    if not found and identity is _UNGIVEN:
        raise TypeError("tree_reduce_associative: a tree without leaves needs an identity.")
    while len(found) > 1:
        pairs = [operation(x, y) for x, y in zip(found[::2], found[1::2], strict=False)]
        found = [*pairs, found[-1]] if len(found) % 2 else pairs
    return found[0] if found else identity


def tree_all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Tell whether all leaves are true."""
    return all(leaves(tree, is_leaf))


# ---- prefixes


def broadcast_prefix(
    prefix: Any, full: Any, is_leaf: IsLeaf | None = None, *, who: str = "broadcast_prefix", name: str = "the prefix"
) -> list[Any]:
    """Repeat each leaf of `prefix` for every leaf of `full` below its place.

    Args:
      prefix: a tree that ends where `full` does, or earlier.
      full: a tree.
      is_leaf: which nodes of `prefix` are leaves, for instance None.
      who, name: the function and the argument that an error is about.
    Raises: ValueError where `prefix` has a node and `full` has not; names the path and both trees.

    >>> broadcast_prefix({"a": 0, "b": 1}, {"a": [10, 20], "b": 30})
    [0, 0, 1]
    """
    marks, treedef = flatten(prefix, is_leaf)
    subtrees = flatten_up_to(treedef, full, who, (name, "the full tree"))
    return [mark for mark, subtree in zip(marks, subtrees, strict=True) for _ in leaves(subtree)]


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Repeat the leaves of `prefix_tree` to a tree like `full_tree`. Raises: as `broadcast_prefix`."""
    treedef = structure(full_tree)
    return treedef.unflatten(
        broadcast_prefix(prefix_tree, full_tree, is_leaf, who="tree_broadcast", name="prefix_tree")
    )


# ---- structures


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children."""
    return list(treedef.children)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Tell whether a structure is a leaf, or a node without children, as in JAX."""
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Make the structure of a tuple of trees with these structures."""
    return structure(()).node.nest(list(treedefs))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Transpose an outer tree of inner trees into an inner tree of outer trees.

    Args:
      outer_treedef: structure whose leaves are inner trees. A node may keep a structure as its auxiliary data, whose
        leaves are its children; the same node of the tree has the structure of all that is below it.
      inner_treedef: structure of the inner trees; that of the first one if None.
      pytree_to_transpose: the tree.
    Raises: ValueError if the tree is not of these structures, or if there is no inner tree to take the structure from.

    >>> tree_transpose(structure([0, 0]), structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    inner = inner_treedef
    if inner is not None:
        found, there = flatten(pytree_to_transpose)
        if there == outer_treedef.compose_kept(inner):
            columns = [found[i :: inner.num_leaves] for i in range(inner.num_leaves)]
            return inner.unflatten([outer_treedef.unflatten(column) for column in columns])
    inner_trees = flatten_up_to(outer_treedef, pytree_to_transpose, "tree_transpose", ("outer_treedef", "the tree"))
    if inner is None and not inner_trees:
        raise ValueError(f"tree_transpose: {outer_treedef} has no leaves to see inner_treedef of: give it.")
    inner = structure(inner_trees[0]) if inner is None else inner
    rows = [
        flatten_up_to(inner, tree, "tree_transpose", ("inner_treedef", f"inner tree {i}"))
        for i, tree in enumerate(inner_trees)
    ]
    return inner.unflatten([outer_treedef.unflatten(column) for column in zip(*rows, strict=True)])
