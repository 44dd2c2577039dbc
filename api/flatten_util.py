"""Pytrees as vectors: the names of `jax.flatten_util`."""

import typing as _typing

from tapeless.arguments.flat_vectors import ravel_pytree
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["ravel_pytree"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
