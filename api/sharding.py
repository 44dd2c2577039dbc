"""Placement of arrays on one device, by the names of `jax.sharding`. Several devices are not supported yet."""

import typing as _typing

from tapeless.lowering.devices import Sharding, SingleDeviceSharding, make_single_device_sharding
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["Sharding", "SingleDeviceSharding", "make_single_device_sharding"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
