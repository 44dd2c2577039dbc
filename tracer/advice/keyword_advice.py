"""Advice in errors for keywords that a function here does not take: what to write in their place.

It is a part of the message, wherever that is shown, for functions under `advise_keywords`: those that are called seldom
or have a keyword of another name in PyTorch, and in traced functions. Others get it when Python prints them.
"""

import functools
import importlib
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def advise(error: Exception) -> None:
    """Add to the message what to write in the place of a keyword that is PyTorch's, or misspelt, once.

    And in the place of checkpoint(f, x), of index.build(2, 3, f), of np.sin(i), and of arithmetic with dicts.
    """
    message = error.args[0] if [*map(type, error.args)] == [str] else ""
    if type(error) is TypeError and any(part in message for part in _ADVISED):
        advice = importlib.import_module("tapeless.tracer.advice.unknown_keywords").advice(message)
        if advice is not None:
            error.args = (f"{message}\n  {advice}",)


_ADVISED = ("unexpected keyword argument", "() takes ", "unsupported operand type(s)", "does not support ufuncs")


def advise_keywords(f: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Say in errors for keywords of `f` what to write in their place."""

    @functools.wraps(f)
    def run(*args: Arguments.args, **params: Arguments.kwargs) -> Result:
        try:
            return f(*args, **params)
        except TypeError as error:
            advise(error)
            raise

    return run
