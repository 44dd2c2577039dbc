"""Notes on errors for keywords that a function here does not take: what to write in their place.

The notes are part of the exception, so that test runners and logs show them, for functions that are `advised`: those
that are called seldom, such as optimizers. Others pay nothing; their errors get the note when Python prints them.
"""

import functools
import importlib
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def advise(error: Exception) -> None:
    """Note what to write in the place of a keyword that is PyTorch's, or misspelt, or of checkpoint(f, x), once.

    And in the place of index.build(2, 3, f).
    """
    if type(error) is TypeError and ("unexpected keyword argument" in str(error) or "() takes " in str(error)):
        advice = importlib.import_module("tapeless.tracer.unknown_keywords").advice(str(error))
        if advice is not None and advice not in getattr(error, "__notes__", ()):
            error.add_note(advice)


def advised(f: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Note on errors for keywords of `f` what to write in their place."""

    @functools.wraps(f)
    def run(*args: Arguments.args, **params: Arguments.kwargs) -> Result:
        try:
            return f(*args, **params)
        except TypeError as error:
            advise(error)
            raise

    return run
