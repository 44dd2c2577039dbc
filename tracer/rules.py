"""The one table class: everything about a primitive but its name and type is a rule in some table."""

from collections.abc import Callable
from typing import Any, TypeVar

Entry = TypeVar("Entry")


class Table(dict[Any, Entry]):
    """What is known about primitives, one entry for each.

    >>> emit = Table("emit")
    >>> emit["sin"]
    Traceback (most recent call last):
    ...
    NotImplementedError: no emit rule for 'sin'.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __missing__(self, primitive: Any) -> Entry:
        raise NotImplementedError(f"no {self.name} rule for {str(primitive)!r}.")

    def __setitem__(self, primitive: Any, rule: Entry) -> None:
        if primitive in self:
            raise ValueError(f"{self.name} already has a rule for {str(primitive)!r}")
        super().__setitem__(primitive, rule)


class Rules(Table[Callable[..., Any]]):
    """A table of rules."""
