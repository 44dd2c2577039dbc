"""Python booleans among residuals: they stay booleans, since a backward rule may branch on them."""

from typing import Any

from tapeless.tracer import pytree


class _Flag:
    """A truth value as a node without leaves: a part of the structure."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


pytree.register_pytree_node(_Flag, lambda flag: ((), flag.value), lambda value, _: _Flag(value))


def flags_kept(tree: Any) -> Any:
    """Make Python's truth values among the leaves of a pytree parts of its structure."""
    return pytree.tree_map(lambda x: _Flag(x) if type(x) is bool else x, tree)


def flags_given_back(tree: Any) -> Any:
    """Make them leaves again: undo `flags_kept`."""
    return pytree.tree_map(lambda x: x.value if type(x) is _Flag else x, tree, is_leaf=lambda x: type(x) is _Flag)
