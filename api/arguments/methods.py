"""Methods that are objects with a call, as what `jit` returns is: they are bound to instances as functions are."""

import functools
from collections.abc import Callable
from typing import Any

_SHOWN = "__module__", "__name__", "__qualname__", "__doc__"


def bound(function: Callable[..., Any], instance: Any) -> Callable[..., Any]:
    """Bind the first argument, and keep the name and the documentation."""
    method = functools.partial(function, instance)
    method.__dict__.update({name: getattr(function, name) for name in _SHOWN if hasattr(function, name)})
    return method
