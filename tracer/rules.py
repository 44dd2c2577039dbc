"""Tables of rules: everything about a primitive but its name and type is an entry in some table.

docs/primitives.md lists all tables, and for each primitive the tables that it has an entry in.
The rules of a family of primitives are imported when the rule of one is first looked up, in any table.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tapeless.tracer import primitives
from tapeless.tracer.late_imports import interrupted
from tapeless.tracer.primitives import FAMILIES, UNKNOWN

Entry = TypeVar("Entry")
_awaited: dict[str, list[str]] = {}  # families of primitives, and the modules of their rules that are to be imported
_interrupted = set[str]()  # families of which only some rules are in the tables


def fill(package: str) -> None:
    """Register the modules of a package with rules, one for each family, for import when a rule is looked up."""
    for family in (*FAMILIES, *UNKNOWN):
        _awaited.setdefault(f"{primitives.__name__}.{family}", []).append(f"{package}.{family}")


def import_rules(family: str) -> None:
    """Import the rules of a family's primitives, from all packages that `fill` registered.

    They are awaited until all of them are there: another thread that looks one up waits for this import.
    """
    try:
        for module in _awaited.get(family, ()):
            import_module(module)
    except BaseException:  # an interrupt, too: it is imported again
        _interrupted.add(family)
        raise
    _awaited.pop(family, None)


class Table(dict[Any, Entry]):
    """A table with an entry for each of some primitives.

    Looking an entry up, or iterating over all, imports the rules of the families that are needed. Only views
    (`keys`, `values`, `items`) show just the entries imported so far.

    Args:
      name: a unique name, by which errors name the table.
      entry: the signature of an entry that is a function, or the meaning of another entry.
      absent: the meaning of a missing entry.

    >>> emit = Table("example", "rule(x) -> y", absent="it cannot be compiled")
    >>> emit["sin"]
    Traceback (most recent call last):
    ...
    NotImplementedError: no example rule for 'sin'.
    """

    def __init__(self, name: str, entry: str, *, absent: str) -> None:
        super().__init__()
        self.name: Final = name
        self.entry: Final = entry
        self.absent: Final = absent

    def __missing__(self, primitive: Any) -> Entry:
        if primitive in self:
            return super().__getitem__(primitive)
        raise NotImplementedError(f"no {self.name} rule for {str(primitive)!r}.")

    def __contains__(self, primitive: Any) -> bool:
        if not _has(self, primitive) and getattr(primitive, "family", "") in _awaited:
            import_rules(primitive.family)
        return _has(self, primitive)

    if not TYPE_CHECKING:  # the signature is that of dictionaries

        def get(self, primitive, default=None):
            found = _get(self, primitive, default)
            if found is default and getattr(primitive, "family", "") in _awaited:
                import_rules(primitive.family)
                found = _get(self, primitive, default)
            return found

    def __iter__(self) -> Iterator[Any]:
        for family in tuple(_awaited):
            import_rules(family)
        return iter(list(super().keys()))  # other threads may add the rules of users

    def __setitem__(self, primitive: Any, rule: Entry) -> None:
        again = interrupted or getattr(primitive, "family", "") in _interrupted
        if not again and _has(self, primitive):  # not "in self": a rule that is being imported is awaited, too
            raise ValueError(f"{self.name} already has a rule for {str(primitive)!r}")
        super().__setitem__(primitive, rule)


_has, _get = dict.__contains__, dict.get


class Rules(Table[Callable[..., Any]]):
    """A table of functions."""
