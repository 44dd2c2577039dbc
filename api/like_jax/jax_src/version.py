"""The version of JAX whose names and meanings we follow, for libraries asking for it: the names of `jax.version`."""

from typing import Final

__version_info__: Final = (0, 10, 2)
__version__: Final = ".".join(map(str, __version_info__))

__all__ = ["__version__", "__version_info__"]
