"""The names of `jax.ad_checkpoint`."""

from tapeless import checkpoint_policies
from tapeless.differentiate.residuals import print_saved_residuals, saved_residuals
from tapeless.remat.checkpoint import checkpoint, checkpoint_name, remat

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]
