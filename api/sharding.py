"""Placement of arrays on one device, by the names of `jax.sharding`. Several devices are not supported yet."""

from tapeless.lowering.devices import Sharding, SingleDeviceSharding, make_single_device_sharding
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["Sharding", "SingleDeviceSharding", "make_single_device_sharding"]

_complete_namespace(globals())
