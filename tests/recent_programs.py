"""Programs compiled a short while ago, taken again: a tenth of what tests compile, by the same text, is compiled twice.

A function is compiled in one test after the other, eager operations after each clearing of caches. The key is that of
the cache on disk: the text, the options and the device. Compiling would give the same machine code again.

Left out: a cache on disk for all processes of a run. Writing a program takes more than three times as long as its key,
and one in fifty comes again in the other process only.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from tapeless.lowering.compilation_cache import program_key
from tapeless.lowering.compile import compile_options
from tapeless.lowering.devices import Device

_MOST = 1000  # of the latest: thousands would take gigabytes
_recent: dict[str, Any] = {}
_changed = Lock()  # tests compile in several threads at once


def compiling(
    compile: Callable[..., Any], text: str | bytes, device: Device, given: Any, callbacks: Sequence[Any]
) -> Any:
    """Do as `compile(text, device, given, callbacks)` does, or take what it gave before; never with callbacks."""
    if callbacks:
        return compile(text, device, given, callbacks)
    key = program_key(text, device, compile_options(device, given, text))
    with _changed:
        known = _recent.pop(key, None)
    loaded = known or compile(text, device, given, callbacks)
    with _changed:
        _recent[key] = loaded
        if len(_recent) > _MOST:
            _recent.pop(next(iter(_recent)))
    return loaded
