"""Whose lines messages name: what libraries use of `jax._src.traceback_util`."""

from tapeless.tracer.source import register_exclusion

__all__ = ["register_exclusion"]
