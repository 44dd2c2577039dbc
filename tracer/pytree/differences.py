"""Differences of two structures of pytrees, by key path, for error messages."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from tapeless.tracer.pytree.keypath import DictKey, FlattenedIndexKey, KeyEntry, KeyPath, keystr

if TYPE_CHECKING:
    from tapeless.tracer.pytree.treedef import PyTreeDef

LeafText: TypeAlias = Callable[[str], str]  # describes the leaf at a path
_DICTS: Final = (dict, OrderedDict, defaultdict)
_MOST: Final = 6  # differences, and keys, that a message lists


class Difference(NamedTuple):
    """A path at which two structures have different nodes; None where one has no such path."""

    path: KeyPath
    this: "PyTreeDef | None"
    that: "PyTreeDef | None"


def differences(this: "PyTreeDef", that: "PyTreeDef", *, as_prefix: bool = False) -> Iterator[Difference]:
    """Yield the nodes in which two structures differ, from the first to the last.

    Args:
      as_prefix: whether a leaf of `this` stands for any part of `that`.
    """
    todo: list[Difference] = [Difference((), this, that)]  # a stack, because trees may be deeper than Python's
    while todo:
        path, a, b = found = todo.pop()
        if a is b or (as_prefix and a is not None and a.kind is None and b is not None):
            continue
        children = None if a is None or b is None else _paired(a, b)
        if children is None:
            yield found
            continue
        todo += [Difference((*path, key), x, y) for key, x, y in reversed(children)]


def _a_leaf(path: str) -> str:
    return "a leaf"


def describe_differences(
    found: Iterable[Difference], names: tuple[str, str], leaves: tuple[LeafText, LeafText] = (_a_leaf, _a_leaf)
) -> str:
    """Describe differences of two structures called `names`, each in a line: `  ['b'] is a leaf in x, nothing in y.`"""
    lines: list[str] = []
    for path, *nodes in found:
        at = keystr(path)
        x, y = (describe_node(node, leaf(at)) for node, leaf in zip(nodes, leaves, strict=True))
        lines.append(f"  {at or 'The root'} is {x} in {names[0]}, {y} in {names[1]}.\n")
    return "".join(first(lines))


def compare(this: "PyTreeDef", that: "PyTreeDef", names: tuple[str, str]) -> str:
    """Describe where two structures differ, as lines to append to a message."""
    return "\n" + describe_differences(differences(this, that), names).rstrip("\n")


def first(lines: Sequence[str]) -> list[str]:
    """Return the first lines of a message, and a line with the number of the others."""
    more = len(lines) - _MOST
    return [*lines[:_MOST], *([f"  There {'is' if more == 1 else 'are'} {more} more.\n"] if more > 0 else [])]


def article_of(noun: str) -> str:
    """Return "an" before a vowel, else "a"."""
    return "an" if noun[:1] in tuple("AEIOUaeiou") else "a"


def describe_node(treedef: "PyTreeDef | None", leaf: str = "a leaf") -> str:
    """Describe a node without what is below it: `a tuple of 2`."""
    if treedef is None or treedef.kind is None:
        return "nothing" if treedef is None else leaf
    cls, aux, n = treedef.node.type.cls, treedef.aux, len(treedef.children)
    if cls is type(None):
        return "None"
    article = article_of(cls.__name__)
    if cls in _DICTS:
        keys = [*map(repr, _dict_keys(treedef))]
        shown = ", ".join(keys[:_MOST]) + (f" and {n - _MOST} more" if n > _MOST else "")
        return f"{article} {cls.__name__} with {shown or 'no keys'}"
    own = "" if aux is None or cls in (tuple, list) else f" with {aux!r:.80}"
    return f"{article} {cls.__name__} of {n}{own}"


def _paired(a: "PyTreeDef", b: "PyTreeDef") -> "list[tuple[KeyEntry, PyTreeDef | None, PyTreeDef | None]] | None":
    """Pair the children of two nodes that are equal, or are dicts of one class with common keys; None for others."""
    if len(a.children) == len(b.children) and a.node.same(b.node):
        return [*zip(_keys(a), a.children, b.children, strict=True)]
    if a.node.type.cls not in _DICTS or a.node.type is not b.node.type:
        return None
    x, y = (dict(zip(_dict_keys(part), part.children, strict=True)) for part in (a, b))
    if x.keys() == y.keys() or x.keys().isdisjoint(y):
        return None
    return [(DictKey(key), x.get(key), y.get(key)) for key in dict.fromkeys([*x, *y])]


def _dict_keys(treedef: "PyTreeDef") -> Sequence[Any]:
    return treedef.aux[1] if treedef.node.type.cls is defaultdict else treedef.aux


def _keys(treedef: "PyTreeDef") -> Sequence[KeyEntry]:
    """Return the keys of the children of a node; flat indices if its class fails to make them."""
    node, n = treedef.node, len(treedef.children)
    with suppress(Exception):  # a class may refuse numbers as children
        return [*node.type.keys(node.type.unflatten(node.aux, tuple(range(n))), node.aux, n)]
    return [*map(FlattenedIndexKey, range(n))]
