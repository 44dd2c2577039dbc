"""Transfer guards: `config.transfer_guard_host_to_device` and the two like it, checked before elements are moved.

A transfer is explicit if the user asked for it, by `device_put` or `device_get`. Elements computed on a device,
numbers moved before, and reads of arrays on a CPU are no transfers.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from tapeless.tracer.settings import logs
from tapeless.tracer.settings.config import Config, Guard, config
from tapeless.tracer.settings.scopes import Arguments, Result, call_in_scope
from tapeless.tracer.types import ShapedArray

to_device_guard: Final[Guard] = vars(Config)["transfer_guard_host_to_device"]
_is_explicit: ContextVar[bool] = ContextVar("explicit transfer", default=False)


def explicitly(f: Callable[Arguments, Result], /, *args: Arguments.args, **params: Arguments.kwargs) -> Result:
    """Call `f(*args, **params)`; transfers in it are explicit: the user asked for them."""
    return call_in_scope(_is_explicit, True, f, *args, **params)


def to_device(aval: ShapedArray) -> None:
    """Check that elements may be moved from the host to a device now. Raises: RuntimeError if not."""
    _guard(config.transfer_guard_host_to_device, "host_to_device", aval)


def between_devices(aval: ShapedArray) -> None:
    """Check that elements may be moved from one device to another now. Raises: RuntimeError if not."""
    _guard(config.transfer_guard_device_to_device, "device_to_device", aval)


def to_host(aval: ShapedArray) -> None:
    """Check that elements may be moved from a device to the host now. Raises: RuntimeError if not."""
    _guard(config.transfer_guard_device_to_host, "device_to_host", aval)


def _guard(level: str, direction: str, aval: ShapedArray) -> None:
    if level == "allow" or (_is_explicit.get() and not level.endswith("_explicit")):
        return
    how = "device_get" if direction == "device_to_host" else "device_put"
    message = f"{aval} is moved from {direction.replace('_to_', ' to ')}"
    if level.startswith("log"):
        logs.warn(f"transfer: {message}.")
        return
    advice = "" if _is_explicit.get() else f"\n  Move it with tl.{how}, or allow it with tl.transfer_guard."
    raise RuntimeError(f"transfer: {message}, which config.transfer_guard_{direction} forbids.{advice}")
