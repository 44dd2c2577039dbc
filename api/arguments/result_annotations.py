"""Signatures of functions that are derived from a user's function: its parameters, with another annotated result."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

from tapeless.arguments.names import shown_attributes

_SHOWN = "__module__", "__name__", "__qualname__", "__doc__"


def with_result(derived: Any, function: Any, result: Any = inspect.Signature.empty) -> Any:
    """Name, document and annotate a derived function as the function it is derived from, but for the result."""
    functools.update_wrapper(derived, function, shown_attributes(function, _SHOWN), updated=())
    derived.__wrapped__ = WithResult(function, result)
    return derived


class WithResult:
    """Stand before a function in the chain that `inspect.unwrap` follows, with its signature but for the result.

    The signature is made when it is asked for: making gradients costs no more for it.
    """

    __slots__ = ("__wrapped__", "_result")

    def __init__(self, function: Callable[..., Any], result: Any = inspect.Signature.empty) -> None:
        self.__wrapped__: Final = function
        self._result: Final = result

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.__wrapped__).replace(return_annotation=self._result)
