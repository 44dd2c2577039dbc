"""The names of `jax.ad_checkpoint`."""

import typing as _typing

from tapeless import checkpoint_policies
from tapeless.differentiate.residuals import print_saved_residuals, saved_residuals
from tapeless.remat.checkpoint import checkpoint, checkpoint_name, remat
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
