"""Values that functions are traced with as they are: leaves of arguments and results that are no arrays."""

from collections.abc import Callable
from typing import Any, Final

from tapeless.tracer import pytree
from tapeless.tracer.types import is_arraylike


@pytree.register_static
class Untraced:
    """A value in a pytree, of which it is no leaf."""

    def __init__(self, value: Any) -> None:
        self.value: Final = value


def hide(tree: Any, is_hidden: Callable[[Any], bool] = lambda x: not is_arraylike(x)) -> Any:
    """Replace leaves, by default those that are no arrays, by nodes without leaves, which hold them."""
    return pytree.tree_map(lambda x: Untraced(x) if is_hidden(x) else x, tree)


def reveal(tree: Any) -> Any:
    """Put back the leaves that `hide` has replaced."""
    return pytree.tree_map(lambda x: x.value if _is_untraced(x) else x, tree, is_leaf=_is_untraced)


def _is_untraced(x: Any) -> bool:
    return isinstance(x, Untraced)
