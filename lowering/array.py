"""Arrays on a device."""

from typing import Any

import numpy as np

from tapeless.lowering import compat
from tapeless.tracer.array import Array


class DeviceArray(Array):
    __slots__ = ("__weakref__", "aval", "buf")

    def __init__(self, buf: Any) -> None:
        self.buf, self.aval = buf, buf.aval

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        x = np.asarray(memoryview(self.buf))
        return x if dtype is None else x.astype(dtype)

    def __repr__(self) -> str:
        return f"Array({np.array2string(np.asarray(self), separator=', ')}, dtype={self.dtype})"

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __index__(self) -> int:
        return np.asarray(self).__index__()

    def block_until_ready(self) -> "DeviceArray":
        self.buf.block_until_ready()
        return self


def to_device(value: Any, aval: Any, device: Any) -> DeviceArray:
    return DeviceArray(compat.put(np.asarray(value, aval.dtype), aval, device.sharding, device.handle))
