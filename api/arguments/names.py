"""Names of the leaves of arguments, as the function's signature has them."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tapeless.tracer import core, pytree


def describe_inputs(fun: Any, tree: Any, removed: Sequence[int], inputs: Sequence[int]) -> str:
    """Describe the arguments that inputs of a program belong to: `n, argument 1 of f`.

    Args:
      tree: the structure of (args, kwargs), without the arguments at positions `removed`.
      inputs: numbers of leaves; greater ones are references from outside, which are left out.
    Returns: nothing if no input is left.
    """
    inputs = [i for i in inputs if i < tree.num_leaves]
    if not inputs:
        return ""
    args, kwargs = pytree.unflatten(tree, range(tree.num_leaves))
    names = leaf_names(fun, args, kwargs, removed)
    paths = [path for path, _ in pytree.leaves_with_path((args, kwargs))]
    tops = [(paths[i][0].idx, paths[i][1]) for i in inputs]
    found = dict.fromkeys([key.key if named else place(key.idx, removed) for named, key in tops])
    heads = [names[inputs[0]]] if len(inputs) == 1 else [static_name(fun, head) for head in found]
    positions = [str(head) for head in found if isinstance(head, int)]
    s = "s" * (len(found) > 1)
    which = f"argument{s} {_listed(positions)}" if len(positions) == len(found) <= _MOST else f"argument{s}"
    inside = ("in " if positions else "in an ") if len(inputs) == 1 and len(paths[inputs[0]]) > 2 else ""
    return f"{_listed(heads)}, {inside}{which} of {core.describe_function(fun).partition(' at ')[0]}"


def _listed(words: Sequence[str]) -> str:
    """`x, y and z`; of many the first."""
    shown = [*words[:_MOST], *([f"{len(words) - _MOST} more"] if len(words) > _MOST else [])]
    return " and ".join(part for part in (", ".join(shown[:-1]), shown[-1]) if part)


_MOST = 4  # arguments that a message lists


def leaf_names(fun: Any, args: Any, kwargs: Any, removed: Sequence[int] = ()) -> list[str]:
    """A name for every leaf of the arguments: `x['w']`. At positions that are `removed` were static ones."""
    return [*map(naming(fun, removed), [path for path, _ in pytree.leaves_with_path((args, kwargs))])]


def naming(fun: Any, removed: Sequence[int] = ()) -> Callable[[pytree.KeyPath], str]:
    """Make a function that names what is at a path in (args, kwargs); at positions `removed` were static arguments."""
    positional, rest = _positional(fun)

    def name(path: pytree.KeyPath) -> str:
        head = path[1].key if path[0].idx else position_name(place(path[1].idx, removed), positional, rest)
        return f"{head}{pytree.keystr(path[2:])}"

    return name


def place(i: int, removed: Sequence[int]) -> int:
    """The position of argument `i` of those that are left when the ones at positions `removed` are taken out."""
    for taken in sorted(removed):
        i += taken <= i
    return i


def static_name(fun: Any, where: int | str) -> str:
    """Name the argument at a position, or of a name."""
    return where if isinstance(where, str) else position_name(where, *_positional(fun))


def position_name(i: int, positional: Sequence[str], rest: str) -> str:
    """Name the argument at position `i`: `args[1]` where it has no name of its own."""
    return positional[i] if i < len(positional) else f"{rest}[{i - len(positional)}]"


def positional_names(fun: Any) -> list[str]:
    """List the names of the parameters that are given by position."""
    return _positional(fun)[0]


def _positional(fun: Any) -> tuple[list[str], str]:
    """List the names of the positional parameters, and name the variadic one."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return [], "args"
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)], rest
