"""Names of the leaves of arguments, as the function's signature has them."""

import inspect
from collections.abc import Sequence
from typing import Any

from tapeless.tracer import pytree


def leaf_names(fun: Any, args: Any, kwargs: Any, removed: Sequence[int] = ()) -> list[str]:
    """A name for every leaf of the arguments: `x['w']`. At positions that are `removed` were static ones."""
    positional, rest = _positional(fun)
    places = [i for i in range(len(args) + len(removed)) if i not in removed]

    def head(path: Any) -> str:
        return path[1].key if path[0].idx else position_name(places[path[1].idx], positional, rest)

    return [f"{head(path)}{pytree.keystr(path[2:])}" for path, _ in pytree.leaves_with_path((args, kwargs))]


def static_name(fun: Any, where: int | str) -> str:
    """Name the argument at a position, or of a name."""
    return where if isinstance(where, str) else position_name(where, *_positional(fun))


def position_name(i: int, positional: Sequence[str], rest: str) -> str:
    """Name the argument at position `i`: `args[1]` where it has no name of its own."""
    return positional[i] if i < len(positional) else f"{rest}[{i - len(positional)}]"


def _positional(fun: Any) -> tuple[list[str], str]:
    """List the names of the positional parameters, and name the variadic one."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return [], "args"
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)], rest
