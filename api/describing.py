"""How structures of arrays are shown, in messages and where objects print, and what is said of names not there."""

import sys
from collections.abc import Iterable
from typing import Any

from tapeless.tracer import pytree
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike

_LONGEST = 400  # characters: more is no help


def structure(tree: Any, leaves: Iterable[Any]) -> str:
    """A structure with the types of its leaves, which are given as values or types: `(float32[3], {'w': int32[]})`."""
    return _cut(repr(pytree.unflatten(tree, map(_Type, leaves))))


def arguments(tree: Any, leaves: Iterable[Any]) -> str:
    """A structure `(args, kwargs)` as it is written in a call: `(float32[3], n=int32[])`."""
    args, kwargs = pytree.unflatten(tree, map(_Type, leaves))
    return f"({_cut(', '.join([*map(repr, args), *(f'{name}={x!r}' for name, x in kwargs.items())]))})"


class _Type:
    """A leaf that prints as its type, if it has one."""

    __slots__ = ("leaf",)

    def __init__(self, leaf: Any) -> None:
        self.leaf = leaf

    def __repr__(self) -> str:
        if isinstance(self.leaf, ShapedArray):
            return str(self.leaf)
        return str(aval_of(self.leaf)) if is_arraylike(self.leaf) else repr(self.leaf)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module of ours does not have."""
    return AttributeError(
        f"module {module!r} has no attribute {name!r}.\n"
        "  If JAX has it, it is not there yet: see 'Not supported yet' in the README.",
        name=name,
        obj=sys.modules[module],
    )
