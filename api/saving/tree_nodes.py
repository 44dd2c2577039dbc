"""Descriptions of trees in files: nodes and leaves in preorder, as lists that JSON can write.

    ["tuple", n]  ["list", n]  ["dict", keys]  ["OrderedDict", keys]  ["deque", n, maxlen]  ["None"]
    ["class", "module:name", names]      a named tuple or a registered class, and the names of its children
    ["array", name, dtype, shape, crc32, weak]   an array of the file; weak says that its dtype gives way
    ["key", name, "fry", shape, crc32]           keys of random numbers, by their words; or "rbg", "urbg"
    ["bool", true]  ["int", 5]  ["float", "0x1.8p+0"]  ["complex", "0x0p+0", "0x1p+0"]  ["str", "text"]

The children of a node follow it. Keys of dicts are written as scalars are; integers of more than 53 bits as hexadecimal
digits, floats in C's hexadecimal form, both exactly. A list has no depth, so that no tree is too
deep to be read. A class is never looked up by its name: it comes from the tree that the reader gives.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from tapeless.tracer import pytree
from tapeless.tracer.pytree import KeyPath
from tapeless.tracer.pytree.treedef import classify

Node: TypeAlias = list[Any]
_PLAIN = (bool, int, float, complex, str)


class TreePart(NamedTuple):
    """A node or a leaf of a tree: its path, its description, None for a leaf that is no scalar, and the value."""

    path: KeyPath
    node: Node | None
    value: Any


def parts(tree: Any) -> Iterator[TreePart]:
    """List the nodes and leaves of a tree, in preorder. Raises: TypeError for a key of a dict that is no scalar."""
    todo: list[tuple[KeyPath, Any]] = [((), tree)]
    while todo:
        path, part = todo.pop()
        if type(part) in _PLAIN:
            yield TreePart(path, scalar_node(part), part)
        elif classify(type(part)) is None:
            yield TreePart(path, None, part)
        else:
            children, aux = pytree.flatten_one_level_with_keys(part)
            yield TreePart(path, _container_node(path, type(part), aux, [key for key, _ in children]), part)
            todo += [((*path, key), child) for key, child in reversed(children)]


def _container_node(path: KeyPath, cls: type, aux: Any, keys: Sequence[Any]) -> Node:
    if cls in (tuple, list):
        return [cls.__name__, len(keys)]
    if cls in (dict, OrderedDict):
        return [cls.__name__, [_key_node(path, key.key) for key in keys]]
    if cls is deque:
        return ["deque", len(keys), aux]
    if cls is type(None):
        return ["None"]
    return ["class", f"{cls.__module__}:{cls.__qualname__}", [str(key) for key in keys]]


def _key_node(path: KeyPath, key: Any) -> Node:
    if type(key) not in _PLAIN:
        raise TypeError(
            f"save: the dict {format_path(path)} has the key {key!r} of type {type(key).__name__}; "
            "files have keys that are strings or numbers."
        )
    return scalar_node(key)


def format_path(path: KeyPath) -> str:
    """Print a path, for a message."""
    return f"at {pytree.keystr(path)}" if path else "at the root"


# ---- scalars -------------------------------------------------------------------------------------------------


def scalar_node(x: Any) -> Node:
    """Describe a Python number, truth value or string exactly."""
    kind = type(x)
    if kind is int:
        return ["int", x if abs(x) < 2**53 else hex(x)]
    if kind is float:
        return ["float", x.hex()]
    return ["complex", x.real.hex(), x.imag.hex()] if kind is complex else [kind.__name__, x]


def scalar(node: Node) -> Any:
    """Return the scalar of a description. Raises: ValueError, OverflowError if it is not one, whatever it holds."""
    match node:
        case ["bool", bool(x)] | ["str", str(x)]:
            return x
        case ["int", int(x)] if type(x) is int:
            return x
        case ["int", str(text)]:
            return int(text, 16)
        case ["float", str(text)]:
            return float.fromhex(text)
        case ["complex", str(real), str(imag)]:
            return complex(float.fromhex(real), float.fromhex(imag))
        case _:
            raise ValueError(f"{node!r} is no scalar")


# ---- building ------------------------------------------------------------------------------------------------


def children_of(node: Any) -> int | None:
    """Count the parts that follow as children of a node; None for a leaf.

    Raises: ValueError, OverflowError if it is no description of either.
    """
    match node:
        case ["tuple" | "list", int(n)] | ["deque", int(n), None] if type(n) is int and n >= 0:
            return n
        case ["deque", int(n), int(limit)] if type(n) is type(limit) is int and 0 <= n <= limit:
            return n
        case ["dict" | "OrderedDict", list(keys)] if len(set(map(scalar, keys))) == len(keys):
            return len(keys)
        case ["class", str(), list(names)] if all(type(name) is str for name in names):
            return len(names)
        case ["None"]:
            return 0
        case ["array", str(), str(), list(), int(), bool()] | ["key", str(), str(), list(), int()]:
            return None
        case _:
            scalar(node)
            return None


def check_whole(nodes: Sequence[Any]) -> None:
    """Check that descriptions are those of one tree: as many parts as the nodes have places.

    Raises: ValueError, OverflowError if they are not, or one of them is none.
    """
    places = 1
    for node in nodes:
        if places == 0:
            raise ValueError("it goes on after its end")
        places += (children_of(node) or 0) - 1
    if places:
        raise ValueError(f"it ends with {places} places empty")


def build_tree(nodes: Sequence[Node], leaf: Callable[[Node], Any]) -> Any:
    """Build the tree of whole descriptions, none of a class; `leaf` gives the value of each leaf."""
    values: list[Any] = []
    for node in reversed(nodes):
        n = children_of(node)
        values.append(leaf(node) if n is None else _container(node, [values.pop() for _ in range(n)]))
    return values[0]


def _container(node: Node, children: list[Any]) -> Any:
    match node:
        case ["tuple", _]:
            return tuple(children)
        case ["list", _]:
            return children
        case ["dict", keys]:
            return dict(zip(map(scalar, keys), children, strict=True))
        case ["OrderedDict", keys]:
            return OrderedDict(zip(map(scalar, keys), children, strict=True))
        case ["deque", _, limit]:
            return deque(children, limit)
        case _:
            return None
