"""Platforms: the names of `jax.extend.backend` that libraries use."""

from typing import Any

from tapeless.lowering import devices as _platforms

__all__ = ["backends", "get_backend"]


def get_backend(platform: str | None = None) -> Any:
    """Return the PJRT client of a platform, by default of the one that is used.

    Raises: RuntimeError if the platform is not there.

    >>> get_backend("cpu").platform
    'cpu'
    """
    return _platforms.devices(platform)[0].client


def backends() -> dict[str, Any]:
    """Return the PJRT clients of the platforms that are used, by name: the CPU, and the default one.

    >>> "cpu" in backends()
    True
    """
    clients = [_platforms.devices(platform)[0].client for platform in ("cpu", _platforms.default_backend())]
    return {client.platform: client for client in clients}
