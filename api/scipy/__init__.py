"""The namespace of `jax.scipy`: `special` and `stats`."""

from tapeless.scipy import special, stats

__all__ = ["special", "stats"]
