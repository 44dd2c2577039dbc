"""Pytrees: nested containers of leaves. Tuples, lists, dicts (sorted by key), named tuples, None, and what users register.

flatten(tree) -> (leaves, structure); unflatten(structure, leaves) -> tree. A structure is hashable and equal
to that of any tree of the same form. Meanings and names are JAX's (jax.tree, jax.tree_util).
"""

import collections
import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

# ---- structures ----------------------------------------------------------------------------------------------


class PyTreeDef:
    """The structure of a pytree: a leaf, or a node of some type with auxiliary data and children."""

    __slots__ = ("_hash", "aux", "children", "kind", "num_leaves", "num_nodes")

    def __init__(self, kind: Any, aux: Any, children: tuple["PyTreeDef", ...]) -> None:
        self.kind, self.aux, self.children = kind, aux, children
        self.num_leaves: int = sum([c.num_leaves for c in children]) if kind is not None else 1
        self.num_nodes: int = 1 + sum([c.num_nodes for c in children])
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        same = self.kind is other.kind and self.num_leaves == other.num_leaves
        return same and self.aux == other.aux and self.children == other.children

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.kind, self.aux if self.kind is not dict else tuple(self.aux), self.children))
        return self._hash

    def __reduce__(self) -> Any:
        return (_leaf, ()) if self.kind is None else (PyTreeDef, (self.kind, self.aux, self.children))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves."""
        return unflatten(self, leaves)

    def __repr__(self) -> str:
        return f"PyTreeDef({_text(self)})"


LEAF = PyTreeDef(None, None, ())


def _leaf() -> PyTreeDef:
    return LEAF


def _text(tree: PyTreeDef) -> str:
    parts = [_text(c) for c in tree.children]
    if tree.kind is None:
        return "*"
    if tree.kind is type(None):
        return "None"
    if tree.kind is tuple:
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if tree.kind is list:
        return f"[{', '.join(parts)}]"
    if tree.kind is dict:
        return f"{{{', '.join(f'{k!r}: {p}' for k, p in zip(tree.aux, parts))}}}"
    return f"CustomNode({tree.kind.__name__}[{tree.aux}], [{', '.join(parts)}])"


# ---- registration --------------------------------------------------------------------------------------------


class _Node(NamedTuple):
    flatten: Callable[[Any], tuple[Iterable[Any], Hashable]]
    unflatten: Callable[[Any, Any], Any]
    keys: Callable[[Any], Iterable[Any]] | None


_nodes: dict[type, _Node] = {}


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]] | None = None,
) -> None:
    """Make instances of a class nodes: `flatten_func(x) -> (children, aux)`, `unflatten_func(aux, children) -> x`.

    Raises: ValueError if the class is registered already.
    """
    if nodetype in _nodes:
        raise ValueError(f"{nodetype.__name__} is registered as a pytree node already.")
    with_keys = flatten_with_keys_func
    keys = None if with_keys is None else lambda x: [key for key, _ in with_keys(x)[0]]
    _nodes[nodetype] = _Node(flatten_func, unflatten_func, keys)


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Like `register_pytree_node`, from a function that gives (key, child) pairs."""

    def plain(x: Any) -> tuple[Iterable[Any], Hashable]:
        pairs, aux = flatten_with_keys(x)
        return [child for _, child in pairs], aux

    register_pytree_node(nodetype, flatten_func or plain, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Any) -> Any:
    """Class decorator: the class has `tree_flatten(self)` and the class method `tree_unflatten(aux, children)`."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: Any) -> Any:
    """Class decorator: the class has `tree_flatten_with_keys` and `tree_unflatten`."""
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten)
    return cls


def register_dataclass(
    nodetype: Any, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None
) -> Any:
    """Make a dataclass a node: `data_fields` are children, `meta_fields` auxiliary (hashable) data.

    Without fields given, those whose metadata says `static=True` are auxiliary.
    """
    fields = [f for f in dataclasses.fields(nodetype) if f.init]
    static = tuple(f.name for f in fields if f.metadata.get("static"))
    meta = tuple(meta_fields) if meta_fields is not None else static
    data = tuple(data_fields) if data_fields is not None else tuple(f.name for f in fields if f.name not in meta)

    def parts(x: Any) -> tuple[Iterable[Any], Hashable]:
        return [getattr(x, name) for name in data], tuple(getattr(x, name) for name in meta)

    def build(aux: Any, children: Any) -> Any:
        return nodetype(**dict(zip(data, children)), **dict(zip(meta, aux)))

    register_pytree_node(nodetype, parts, build)
    _nodes[nodetype] = _nodes[nodetype]._replace(keys=lambda x: [GetAttrKey(name) for name in data])
    return nodetype


def register_static(cls: Any) -> Any:
    """Make instances of a class auxiliary data without leaves; they must be hashable."""
    register_pytree_node(cls, lambda x: ((), x), lambda aux, _: aux)
    return cls


_nodes[tuple] = _Node(lambda x: (x, None), lambda aux, xs: tuple(xs), None)
_nodes[list] = _Node(lambda x: (x, None), lambda aux, xs: list(xs), None)
_nodes[type(None)] = _Node(lambda x: ((), None), lambda aux, xs: None, None)


def _sorted_keys(x: Any) -> tuple[Any, ...]:
    try:
        return tuple(sorted(x))
    except TypeError:
        raise ValueError(f"the keys of a dict in a pytree must be sortable, not {list(x)!r}.") from None


def _flatten_dict(x: Any) -> tuple[Iterable[Any], Hashable]:
    keys = _sorted_keys(x)
    return [x[k] for k in keys], keys


_nodes[dict] = _Node(_flatten_dict, lambda aux, xs: dict(zip(aux, xs)), lambda x: map(DictKey, _sorted_keys(x)))
_nodes[collections.OrderedDict] = _Node(
    lambda x: (list(x.values()), tuple(x)),
    lambda aux, xs: collections.OrderedDict(zip(aux, xs)),
    lambda x: map(DictKey, x),
)
_nodes[collections.defaultdict] = _Node(
    lambda x: (_flatten_dict(x)[0], (x.default_factory, _sorted_keys(x))),
    lambda aux, xs: collections.defaultdict(aux[0], zip(aux[1], xs)),
    lambda x: map(DictKey, _sorted_keys(x)),
)
_nodes[collections.deque] = _Node(lambda x: (x, x.maxlen), lambda aux, xs: collections.deque(xs, aux), None)


def _node(x: Any) -> _Node | None:
    """How `type(x)` is taken apart; None for a leaf."""
    kind = type(x)
    found = _nodes.get(kind)
    if found is None and isinstance(x, tuple) and hasattr(kind, "_fields"):
        fields = kind._fields  # type: ignore[attr-defined]
        found = _nodes[kind] = _Node(
            lambda x: (tuple(x), None), lambda aux, xs: kind(*xs), lambda x: map(GetAttrKey, fields)
        )
    return found


# ---- flatten and unflatten -----------------------------------------------------------------------------------


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Leaves of a tree, in order, and its structure."""
    leaves: list[Any] = []
    try:
        return leaves, _flatten_into(tree, leaves, is_leaf)
    except RecursionError:
        raise ValueError("the pytree is nested too deeply, or contains itself.") from None


