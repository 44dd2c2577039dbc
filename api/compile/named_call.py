"""`named_call`: a function whose operations have a name."""

import functools
from collections.abc import Callable
from typing import Any

from tapeless.arguments.argument_checks import check_callable
from tapeless.arguments.names import shown_attributes
from tapeless.tracer.core import function_name
from tapeless.tracer.source import named_scope


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """Return `fun` whose operations are in a `named_scope`, of its own name if `name` is None.

    Raises: TypeError if `fun` is not callable, or `name` no string.
    """
    check_callable("named_call", fun)
    scope = function_name(fun) if name is None else name

    @functools.wraps(fun, shown_attributes(fun))
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(scope):
            return fun(*args, **kwargs)

    return named
