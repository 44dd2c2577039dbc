"""The namespace of `jax.experimental`, by the same names."""

from tapeless.host.callbacks import io_callback

__all__ = ["io_callback"]
