"""Functions of sparse arrays, of which there are none: the names of `jax.experimental.sparse` that libraries use."""

from collections.abc import Callable
from typing import Any

__all__ = ["sparsify"]


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Return a function of dense and sparse arrays: `f` itself, since all arrays are dense."""
    return f
