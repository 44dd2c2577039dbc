"""Frames that messages name: the function of `jax.extend.source_info_util` that libraries use."""

from tapeless.tracer.source import register_exclusion

__all__ = ["register_exclusion"]
