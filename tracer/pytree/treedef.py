"""Structures of pytrees (tree definitions), and flattening of trees into leaves and a structure.

A PyTreeDef is a Node (a type and auxiliary data) with children. Structures are interned, so that flattening a tree of a
known form builds nothing: a node finds its structure by the number of its children if they are leaves, else by their
identities. Three rules keep that sound: a table entry keeps the children alive whose identities are its key; equality
never rests on identity, so the tables may be emptied when they are full; and only auxiliary data of types whose
equality is exact are interned, because a structure must give back the very data it was made from.
"""

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

from tapeless.tracer.caches import exact_key
from tapeless.tracer.pytree import deep_trees
from tapeless.tracer.pytree.codegen import CallCode, builder, caller, matcher
from tapeless.tracer.pytree.deep_trees import DEEP, Flattening, Recursion, trampoline
from tapeless.tracer.pytree.differences import article_of, describe_differences, differences
from tapeless.tracer.pytree.keypath import GetAttrKey, KeyEntry, KeyPath, keystr

# ---- nodes


@dataclass(frozen=True, slots=True, eq=False)
class NodeType:
    """A registered class of nodes: its functions to flatten and unflatten.

    flatten(tree) -> (children, aux); unflatten(aux, children) -> tree; keys(tree, aux, n) -> keys of the n children.
    """

    cls: type
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, tuple[Any, ...]], Any]
    keys: Callable[[Any, Any, int], Iterable[KeyEntry]]


class Node:
    """A node without its children: its type, its auxiliary data, and the structures made of it so far."""

    __slots__ = ("_mutable", "aux", "flats", "interned", "nested", "type")

    def __init__(self, node_type: NodeType, aux: Any, interned: bool) -> None:
        self.type: Final = node_type
        self.aux: Final = aux
        self.interned: Final = interned
        self._mutable: bool | None = None
        self.flats: dict[int, PyTreeDef] = {}
        self.nested: dict[tuple[int, ...], PyTreeDef] = {}

    def flat(self, n: int) -> "PyTreeDef":
        """Return the structure of this node with `n` leaves."""
        return _remember(self.flats, n, PyTreeDef(self, None, n, n + 1, self.interned))

    def nest(self, children: Sequence["PyTreeDef"]) -> "PyTreeDef":
        """Return the structure of this node with these children."""
        if all(child is LEAF for child in children):
            return self.flat(len(children))
        interned = self.interned and all(child.interned for child in children)
        num_leaves = sum([child.num_leaves for child in children])
        num_nodes = sum([child.num_nodes for child in children]) + 1
        made = PyTreeDef(self, tuple(children), num_leaves, num_nodes, interned)
        if made.depth > DEEP:
            hash(made)  # while the hashes of the children are cached: later it would take a deep recursion
        return _remember(self.nested, tuple(map(id, children)), made) if interned else made

    @property
    def is_mutable(self) -> bool:
        """Tell whether the auxiliary data are mutable: data without a hash are taken to be."""
        if self._mutable is None:
            self._mutable = not self.interned and not _has_hash(self.aux)
        return self._mutable

    def snapshot(self) -> "Node":
        """Return this node, with a copy of its auxiliary data if they are mutable."""
        return Node(self.type, _copied(self.aux), False) if self.is_mutable else self

    def same(self, other: "Node") -> bool:
        """Tell whether type and auxiliary data are equal."""
        return self is other or (self.type is other.type and _same(self.aux, other.aux))


_FULL = 4096


def _remember(table: dict[Any, Any], key: Any, value: Any) -> Any:
    """Add an entry to `table` unless another thread was first, and return the entry; a full table is emptied before."""
    if len(table) >= _FULL:
        table.clear()
    return table.setdefault(key, value)


def node_of(node_type: NodeType, aux: Any) -> Node:
    """Return the node of this type and auxiliary data, interned if their equality is exact."""
    exact = exact_key(aux, _no_key)
    if exact is None:
        return Node(node_type, aux, False)
    key = (node_type, exact)
    return _nodes.get(key) or _remember(_nodes, key, Node(node_type, aux, True))


def _no_key(_: Any) -> None:
    """Return the key of auxiliary data whose equality is not exact: there is none."""


_nodes: dict[Any, Node] = {}


def _has_hash(aux: Any) -> bool:
    try:
        hash(aux)
    except TypeError:
        return False
    return True


