"""The names of `jax.ad_checkpoint`."""

from tapeless import checkpoint_policies
from tapeless.differentiate.residuals import print_saved_residuals, saved_residuals
from tapeless.remat.checkpoint import checkpoint, checkpoint_name, remat
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]

_complete_namespace(globals())
