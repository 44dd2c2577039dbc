"""What libraries use of `jax._src`, as far as it has a meaning here."""

from tapeless.jax_src import dispatch, dtypes, traceback_util

__all__ = ["dispatch", "dtypes", "traceback_util"]
