"""Names that bodies give to the indices of arrays, as hints for printing: `C[p, i]` calls the axes of C p and i."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


class Hint(NamedTuple):
    """An array, an axis of it, and the name of an index that reads this."""

    array: Any
    axis: int
    name: str


_noted: ContextVar[list[Hint] | None] = ContextVar("index_hints", default=None)


@contextmanager
def noting() -> Generator[list[Hint], None, None]:
    """Note names in a with block: the list of these, in order."""
    hints = list[Hint]()
    token = _noted.set(hints)
    try:
        yield hints
    finally:
        _noted.reset(token)


def note(array: Any, axis: int, name: str) -> None:
    """Note the name of an index that reads an axis of an array, where that is asked for."""
    hints = _noted.get()
    if hints is not None and name:
        hints.append(Hint(array, axis, name))


def parameter_names(function: Any, n: int) -> list[str]:
    """List the names of the first n parameters of a function of Python; empty ones where it has none."""
    code = getattr(function, "__code__", None)
    names = [] if code is None else list(code.co_varnames[: code.co_argcount])
    return [*names, *[""] * n][:n]
