"""Bytes that a device can still allot: by its own count, or for the host's memory by the operating system's."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tapeless.lowering.devices import Device
from tapeless.tracer.late_imports import LateModule

if TYPE_CHECKING:
    import resource
else:
    resource = LateModule("resource")  # which Windows does not have


def free_bytes(device: Device) -> int | None:
    """Count the bytes that a program on `device` may still ask for; None if nobody says."""
    counted = device.memory_stats()
    if counted and "bytes_limit" in counted:
        return counted["bytes_limit"] - counted.get("bytes_in_use", 0)
    return min(_left_on_host(), default=None) if device.platform == "cpu" else None


def _left_on_host() -> Iterator[int]:
    """List what is left of each limit of this process that the operating system tells: of Linux, the only one asked."""
    with suppress(ImportError, OSError, KeyError, ValueError):
        used = _table("/proc/self/status")
        for kind, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
            most = resource.getrlimit(kind)[0]
            if most != resource.RLIM_INFINITY:
                yield max(0, most - used[name])
        yield _table("/proc/meminfo")["MemAvailable"]
        most, now = [Path(f"/sys/fs/cgroup/memory.{name}").read_text("ascii").strip() for name in ("max", "current")]
        yield max(0, int(most) - int(now))  # ValueError for "max", without a limit


def _table(path: str) -> dict[str, int]:
    """Read the lines `name: number kB` of a file, as bytes."""
    rows = [line.replace(":", " ").split() for line in Path(path).read_text("ascii", "replace").splitlines()]
    return {row[0]: 1024 * int(row[1]) for row in rows if row[2:] == ["kB"]}
