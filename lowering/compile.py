"""Compiling modules."""

from typing import Any

from jaxlib import xla_client as xc

from tapeless.lowering import compat
from tapeless.lowering.array import DeviceArray


class Executable:
    def __init__(self, exe: Any, device: Any) -> None:
        self._exe, self._device, self._handlers = exe, device, None

    def call(self, bufs: Any) -> Any:
        return self._exe.execute_sharded(bufs).consume_with_handlers(self._handlers)


def compile_module(text: str, *, out_avals: Any, device: Any, options: Any = None) -> Executable:
    exe = device.client.compile_and_load(text, device.list, xc.CompileOptions())
    e = Executable(exe, device)
    e._handlers = [compat.result_handler(a, device.sharding).wrap(DeviceArray) for a in out_avals]
    return e
