"""Why a jitted function is traced again: what `config.explain_cache_misses` logs."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tapeless.tracer import pytree


class TraceKey(NamedTuple):
    """The key that a trace is remembered by: types of leaves, structure, static arguments, device, settings."""

    avals: tuple[Any, ...]
    tree: Any
    statics: Any
    device: Any
    settings: Any


def explained(function: str, where: str, key: TraceKey, known: Iterable[TraceKey]) -> str:
    """Explain why none of the traces that are `known` serves for `key`: how the closest of them differs."""
    called = f"{function} is traced for jit{f', called at {where}' if where else ''}"
    differences = [(_differences(key, other), other) for other in known]
    if not differences:
        return f"{called}: it was not before."
    closest = min([each for each, _ in differences], key=len)
    return f"{called}: of {len(differences)} trace(s) of it the closest differs.\n  " + "\n  ".join(closest)


def _differences(key: TraceKey, other: TraceKey) -> list[str]:
    found: list[str] = []
    if key.tree != other.tree:
        found.append(f"The structure of the arguments is {key.tree}, and was {other.tree}.")
    elif key.avals != other.avals:
        found += _of_types(key.tree, key.avals, other.avals)
    if key.statics != other.statics:
        found.append(f"Static arguments are {key.statics!r}, and were {other.statics!r}.")
    if key.settings != other.settings:
        found.append("The settings (tl.config), or the named axes around, are others.")
    return found


def _of_types(tree: Any, now: Sequence[Any], before: Sequence[Any]) -> list[str]:
    paths = [path for path, _ in pytree.leaves_with_path(pytree.unflatten(tree, list(range(len(now)))))]
    return [
        f"Argument {pytree.keystr(path[1:])} is {x!r}, and was {y!r}."
        for path, x, y in zip(paths, now, before, strict=True)
        if x is not y
    ]
