"""Resampling of images under the names of `jax.image`: `tapeless.image`."""

from tapeless.tracer.resampling import ResizeMethod, resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
