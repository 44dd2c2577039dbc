"""Entries of `with_refs`, which say where gradients go: the names of `jax.ad`."""

import typing as _typing

from tapeless.differentiate.references import DidntWant, DontWant, GradRef, GradValue
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
