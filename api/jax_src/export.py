"""Exported programs, of which there are none: the names of `jax.export` that libraries use without them."""

from typing import Any

__all__ = ["is_symbolic_dim"]


def is_symbolic_dim(p: Any) -> bool:
    """Tell whether a size of an array is a symbol: none is."""
    return False
