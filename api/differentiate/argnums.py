"""Positions of the arguments that are differentiated: checked, counted from the front, and put in their places."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.arguments.argument_checks import check_arguments, describe_value, no_derivative
from tapeless.arguments.names import argument_name, positional_names
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.core import function_name
from tapeless.tracer.types import aval_of, holds_keys


def with_arguments(fun: Any, args: Any, kwargs: Any, chosen: tuple[int, ...], *new: Any) -> Any:
    """Make `fun` a function of its arguments at the positions `chosen`."""
    given = list(args)
    for i, x in zip(chosen, new, strict=True):
        given[i] = x
    return fun(*given, **kwargs)


def check_argnums(who: str, argnums: Any) -> tuple[int, ...]:
    """Make positions a tuple. Raises: TypeError if they are no ints, as parameters are that were meant to be pulled."""
    chosen = tuple(argnums) if isinstance(argnums, Sequence) else (argnums,)
    if any(not isinstance(i, (int, np.integer)) for i in chosen):
        raise TypeError(
            f"{who}: argnums must be an int or a sequence of ints, positions of arguments, "
            f"not {describe_value(argnums)}.\n"
            f"  Pass the arguments to the function that {who} returns: {who}(f)(x)."
        )
    return chosen


def _by_position(fun: Any, i: int) -> str:
    """Advise to give argument `i` by position, if the function has one of this number."""
    names = positional_names(fun)
    return f"\n  Give {names[i]} by position." if 0 <= i < len(names) else ""


def canonical_argnums(who: str, argnums: Any, args: Sequence[Any], fun: Any) -> tuple[int, ...]:
    """Count positions from the front.

    Raises: TypeError if they are no ints; ValueError if one is not that of an argument, or named twice.
    """
    chosen = check_argnums(who, argnums)
    for i in chosen:
        if not -len(args) <= i < len(args):
            raise ValueError(
                f"{who}: argnums={argnums!r} names argument {i!r}, but {function_name(fun)} was called with "
                f"{len(args)} positional argument{'s' * (len(args) != 1)}.{_by_position(fun, i)}"
            )
    positions = tuple(int(i) % len(args) for i in chosen)
    if len(set(positions)) < len(positions):
        raise ValueError(f"{who}: argnums={argnums!r} names an argument of {function_name(fun)} twice.")
    return positions


def check_inputs(who: str, arg: Any, i: int, fun: Any, holomorphic: bool, allow_int: bool | None) -> None:
    """Check argument i. Raises: TypeError naming the leaf that has no derivative; allow_int=None offers no zeros."""
    check_arguments(who, fun, function_name(fun), (arg,), (i,))
    fits = dtypes.is_complex if holomorphic else dtypes.is_inexact
    if (allow_int and not holomorphic) or all(fits(aval_of(leaf).dtype) for leaf in pytree.leaves(arg)):
        return
    path, leaf = next(pair for pair in pytree.leaves_with_path(arg) if not fits(aval_of(pair[1]).dtype))
    where, aval = f"argument {argument_name(fun, i, path)} of {function_name(fun)}", aval_of(leaf)
    if holomorphic:
        raise TypeError(f"{who}: with holomorphic=True inputs must be complex, but {where} is {aval}.")
    raise TypeError(
        f"{who}: {where} is {aval}, and {no_derivative(aval)}\n"
        f"  {'C' if holds_keys(aval) else 'Convert it with astype(float), c'}hoose others with argnums="
        + (", or pass allow_int=True for float0 zeros." if allow_int is not None else ".")
    )
