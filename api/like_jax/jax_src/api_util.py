"""Positions and names of parameters: the names of `jax._src.api_util` that libraries use."""

import inspect
from collections.abc import Iterable

__all__ = ["infer_argnums_and_argnames"]


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Complete positions of parameters by their names, or names by positions; both stay as they are if both are given.

    Returns: the positions and the names; none if neither is given.
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums or ())
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    of_either_kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    places = [(i, p.name) for i, p in enumerate(sig.parameters.values()) if p.kind is of_either_kind]
    if argnums is None:
        return tuple([i for i, name in places if name in names]), names
    if argnames is None:
        return numbers, tuple([name for i, name in places if i in numbers])
    return numbers, names
