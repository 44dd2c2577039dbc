"""Modules of `jax._src` that libraries use, as far as they have a meaning here."""

from tapeless.jax_src import dispatch, dtypes, traceback_util

__all__ = ["dispatch", "dtypes", "traceback_util"]
