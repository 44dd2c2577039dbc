"""Collect hints for printing while a function is traced to derive formulas from it.

A hint is the name that a body gives to the index of an axis: `C[p, i]` names the axes of C p and i. Assumptions of the
formulas that the function calls are collected, too.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


class Hint(NamedTuple):
    """The name of an index that reads an axis of an array; `stays`: formulas do not eliminate the index."""

    array: Any
    axis: int
    name: str
    stays: bool = False


class Notes(NamedTuple):
    """Hints and assumptions that were collected while tracing."""

    hints: list[Hint]
    assumptions: list[str]


_noted: ContextVar[Notes | None] = ContextVar("index_notes", default=None)


@contextmanager
def noting() -> Generator[Notes]:
    """Collect the hints and assumptions of functions that are traced in a with block, and yield them as `Notes`."""
    notes = Notes([], [])
    token = _noted.set(notes)
    try:
        yield notes
    finally:
        _noted.reset(token)


def is_noting() -> bool:
    """Tell whether hints are collected, that is, a function is traced to derive formulas."""
    return _noted.get() is not None


def note(array: Any, axis: int, name: str, *, stays: bool = False) -> None:
    """Record the name of an index that reads an axis of an array, if hints are collected."""
    notes = _noted.get()
    if notes is not None and (name or stays):
        notes.hints.append(Hint(array, axis, name, stays))


def note_assumptions(assumptions: Sequence[str]) -> None:
    """Record the assumptions of a formula that is called, if hints are collected."""
    notes = _noted.get()
    if notes is not None:
        notes.assumptions.extend(assumptions)


def parameter_names(function: Any, n: int) -> list[str]:
    """List the names of the first n parameters of a Python function, filled up with empty names."""
    code = getattr(function, "__code__", None)
    names = [] if code is None else list(code.co_varnames[: code.co_argcount])
    return [*names, *[""] * n][:n]
