"""Argument checks: is it a function, are the leaves arrays? And the rendering of pytrees of types in messages."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tapeless.arguments.names import argument_name, naming
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.types import ShapedArray, aval_of, conversion_hint, holds_keys, incoming, is_arraylike

_LONGEST = 400  # characters: more is no help


def structure(tree: Any, leaves: Iterable[Any]) -> str:
    """Print a structure with the types of its leaves, given as values or types: `(float32[3], {'w': int32[]})`."""
    return _cut(repr(pytree.unflatten(tree, map(_Type, leaves))))


def arguments(tree: Any, leaves: Iterable[Any]) -> str:
    """Render a structure `(args, kwargs)` as a call: `(float32[3], n=int32[])`."""
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


def no_derivative(aval: ShapedArray) -> str:
    """Say why a value of a type that has no tangents cannot be differentiated, as the end of a message."""
    if holds_keys(aval):
        return "keys of random numbers have no derivative."
    return f"{'booleans' if dtypes.is_bool(aval.dtype) else 'integers'} have no derivative."


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


CLOSE_OVER = "\n  Close over it, or make it a field that is no child: meta_fields of tl.tree_util.register_dataclass."
FUNCTION_AND_ARGUMENTS = "a function and its arguments"  # expected by what is called with both at once


def check_callable(who: str, fun: Any, name: str = "", expected: str = "a function") -> None:
    """Check that `fun`, the argument `name` of `who` or the first that is expected, is callable. Raises: TypeError."""
    if not callable(fun):
        said = f"{name} must be" if name else "expected"
        raise TypeError(f"{who}: {said} {expected}, not {describe_value(fun)}.")


def describe_value(x: Any) -> str:
    """Print a value in short for a message: arrays by their types, as their elements may be unknown."""
    if _is_array(x):
        return f"an array {aval_of(x)}"
    return _cut(repr(pytree.tree_map(lambda leaf: _Type(leaf) if _is_array(leaf) else leaf, x)))


def _is_array(x: Any) -> bool:
    return hasattr(x, "shape") and is_arraylike(x)


def check_arrays(what: str, tree: Any, advice: str = "") -> None:
    """Raise TypeError naming the first leaf that is not an array; its path goes into the braces of `what`."""
    if all(map(is_arraylike, pytree.leaves(tree))):
        return
    path, x = next((path, x) for path, x in pytree.leaves_with_path(tree) if not is_arraylike(x))
    raise TypeError(not_an_array(what.replace("{}", pytree.keystr(path), 1), x, advice))


def array(x: Any, who: str) -> Any:
    """Take a user's array, in the width that `config.numpy_bits` says. Raises: TypeError naming `who`."""
    if not is_arraylike(x):
        raise TypeError(f"{who}: {x!r} of type {type(x).__name__} is not an array.")
    return incoming(x)


def not_an_array(what: str, x: Any, advice: str) -> str:
    """Write the message about a leaf that is not an array, with `advice` unless the leaf could be converted to one."""
    registration = _registration_hint(x)
    if registration and advice.startswith("\n  Make it"):
        advice = f"{advice.rstrip('.')}, unless it holds arrays: they would be read once, when the function is traced."
    hint = conversion_hint(x) or registration + advice
    return f"{what} is {x!r:.80} of type {type(x).__name__}, which is not an array.{hint}"


def _registration_hint(x: Any) -> str:
    """Advise to make a container of a user's type a pytree, as a line of its own; else nothing."""
    kind = type(x)
    if kind.__module__ in ("builtins", "types", "numpy", "functools") or isinstance(x, type):
        return ""
    how = "tl.tree_util.register_dataclass"
    if not hasattr(kind, "__dataclass_fields__"):
        how = f"a dataclass with {how}, or tl.tree_util.register_pytree_node_class"
    return f"\n  If {kind.__name__} holds arrays, make it a pytree: {how}."


def check_arguments(
    who: str,
    fun: Any,
    name: str,
    args: Sequence[Any],
    positions: Sequence[int] | None = None,
    advice: str = CLOSE_OVER,
) -> None:
    """Check arguments of `fun`, at `positions`. Raises: TypeError naming the first leaf that is not an array."""
    for i, x in zip(range(len(args)) if positions is None else positions, args, strict=True):
        if not all(map(is_arraylike, pytree.leaves(x))):
            check_arrays(f"{who}: argument {argument_name(fun, i)}{{}} of {name}", x, advice)


def check_call(who: str, fun: Any, name: str, args: Any, kwargs: Any, advice: str = "", removed: Any = ()) -> None:
    """Check a call of `fun`, less the arguments `removed`. Raises: TypeError naming the first leaf that is no array."""
    if not all(map(is_arraylike, pytree.leaves((args, kwargs)))):
        path, x = next(pair for pair in pytree.leaves_with_path((args, kwargs)) if not is_arraylike(pair[1]))
        raise TypeError(not_an_array(f"{who}: argument {naming(fun, removed)(path)} of {name}", x, advice))


def check_takes(who: str, function: Callable[..., Any], n: int, what: str) -> None:
    """Raise TypeError if a user's function cannot be called with n arguments by position, which are `what`.

    A function made by `functools.wraps` takes its own arguments; they may differ from those of the wrapped function.
    """
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*range(n))
    except TypeError:
        raise TypeError(f"{who} is called with {n} argument{'s' * (n != 1)}, {what}, but takes {signature}.") from None