def _flatten_into(x: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> PyTreeDef:
    node = _nodes.get(type(x)) or _node(x)
    if node is None or (is_leaf is not None and is_leaf(x)):
        leaves.append(x)
        return LEAF
    children, aux = node.flatten(x)
    parts = tuple([_flatten_into(child, leaves, is_leaf) for child in children])
    kind = type(x)
    if aux is None and parts.count(LEAF) == len(parts):
        key = (kind, len(parts))
        return _flat_defs.get(key) or _flat_defs.setdefault(key, PyTreeDef(kind, None, parts))
    return PyTreeDef(kind, aux, parts)


_flat_defs: dict[Any, PyTreeDef] = {}


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves. Raises: ValueError if there are too many or too few."""
    given = list(leaves)
    if len(given) != treedef.num_leaves:
        raise ValueError(f"{treedef} has {treedef.num_leaves} leaves, but {len(given)} were given.")
    return _build(treedef, iter(given))


def _build(treedef: PyTreeDef, leaves: Any) -> Any:
    if treedef.kind is None:
        return next(leaves)
    return _nodes[treedef.kind].unflatten(treedef.aux, [_build(c, leaves) for c in treedef.children])


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Leaves of a tree, in order."""
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """Structure of a tree."""
    return flatten(tree, is_leaf)[1]


def all_leaves(items: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether no item is a node."""
    return all(_node(x) is None or (is_leaf is not None and is_leaf(x)) for x in items)


# ---- paths ---------------------------------------------------------------------------------------------------


class DictKey(NamedTuple):
    """Position in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class SequenceKey(NamedTuple):
    """Position in a tuple or list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


class GetAttrKey(NamedTuple):
    """Name of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(NamedTuple):
    """Position among the children of a registered node without keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyPath = tuple[Any, ...]


def keystr(path: KeyPath) -> str:
    """`['a'][0].x`."""
    return "".join(map(str, path))


def _child_keys(x: Any, node: _Node, n: int) -> Iterable[Any]:
    if node.keys is not None:
        return node.keys(x)
    return map(SequenceKey if isinstance(x, (tuple, list, collections.deque)) else FlattenedIndexKey, range(n))


def flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """(path, leaf) pairs of a tree, in order, and its structure."""
    pairs: list[tuple[KeyPath, Any]] = []

    def visit(x: Any, path: KeyPath) -> None:
        node = _node(x)
        if node is None or (is_leaf is not None and is_leaf(x)):
            pairs.append((path, x))
            return
        children = list(node.flatten(x)[0])
        for key, child in zip(_child_keys(x, node, len(children)), children, strict=True):
            visit(child, (*path, key))

    visit(tree, ())
    return pairs, structure(tree, is_leaf)


def leaves_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[KeyPath, Any]]:
    """(path, leaf) pairs of a tree, in order."""
    return flatten_with_path(tree, is_leaf)[0]


# ---- maps ----------------------------------------------------------------------------------------------------


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree with `f` applied to its leaves, and to the subtrees of `rest` at the same places.

    Raises: ValueError if a tree of `rest` has not the structure of the first; the path and both sides are named.
    """
    first, treedef = flatten(tree, is_leaf)
    others = [flatten_up_to(treedef, other) for other in rest]
    return unflatten(treedef, map(f, first, *others))


def tree_map_with_path(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Like `tree_map`, with the path of each leaf as first argument of `f`."""
    pairs, treedef = flatten_with_path(tree, is_leaf)
    others = [flatten_up_to(treedef, other) for other in rest]
    return unflatten(treedef, [f(path, x, *more) for (path, x), *more in zip(pairs, *others)])


def flatten_up_to(treedef: PyTreeDef, tree: Any) -> list[Any]:
    """The subtrees of `tree` at the leaves of `treedef`. Raises: ValueError naming the path where they differ."""
    found: list[Any] = []

    def visit(part: PyTreeDef, x: Any, path: KeyPath) -> None:
        if part.kind is None:
            found.append(x)
            return
        node = _node(x)
        if node is None or type(x) is not part.kind:
            raise ValueError(_mismatch(path, part, x))
        children, aux = node.flatten(x)
        children = list(children)
        if aux != part.aux or len(children) != len(part.children):
            raise ValueError(_mismatch(path, part, x))
        for key, p, child in zip(_child_keys(x, node, len(children)), part.children, children):
            visit(p, child, (*path, key))

    visit(treedef, tree, ())
    return found


def _mismatch(path: KeyPath, want: PyTreeDef, have: Any) -> str:
    where = keystr(path) or "the top"
    return f"pytrees differ in structure at {where}: {want} and {structure(have)}."


def broadcast_prefix(prefix: Any, full: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Leaves of `prefix`, each repeated for every leaf of `full` below it.

    Raises: ValueError naming the path where `prefix` is not a prefix of `full`.
    """
    marks, treedef = flatten(prefix, is_leaf)
    result: list[Any] = []
    for mark, subtree in zip(marks, flatten_up_to(treedef, full), strict=True):
        result += [mark] * structure(subtree).num_leaves
    return result


def tree_reduce(f: Callable[[Any, Any], Any], tree: Any, *initializer: Any, is_leaf: Any = None) -> Any:
    """`f` folded over the leaves."""
    return functools.reduce(f, leaves(tree, is_leaf), *initializer)


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves are true."""
    return all(leaves(tree, is_leaf))


def compose(outer: PyTreeDef, inner: PyTreeDef) -> PyTreeDef:
    """The structure of `outer` with `inner` at each leaf."""
    if outer.kind is None:
        return inner
    return PyTreeDef(outer.kind, outer.aux, tuple(compose(c, inner) for c in outer.children))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, tree: Any) -> Any:
    """From an outer tree of inner trees to an inner tree of outer trees."""
    inner = inner_treedef or structure(flatten_up_to(outer_treedef, tree)[0])
    flat, treedef = flatten(tree)
    if treedef != compose(outer_treedef, inner):
        raise ValueError(f"tree_transpose: {treedef} is not {inner} inside {outer_treedef}.")
    n = inner.num_leaves
    return unflatten(inner, [unflatten(outer_treedef, flat[i::n]) for i in range(n)])


class Partial(functools.partial[Any]):
    """functools.partial as a pytree: its arguments are children, its function is auxiliary data."""


register_pytree_with_keys(
    Partial,
    lambda p: (((GetAttrKey("args"), p.args), (GetAttrKey("keywords"), p.keywords)), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