def _copied(aux: Any) -> Any:
    """Copy mutable auxiliary data, as deeply as possible: modules and locks, for instance, cannot be copied.

    An object with a hash stays the same, as its identity may matter, like that of a marker.
    """
    if _has_hash(aux):
        return aux
    if type(aux) in (tuple, list):
        return type(aux)(map(_copied, aux))
    if type(aux) is dict:
        return {key: _copied(value) for key, value in aux.items()}
    for copied in (copy.deepcopy, copy.copy):
        with suppress(Exception):
            return copied(aux)
    return aux


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is float:
        return a.hex() == b.hex()
    try:
        return bool(a == b)
    except ValueError as error:
        raise ValueError(
            f"structures of pytrees cannot be compared, because the auxiliary data of type {type(a).__name__} in them "
            f"cannot: {error} Auxiliary data must have ==; arrays belong to the children."
        ) from error


# ---- structures


class Children(tuple["PyTreeDef", ...]):
    """The structures of a node's children, as a tuple; a call makes a list of them, as JAX's `treedef.children()`."""

    __slots__ = ()

    def __call__(self) -> "list[PyTreeDef]":
        return list(self)


class PyTreeDef:
    """The structure of a pytree: `*`, a leaf, or a node with children. Equal for trees of the same form, and hashable.

    Auxiliary data need only ==. Data without a hash are taken to be mutable: see `snapshot`.

    Attributes: num_leaves; num_nodes, leaves included; kind (the class of the node, None for a leaf); aux; children.
    """

    __slots__ = (
        "__weakref__",
        "_build",
        "_builds",
        "_children",
        "_hash",
        "_match",
        "depth",
        "interned",
        "node",
        "num_leaves",
        "num_nodes",
    )

    def __init__(
        self, node: Node, children: "tuple[PyTreeDef, ...] | None", num_leaves: int, num_nodes: int, interned: bool
    ) -> None:
        self.node: Final = node
        self._children = children
        self.interned: Final = interned
        self.num_leaves: Final = num_leaves
        self.num_nodes: Final = num_nodes
        self.depth: int = 1 + max([child.depth for child in children or ()], default=0)
        self._hash: int | None = None
        self._match: Callable[[Any], list[Any] | None] | None = None
        self._build: Callable[[Iterable[Any]], Any] | None = None
        self._builds = 0

    @property
    def kind(self) -> type | None:
        return None if self is LEAF else self.node.type.cls

    @property
    def aux(self) -> Any:
        return self.node.aux

    @property
    def is_flat(self) -> bool:
        """Tell whether all children are leaves."""
        return self._children is None and self is not LEAF

    @property
    def children(self) -> "Children":
        flat = () if self is LEAF else (LEAF,) * self.num_leaves
        return Children(flat if self._children is None else self._children)

    def node_data(self) -> tuple[type, Any] | None:
        """Return class and auxiliary data of the node; None for a leaf."""
        return None if self is LEAF else (self.node.type.cls, self.node.aux)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Build the tree with these leaves. Raises: ValueError if there are too many or too few."""
        given = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(f"unflatten: {self} has {self.num_leaves} leaves, but {len(given)} were given.")
        return (self._build or self._walk)(given)

    def _walk(self, leaves: Iterable[Any]) -> Any:
        if self.depth > DEEP:
            return trampoline(deep_trees.unflatten(self, iter(leaves)))
        if self._children is not None:
            self._builds += 1
            if self._builds >= _WORTH_CODE:
                self._build = builder(self)
        return self._filled(iter(leaves))

    def _filled(self, leaves: Iterator[Any]) -> Any:
        node, children = self.node, self._children
        if children is not None:
            return node.type.unflatten(node.aux, tuple([child._filled(leaves) for child in children]))
        if self is LEAF:
            return next(leaves)
        return node.type.unflatten(node.aux, tuple(islice(leaves, self.num_leaves)))

    def match(self, tree: Any) -> list[Any] | None:
        """Return the leaves of `tree` if it has this structure, else None; much faster than `flatten` if it has."""
        if self.depth > DEEP:
            found: list[Any] = []
            same = flatten_deep(tree, lambda path, leaf: found.append(leaf)) == self
            return found if same else None
        if self._match is None:
            self._match = matcher(self, leaf_types.issuperset, openers.__getitem__)
        return self._match(tree)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees of `tree` at the leaves of this structure. Raises: ValueError if they differ."""
        return flatten_up_to(self, tree)

    def snapshot(self) -> "PyTreeDef":
        """Return this structure with copies of mutable auxiliary data, for use as a key of tables."""
        return self if self.interned else trampoline(deep_trees.snapshot(self))

    def compose(self, inner: "PyTreeDef") -> "PyTreeDef":
        """Replace each leaf of the structure by `inner`."""
        return trampoline(deep_trees.compose(self, inner))

    def compose_kept(self, inner: "PyTreeDef") -> "PyTreeDef":
        """Replace each leaf by `inner`, also those of structures that nodes keep as their auxiliary data."""
        return trampoline(deep_trees.compose_kept(self, inner))

    def with_kept(self, inner: "PyTreeDef") -> "PyTreeDef | None":
        """Replace the leaves of the structure that the node keeps by `inner`; None if it keeps none of its children."""
        kept = self.aux
        if not (self.is_flat and isinstance(kept, PyTreeDef) and kept.num_leaves == self.num_leaves):
            return None
        composed = kept.compose(inner)
        return node_of(self.node.type, composed).nest([LEAF] * composed.num_leaves)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        counts = self.num_leaves == other.num_leaves and self.num_nodes == other.num_nodes
        if not counts or not self.node.same(other.node):
            return False
        return trampoline(deep_trees.are_equal(self, other)) if self.depth > DEEP else self._children == other._children

    def __hash__(self) -> int:
        if self._hash is None:
            node = self.node
            self._hash = hash((node.type, _hashed(node), self._children or self.num_leaves))
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        if self is LEAF:
            return _leaf, ()
        return _rebuilt, (self.node.type.cls, self.node.aux, self.children)

    def __repr__(self) -> str:
        return f"PyTreeDef({text_of(self)})"


