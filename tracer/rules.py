"""The one table class: everything about a primitive but its name and type is a rule in some table."""

from collections.abc import Callable
from typing import Any


class Rules(dict[Any, Callable[..., Any]]):
    """A table of rules, keyed by primitive.

    >>> emit = Rules("emit")
    >>> emit["sin"]
    Traceback (most recent call last):
    ...
    NotImplementedError: no emit rule for 'sin'.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __missing__(self, primitive: Any) -> Callable[..., Any]:
        raise NotImplementedError(f"no {self.name} rule for {str(primitive)!r}.")

    def __setitem__(self, primitive: Any, rule: Callable[..., Any]) -> None:
        if primitive in self:
            raise ValueError(f"{self.name} already has a rule for {str(primitive)!r}")
        super().__setitem__(primitive, rule)
