"""Notes that are taken while a function is traced for formulas of it.

These are names that bodies give to the indices of arrays, hints for printing, as `C[p, i]` calls the axes of C p and
i; and what formulas assume that it calls.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


class Hint(NamedTuple):
    """An array, an axis of it, and the name of an index that reads this; `stays`: formulas do not eliminate it."""

    array: Any
    axis: int
    name: str
    stays: bool = False


class Notes(NamedTuple):
    """Names of indices, and assumptions of formulas that were called."""

    hints: list[Hint]
    assumptions: list[str]


_noted: ContextVar[Notes | None] = ContextVar("index_notes", default=None)


@contextmanager
def noting() -> Generator[Notes]:
    """Note in a with block what functions say that are traced there."""
    notes = Notes([], [])
    token = _noted.set(notes)
    try:
        yield notes
    finally:
        _noted.reset(token)


def is_noting() -> bool:
    """Tell whether formulas are being derived of what is traced."""
    return _noted.get() is not None


def note(array: Any, axis: int, name: str, *, stays: bool = False) -> None:
    """Note the name of an index that reads an axis of an array, where that is asked for."""
    notes = _noted.get()
    if notes is not None and (name or stays):
        notes.hints.append(Hint(array, axis, name, stays))


def note_assumptions(assumptions: Sequence[str]) -> None:
    """Note what a formula assumes that is called, where that is asked for."""
    notes = _noted.get()
    if notes is not None:
        notes.assumptions.extend(assumptions)


def parameter_names(function: Any, n: int) -> list[str]:
    """List the names of the first n parameters of a function of Python; empty ones where it has none."""
    code = getattr(function, "__code__", None)
    names = [] if code is None else list(code.co_varnames[: code.co_argcount])
    return [*names, *[""] * n][:n]
