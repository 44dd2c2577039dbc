"""Process pytrees of any depth by trampolines, without Python's stack, which ends after 1000 calls.

A recursive function is written as a generator that yields calls of itself, and is sent their results. It costs several
times as much as a plain function, so treedef.py flattens and unflattens with it only if a structure is deep.
"""

import operator
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

from tapeless.tracer.pytree.differences import article_of
from tapeless.tracer.pytree.keypath import KeyPath

DEEP = 100  # levels: structures with more are processed by trampolines, without generated code
_ENDLESS = 100_000  # levels: a tree with more is taken to contain itself, as flattening may make new nodes each time

Recursion: TypeAlias = Generator[Any, Any, Any]


def trampoline(call: Recursion) -> Any:
    """Run a recursive generator, and return its result. Raises: what it raises, unless a caller inside catches it."""
    stack: list[Recursion] = [call]
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            inner = stack[-1].send(value) if error is None else stack[-1].throw(error)
        except StopIteration as done:
            stack.pop()
            value, error = done.value, None
            if not stack:
                return value
        except BaseException as raised:
            stack.pop()
            if not stack:
                raise
            value, error = None, raised
        else:
            stack.append(inner)
            value, error = None, None


# ---- structures (PyTreeDef) ----------------------------------------------------------------------------------


def unflatten(treedef: Any, leaves: Iterator[Any]) -> Recursion:
    """Build a tree from a structure and an iterator of its leaves."""
    if treedef.kind is None:
        return next(leaves)
    parts: list[Any] = []
    for child in treedef.children:
        parts.append((yield unflatten(child, leaves)))
    return treedef.node.type.unflatten(treedef.aux, tuple(parts))


def snapshot(treedef: Any) -> Recursion:
    """Return the structure with copies of mutable auxiliary data; the same object if there are none."""
    if treedef.interned:
        return treedef
    children: list[Any] = []
    for child in treedef.children:
        children.append((yield snapshot(child)))
    node = treedef.node.snapshot()
    same = node is treedef.node and all(map(operator.is_, children, treedef.children))
    return treedef if same else node.nest(children)


def compose(treedef: Any, inner: Any) -> Recursion:
    """Return the structure with `inner` at each leaf."""
    if treedef.kind is None:
        return inner
    children: list[Any] = []
    for child in treedef.children:
        children.append((yield compose(child, inner)))
    return treedef.node.nest(children)


def compose_kept(treedef: Any, inner: Any) -> Recursion:
    """Return the structure with `inner` at each leaf, also of the structures that its nodes keep."""
    if treedef.kind is None:
        return inner
    kept = treedef.with_kept(inner)
    if kept is not None:
        return kept
    children: list[Any] = []
    for child in treedef.children:
        children.append((yield compose_kept(child, inner)))
    return treedef.node.nest(children)


def are_equal(x: Any, y: Any) -> Recursion:
    """Tell whether two structures are equal."""
    if x is y:
        return True
    if x.num_nodes != y.num_nodes or len(x.children) != len(y.children) or not x.node.same(y.node):
        return False
    for a, b in zip(x.children, y.children, strict=True):
        if a is not b and not (yield are_equal(a, b)):
            return False
    return True


# ---- trees ---------------------------------------------------------------------------------------------------


class Flattening(NamedTuple):
    """The parameters of flattening a tree.

    open: (path, part) -> its children and its node, or None if it is a leaf. leaf: the structure of a leaf. add: called
    with (path, leaf) for every leaf. paths: whether paths are computed; if not, all are (). around: the nodes that
    contain the present part, by identity.
    """

    open: Callable[[KeyPath, Any], tuple[Sequence[Any], Any] | None]
    leaf: Any
    add: Callable[[KeyPath, Any], None]
    paths: bool
    around: dict[int, Any]


def flatten(path: KeyPath, part: Any, how: Flattening) -> Recursion:
    """Return the structure of a part of a tree, and add its leaves. Raises: RecursionError if it contains itself."""
    opened = how.open(path, part)
    if opened is None:
        how.add(path, part)
        return how.leaf
    if id(part) in how.around or len(how.around) > _ENDLESS:
        name, depth = type(part).__name__, len(how.around)
        raise RecursionError(f"the pytree contains itself: {article_of(name)} {name} is {depth} levels within.")
    children, node = opened
    keys = node.type.keys(part, node.aux, len(children)) if how.paths else repeat(None, len(children))
    how.around[id(part)] = part
    parts: list[Any] = []
    for key, child in zip(keys, children, strict=True):
        parts.append((yield flatten((*path, key) if how.paths else path, child, how)))
    del how.around[id(part)]
    return node.nest(parts)
