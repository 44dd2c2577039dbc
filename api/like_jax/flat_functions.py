"""Flat functions of functions of pytrees, and what messages say of these."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tapeless.arguments.static import has_hash
from tapeless.like_jax.wrapped_functions import Store, WrappedFun, transformation2, transformation_with_aux2
from tapeless.tracer import pytree
from tapeless.tracer.core import describe_function
from tapeless.tracer.jaxpr import DebugInfo


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
) -> DebugInfo:
    """Describe a function and its arguments, but for the static ones; names are None if they do not fit."""
    return DebugInfo(traced_for, describe_function(fun), _names(fun, args, kwargs, static_argnums, static_argnames))


def _names(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], numbers: Sequence[int], names: Sequence[str]
) -> tuple[str, ...] | None:
    traced = [None if i in numbers else x for i, x in enumerate(args)]  # None has no leaves
    try:
        bound = inspect.signature(fun).bind(*traced, **{k: v for k, v in kwargs.items() if k not in names})
    except (TypeError, ValueError):
        return None
    return tuple(
        [name + pytree.keystr(path) for name, x in bound.arguments.items() for path, _ in pytree.leaves_with_path(x)]
    )


def flatten_fun(fun: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Callable[[], Any]]:
    """Make a flat function of one whose arguments, `(args, kwargs)`, have the structure `in_tree`.

    Returns: the function, and one that gives the structure of its result once it has run.
    """
    return _flat(fun, in_tree)


def flatten_fun_nokwargs(fun: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Callable[[], Any]]:
    """Make a flat function of one whose positional arguments have the structure `in_tree`: see `flatten_fun`."""
    return _flat_nokwargs(fun, in_tree)


@transformation_with_aux2
def _flat(f: Callable[..., Any], store: Store, in_tree: Any, *args_flat: Any) -> list[Any]:
    args, kwargs = pytree.unflatten(in_tree, args_flat)
    leaves, out_tree = pytree.flatten(f(*args, **kwargs))
    store.store(out_tree)
    return leaves


@transformation_with_aux2
def _flat_nokwargs(f: Callable[..., Any], store: Store, in_tree: Any, *args_flat: Any) -> list[Any]:
    leaves, out_tree = pytree.flatten(f(*pytree.unflatten(in_tree, args_flat)))
    store.store(out_tree)
    return leaves


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any], require_static_args_hashable: bool = True
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """Fix all positional arguments of a function but some.

    Args:
      dyn_argnums: positions of the others; negative ones count from the end.
    Returns: the function of the others, and their values among `args`.
    Raises: ValueError if there is no such position, or if a fixed argument must have a hash and has none.
    """
    given = (dyn_argnums,) if isinstance(dyn_argnums, int) else dyn_argnums
    if wrong := [i for i in given if not -len(args) <= i < len(args)]:
        raise ValueError(f"argnums_partial: there is no argument {wrong[0]}, of {len(args)}.")
    places = tuple([i % len(args) for i in given])
    fixed = tuple([None if i in places else x for i, x in enumerate(args)])
    if require_static_args_hashable and (unhashable := [x for x in fixed if not has_hash(x)]):
        raise ValueError(f"argnums_partial: a fixed argument of type {type(unhashable[0]).__name__} has no hash.")
    return _with_fixed(f, places, fixed), tuple([args[i] for i in places])


@transformation2
def _with_fixed(
    f: Callable[..., Any], places: Sequence[int], fixed: Sequence[Any], /, *args: Any, **kwargs: Any
) -> Any:
    given = dict(zip(places, args, strict=True))
    return f(*[given.get(i, x) for i, x in enumerate(fixed)], **kwargs)


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """Return the list of `f`'s results for corresponding elements. Raises: ValueError if there are not equally many."""
    return [f(*xs) for xs in zip(*args, strict=True)]
