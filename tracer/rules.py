"""The one table class: everything about a primitive but its name and type is an entry in some table.

docs/primitives.md lists all tables, and for each primitive the tables that it has an entry in.
"""

from collections.abc import Callable
from typing import Any, TypeVar

Entry = TypeVar("Entry")


class Table(dict[Any, Entry]):
    """A table with an entry for each of some primitives.

    Args:
      name: no other table has it; errors name the table by it.
      entry: the signature of an entry that is a function, or what another entry says of its primitive.
      absent: what it means for a primitive to have no entry.

    >>> emit = Table("example", "rule(x) -> y", absent="it cannot be compiled")
    >>> emit["sin"]
    Traceback (most recent call last):
    ...
    NotImplementedError: no example rule for 'sin'.
    """

    def __init__(self, name: str, entry: str, *, absent: str) -> None:
        super().__init__()
        self.name, self.entry, self.absent = name, entry, absent

    def __missing__(self, primitive: Any) -> Entry:
        raise NotImplementedError(f"no {self.name} rule for {str(primitive)!r}.")

    def __setitem__(self, primitive: Any, rule: Entry) -> None:
        if primitive in self:
            raise ValueError(f"{self.name} already has a rule for {str(primitive)!r}")
        super().__setitem__(primitive, rule)


class Rules(Table[Callable[..., Any]]):
    """A table of functions."""
