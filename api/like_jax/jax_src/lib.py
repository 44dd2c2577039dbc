"""The version of jaxlib: the names of `jax.lib`, and those of `jax._src.lib` that libraries use."""

from typing import Final

from tapeless.like_jax.jax_src import xla_client
from tapeless.lowering.xla_workarounds.compat import jaxlib_version

version_str: Final = jaxlib_version()
__version__: Final = version_str

__all__ = ["__version__", "version_str", "xla_client"]
