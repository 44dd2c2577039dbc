"""Set context variables for the duration of a call, whatever ends it.

A signal handler may raise, as Ctrl-C's does, wherever a function in Python is entered or one in C has returned. So
neither a generator under `@contextmanager` nor a class with an `__exit__` in Python resets a variable for certain: the
exception may come before its first line has run, and what is set stays set for as long as the traceback is kept. Here
the variable is set inside of `try`, and `finally` first calls a function in C that resets it; CPython looks for
signals after that.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def call_in_scope(
    var: ContextVar[T], value: T, f: Callable[Arguments, Result], /, *args: Arguments.args, **params: Arguments.kwargs
) -> Result:
    """Call `f(*args, **params)` while `var` is `value`."""
    before = var.get()
    try:
        var.set(value)
        return f(*args, **params)
    finally:
        var.set(before)


def scoped_all(
    values: Mapping[ContextVar[Any], Any],
    f: Callable[Arguments, Result],
    /,
    *args: Arguments.args,
    **params: Arguments.kwargs,
) -> Result:
    """Call `f(*args, **params)` while variables have these values."""
    before = [var.get() for var in values]
    sets, resets = map(ContextVar.set, values, values.values()), map(ContextVar.set, values, before)
    try:  # each of the two in one call, of a function in C
        tuple(sets)
        return f(*args, **params)
    finally:
        tuple(resets)
