"""The names of `jax.ad_checkpoint`."""

from tapeless import checkpoint_policies
from tapeless.checkpointing import checkpoint, checkpoint_name, remat
from tapeless.residuals import print_saved_residuals, saved_residuals

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]
