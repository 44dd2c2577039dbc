"""References among the arguments of a function whose other leaves are arrays: they are a part of the structure."""

from collections.abc import Iterable
from typing import Any

from tapeless.tracer import pytree
from tapeless.tracer.references import Ref, lent


class _Held:
    """A reference as a node without leaves. Put together again it is the reference."""

    __slots__ = ("reference",)

    def __init__(self, reference: Ref) -> None:
        self.reference = reference


pytree.register_pytree_node(_Held, lambda held: ((), held.reference), lambda reference, _: reference)


def check_distinct(who: str, leaves: Iterable[Any]) -> None:
    """Raise ValueError if a reference is there twice among the leaves of the arguments of `who`."""
    with lent([x for x in leaves if isinstance(x, Ref)], who):
        pass


def holding(tree: Any) -> Any:
    """Make references among the leaves of a pytree parts of its structure; unflattening gives them back."""
    if not any(isinstance(x, Ref) for x in pytree.leaves(tree)):
        return tree
    return pytree.tree_map(lambda x: _Held(x) if isinstance(x, Ref) else x, tree)
