"""Modules of `jax.example_libraries` that libraries use."""

from tapeless.jax_src import example_layers as stax
from tapeless.jax_src import example_optimizers as optimizers

__all__ = ["optimizers", "stax"]
