"""Shards of arrays by JAX's names: an array on one device has one shard, the whole array."""

from dataclasses import dataclass
from typing import Any

from tapeless.lowering.devices import Device, OnOneDevice


@dataclass(frozen=True, eq=False)
class AddressableShard:
    """The part of an array on one device: `index` selects it, `replica_id` numbers the copies of a part."""

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: Any


class ShardMethods(OnOneDevice):
    """Properties and methods of an array on one device that describe its only shard."""

    __slots__ = ()

    @property
    def addressable_shards(self: Any) -> list[AddressableShard]:
        """The shards that this process can read, in a list: one, the whole array."""
        return [AddressableShard(self.device, (slice(None),) * self.aval.ndim, 0, self)]

    @property
    def global_shards(self: Any) -> list[AddressableShard]:
        """The shards on the devices of all processes: `addressable_shards`."""
        return self.addressable_shards

    def addressable_data(self: Any, index: int) -> Any:
        """Return the elements of shard `index`: the array itself. Raises: IndexError for any but the first."""
        shards = self.addressable_shards
        if not -len(shards) <= index < len(shards):
            raise IndexError(
                f"addressable_data: an array of {self.aval} has one shard, on {self.device}, not number {index}."
            )
        return shards[index].data