def _hashed(node: Node) -> int:
    """Hash auxiliary data, or their type alone if they have ==, but no hash."""
    return hash(type(node.aux) if node.is_mutable else node.aux)


_WORTH_CODE = 8  # trees that are built of a structure before code is generated for it
_LEAF_TYPE = NodeType(object, lambda tree: ((), None), lambda aux, children: None, lambda tree, aux, n: ())
LEAF = PyTreeDef(Node(_LEAF_TYPE, None, True), None, 1, 1, True)


def _leaf() -> PyTreeDef:
    return LEAF


def _rebuilt(cls: type, aux: Any, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    classify(cls)
    if cls not in node_types:
        name = f"{article_of(cls.__qualname__)} {cls.__qualname__}"
        raise TypeError(f"this structure of a pytree holds {name}, which is not registered here.")
    return node_of(node_types[cls], aux).nest(children)


def text_of(treedef: PyTreeDef, levels: int = 50) -> str:
    """Print a structure as JAX does: `{'a': *, 'b': (*, None)}`; deeper than `levels` as `...`."""
    if treedef is LEAF:
        return "*"
    if not levels:
        return "..."
    cls, aux, parts = treedef.node.type.cls, treedef.aux, [text_of(child, levels - 1) for child in treedef.children]
    if cls is type(None):
        return "None"
    if cls is tuple:
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if cls is list:
        return f"[{', '.join(parts)}]"
    if cls is dict:
        return f"{{{', '.join(f'{key!r}: {part}' for key, part in zip(aux, parts, strict=True))}}}"
    label = f"namedtuple[{cls.__name__}]" if issubclass(cls, tuple) and aux is None else f"{cls.__name__}[{aux}]"
    return f"CustomNode({label}, [{', '.join(parts)}])"


# ---- flatten

Opener: TypeAlias = Callable[[Any], tuple[Sequence[Any], Node]]

openers: dict[type, Opener] = {}
node_types: dict[type, NodeType] = {}
leaf_types: set[type] = set()
classes_lock: Final = threading.RLock()


def opener(node_type: NodeType) -> Opener:
    """Make the function that splits an instance into its children and its node."""
    flatten = node_type.flatten

    def opened(tree: Any) -> tuple[Sequence[Any], Node]:
        pair = flatten(tree)
        if type(pair) is not tuple or len(pair) != 2:
            raise TypeError(
                f"the flatten function of {node_type.cls.__name__} must return (children, auxiliary data): {pair!r}."
            )
        children = pair[0] if isinstance(pair[0], (tuple, list)) else tuple(pair[0])
        return children, node_of(node_type, pair[1])

    return opened


def classify(cls: type) -> Opener | None:
    """Return the opener of a class, None if its instances are leaves; a class seen first is recorded as either."""
    with classes_lock:
        if cls not in openers and issubclass(cls, tuple) and hasattr(cls, "_fields"):
            declare(_named_tuple_type(cls))
        if cls not in openers:
            if len(leaf_types) >= _FULL:
                leaf_types.clear()
            leaf_types.add(cls)
        return openers.get(cls)


def declare(node_type: NodeType, opened: Opener | None = None) -> None:
    """Record a class in the tables of nodes: its instances are nodes from now on."""
    with classes_lock:
        node_types[node_type.cls] = node_type
        openers[node_type.cls] = opened or opener(node_type)
        leaf_types.discard(node_type.cls)


def _named_tuple_type(cls: Any) -> NodeType:
    return NodeType(
        cls,
        lambda tree: (tuple(tree), None),
        lambda aux, children: cls(*children),
        lambda tree, aux, n: map(GetAttrKey, cls._fields),
    )


def flatten_into(tree: Any, leaves: list[Any]) -> PyTreeDef:
    """Append the leaves of `tree` to `leaves`, and return its structure."""
    opened = openers.get(type(tree)) or classify(type(tree))
    if opened is None:
        leaves.append(tree)
        return LEAF
    children, node = opened(tree)
    if leaf_types.issuperset(map(type, children)):
        leaves.extend(children)
        n = len(children)
        return node.flats.get(n) or node.flat(n)
    parts: list[PyTreeDef] = []
    for child in children:
        if type(child) in leaf_types:
            leaves.append(child)
            parts.append(LEAF)
        else:
            parts.append(flatten_into(child, leaves))
    return node.nested.get(tuple(map(id, parts))) or node.nest(parts)


def flatten_deep(
    tree: Any,
    add: Callable[[KeyPath, Any], None],
    stops: Callable[[KeyPath, Any], bool] | None = None,
    paths: bool = False,
) -> PyTreeDef:
    """Return the structure of a tree of any depth; call `add` with (path, leaf) for each leaf, () unless `paths`.

    Raises: RecursionError if the tree contains itself.
    """

    def opened(path: KeyPath, part: Any) -> Any:
        found = None if stops is not None and stops(path, part) else classify(type(part))
        return None if found is None else found(part)

    return trampoline(deep_trees.flatten((), tree, Flattening(opened, LEAF, add, paths, {})))


# ---- calling


def caller_of(parts: CallCode) -> Callable[[tuple[Any, ...], dict[str, Any]], Any] | None:
    """Generate the code of a call, see `codegen.caller`; None if a structure is too deep for it, or too large."""
    given: Any = parts.arguments
    made: Any = parts.results
    if max(given.depth, made.depth) > DEEP or given.num_nodes + made.num_nodes > _MOST_CALLED:
        return None
    if not made.interned:
        parts = parts._replace(build=lambda leaves: made.snapshot().unflatten(leaves))
    return caller(parts, openers.__getitem__)


_MOST_CALLED = 20_000  # nodes: code for more takes half a second


# ---- comparing a structure with a tree


class _Mismatch(Exception):
    """A structure and a tree differ."""


def flatten_up_to(
    treedef: PyTreeDef,
    tree: Any,
    who: str = "flatten_up_to",
    names: tuple[str, str] = ("the structure", "the tree"),
) -> list[Any]:
    """Return the subtrees of `tree` at the leaves of `treedef`.

    Raises: ValueError, in the name of `who`, if they differ, with the paths and both `names`.
    """
    found: list[Any] = []
    try:
        trampoline(_collect_up_to(treedef, tree, found))
    except _Mismatch:
        raise ValueError(_explained(who, names, treedef, tree)) from None
    return found


def _collect_up_to(treedef: PyTreeDef, tree: Any, found: list[Any]) -> Recursion:
    if treedef is LEAF:
        found.append(tree)
        return
    opened = openers.get(type(tree))
    if opened is None:
        raise _Mismatch
    children, node = opened(tree)
    if len(children) != len(treedef.children) or not node.same(treedef.node):
        raise _Mismatch
    if treedef.is_flat:
        found.extend(children)
        return
    for i, part in enumerate(treedef.children):
        yield _collect_up_to(part, children[i], found)


def _explained(who: str, names: tuple[str, str], treedef: PyTreeDef, tree: Any) -> str:
    this, that = names
    kinds: dict[str, str] = {}
    there = flatten_deep(tree, lambda path, leaf: kinds.update({keystr(path): type(leaf).__name__}), paths=True)
    told = describe_differences(
        differences(treedef, there, as_prefix=True),
        names,
        (lambda path: "a leaf", lambda path: f"a leaf of type {kinds.get(path)}"),
    )
    return (
        f"{who}: {that} does not match {this}.\n{told}"
        f"  They must have the same nodes; only where {this} has a leaf may {that} have anything."
    )
