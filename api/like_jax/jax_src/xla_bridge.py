"""Platforms: the names of `jax._src.xla_bridge` that libraries use."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tapeless.lowering.devices import backends, get_backend, list_clients

__all__ = ["_backends", "backends", "get_backend"]


class _Connected(Mapping[str, Any]):
    """The platforms that are in use by now, by name: a view."""

    def __getitem__(self, platform: str) -> Any:
        return list_clients()[platform]

    def __iter__(self) -> Iterator[str]:
        return iter(list_clients())

    def __len__(self) -> int:
        return len(list_clients())


_backends: Final = _Connected()
