"""Platforms: the names of `jax.extend.backend` that libraries use."""

from tapeless.lowering.devices import backends, get_backend

__all__ = ["backends", "get_backend"]
