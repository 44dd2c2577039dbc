"""Modules of `jax.example_libraries` that libraries use."""

from tapeless.like_jax.jax_src import example_layers as stax
from tapeless.like_jax.jax_src import example_optimizers as optimizers

__all__ = ["optimizers", "stax"]
