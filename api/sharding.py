"""Placement of arrays: the names of `jax.sharding` for arrays on one device. Those for several are not there yet."""

from tapeless.lowering.devices import Sharding, SingleDeviceSharding

__all__ = ["Sharding", "SingleDeviceSharding"]
