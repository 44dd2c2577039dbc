"""jaxlib's profiler: sessions that record what runs, annotations, a server, the memory of a platform."""

import importlib
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tapeless.lowering import devices
from tapeless.lowering.xla_workarounds.compat import jaxlib_version

profiler: Any = importlib.import_module("jaxlib._profiler")
profile_data: Any = importlib.import_module("jaxlib._profile_data")


class Session:
    """A recording of the profiler, and the folder that it is written to; one may run at a time."""

    def __init__(self) -> None:
        self._running: tuple[Any, str] | None = None
        self._lock = threading.Lock()

    def start(self, folder: str, options: Any) -> None:
        """Start the recording. Raises: RuntimeError if it is running."""
        with self._lock:
            if self._running is not None:
                raise RuntimeError(
                    f"start_trace: a trace is being recorded, for {self._running[1]!r}. Stop it with stop_trace()."
                )
            devices.devices()  # a platform that is connected to later would not be recorded
            profiler.clear_metadata()
            profiler.set_metadata("jaxlib_version", jaxlib_version())
            self._running = profiler.ProfilerSession(options or profiler.ProfileOptions()), folder

    def stop(self) -> str:
        """End the recording and write it; return the folder. Raises: RuntimeError if there is none."""
        with self._lock:
            if self._running is None:
                raise RuntimeError("stop_trace: no trace is being recorded.")
            (session, folder), self._running = self._running, None
            session.stop_and_export(folder)
            profiler.clear_metadata()
            return folder


class RecordedEvent(NamedTuple):
    """An event of a recording: from `start` to `end`, in nanoseconds, with the profiler's statistics of it."""

    name: str
    start: float
    end: float
    stats: dict[str, Any]


def record_events(work: Callable[[], Any], options: Any) -> list[RecordedEvent]:
    """Record some work; return the events on devices, else on the host. Raises: RuntimeError if a recording goes on."""
    try:
        session = profiler.ProfilerSession(options)
        try:
            work()
        finally:
            found = session.stop()
    except RuntimeError as error:
        if "ALREADY_EXISTS" not in str(error):
            raise
        raise RuntimeError("a trace is being recorded, and there is one at a time.") from None
    with warnings.catch_warnings():  # jaxlib makes types that Python 3.13 warns of, and ends the process if that raises
        warnings.simplefilter("ignore", DeprecationWarning)
        return list(_events(profile_data.ProfileData.from_serialized_xspace(found)))


def _events(data: Any) -> Iterator[RecordedEvent]:
    planes = [plane for plane in data.planes if plane.name.startswith(("/device:", "/host:CPU"))]
    on_devices = [plane for plane in planes if plane.name.startswith("/device:")]
    for plane in on_devices or planes:
        for line in plane.lines:
            for event in line.events:
                start, length = event.start_ns, event.duration_ns
                yield RecordedEvent(event.name, start, start + length, dict(event.stats))


def heap_profile(platform: str | None) -> bytes:
    """Return the memory in use on a platform, or on the default one, in pprof's format."""
    return devices.devices(platform)[0].client.heap_profile()
