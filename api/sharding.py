"""Placement of arrays on one device, by the names of `jax.sharding`. Several devices are not supported yet."""

from tapeless.lowering.devices import Sharding, SingleDeviceSharding

__all__ = ["Sharding", "SingleDeviceSharding"]
