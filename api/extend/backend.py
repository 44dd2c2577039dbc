"""Platforms: the names of `jax.extend.backend` that libraries use."""

from typing import Any

from tapeless.lowering.devices import default_backend as _default_backend
from tapeless.lowering.devices import devices as _devices

__all__ = ["get_backend"]


def get_backend(platform: str | None = None) -> Any:
    """Return the PJRT client of a platform, by default of the one that is used.

    Raises: RuntimeError if the platform is not there.

    >>> get_backend("cpu").platform
    'cpu'
    """
    return _devices(platform or _default_backend())[0].client
