"""Recording what programs do, and the memory that they take, by jaxlib's profiler.

Traces are written in the format of TensorBoard's profiler (XPlane), and are read by `ProfileData` or XProf. Memory
profiles are pprof's. Left out of `start_trace`: `create_perfetto_link`, which waits for a browser.
"""

import functools
import gzip
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tapeless.arguments.argument_checks import check_callable
from tapeless.lowering import devices, profiler_sessions

ProfileData: Any = profiler_sessions.profile_data.ProfileData
ProfileEvent: Any = profiler_sessions.profile_data.ProfileEvent
ProfilePlane: Any = profiler_sessions.profile_data.ProfilePlane
if TYPE_CHECKING:  # classes of an extension module, which type checkers cannot read

    class _Options:
        advanced_configuration: dict[str, Any]
        duration_ms: int
        enable_hlo_proto: bool
        host_tracer_level: int
        include_dataset_ops: bool
        python_tracer_level: int
        raise_error_on_start_failure: bool
        repository_path: str
        session_id: str
        start_timestamp_ns: int

    class _TraceMe:
        def __init__(self, name: str, /, **metadata: Any) -> None: ...
        def __enter__(self) -> Self: ...
        def __exit__(self, *exc_info: object) -> None: ...
        def set_metadata(self, **metadata: Any) -> None: ...
        @staticmethod
        def is_enabled() -> bool: ...

else:
    _Options, _TraceMe = profiler_sessions.profiler.ProfileOptions, profiler_sessions.profiler.TraceMe


class ProfileOptions(_Options):
    """Options of a recording, as attributes: `host_tracer_level`, `python_tracer_level` and more."""


class TraceAnnotation(_TraceMe):
    """Name what runs in a with block in the traces that are recorded meanwhile: `TraceAnnotation(name, **metadata)`."""


class StepTraceAnnotation(TraceAnnotation):
    """Name a step of training, `StepTraceAnnotation(name, step_num=i)`: profilers tell how long steps take."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any) -> Callable[..., Any]:
    """Name the calls of a function in the traces that are recorded meanwhile: its own name if `name` is None.

    Raises: TypeError if `func` is no function.
    """
    check_callable("annotate_function", func)
    title = name or getattr(func, "__qualname__", None) or type(func).__name__

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(title, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


# ---- traces --------------------------------------------------------------------------------------------------

_session = profiler_sessions.Session()
_perfetto: list[bool] = [False]


def start_trace(
    log_dir: str | Path,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Begin to record what runs, Python and devices, until `stop_trace`.

    Args:
      log_dir: the folder that is written to, under `plugins/profile`.
      create_perfetto_link: is refused: it would wait for a browser.
      create_perfetto_trace: also write `perfetto_trace.json.gz`, which ui.perfetto.dev reads.
      profiler_options: what is recorded.
    Raises: RuntimeError if a trace is being recorded; NotImplementedError for `create_perfetto_link`.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> start_trace(folder.name)
    >>> with TraceAnnotation("my work"):
    ...     total = sum(range(10))
    >>> stop_trace()
    >>> (recorded,) = pathlib.Path(folder.name).rglob("*.xplane.pb")
    >>> planes = ProfileData.from_file(str(recorded)).planes
    >>> "my work" in [event.name for plane in planes for line in plane.lines for event in line.events]
    True
    >>> folder.cleanup()
    """
    if create_perfetto_link:
        raise NotImplementedError(
            "start_trace: create_perfetto_link=True is not there. Use create_perfetto_trace=True, and open the file."
        )
    _session.start(str(log_dir), profiler_options)
    _perfetto[0] = create_perfetto_trace


def stop_trace() -> None:
    """End the trace that is being recorded, and write it. Raises: RuntimeError if there is none.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     start_trace(folder)
    ...     stop_trace()
    ...     os.listdir(folder)
    ['plugins']
    """
    folder = _session.stop()
    if _perfetto[0]:
        _write_for_perfetto(Path(folder))


@contextmanager
def trace(
    log_dir: str | Path,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Generator[None]:
    """Record what runs in a with block, or a decorated function. Args, Raises: those of `start_trace`.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with trace(folder, create_perfetto_trace=True):
    ...         total = sum(range(10))
    ...     [path.name for path in pathlib.Path(folder).rglob("perfetto*")]
    ['perfetto_trace.json.gz']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def _write_for_perfetto(log_dir: Path) -> None:
    """Copy the newest trace of events without the metadata, which Perfetto does not read."""
    newest = max((log_dir / "plugins" / "profile").iterdir(), key=lambda path: path.stat().st_mtime)
    (recorded,) = newest.glob("*.trace.json.gz")
    events = json.loads(gzip.decompress(recorded.read_bytes()))
    events.pop("metadata", None)
    (newest / "perfetto_trace.json.gz").write_bytes(gzip.compress(json.dumps(events).encode()))


# ---- servers -------------------------------------------------------------------------------------------------

_server: list[Any] = []


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Let profilers connect to this process, and record it on demand.

    Args:
      port: of TCP.
      requires_backend: connect to the devices first, so that they are recorded.
    Returns: the server, which runs until `stop_server`.
    Raises: ValueError if there is one.

    >>> import socket
    >>> with socket.create_server(("", 0)) as free:  # a port that nobody uses
    ...     port = free.getsockname()[1]
    >>> server = start_server(port)
    >>> stop_server()
    """
    if _server:
        raise ValueError("start_server: a server is running. Stop it with stop_server().")
    if requires_backend:
        devices.devices()
    _server.append(profiler_sessions.profiler.start_server(port))
    return _server[0]


def stop_server() -> None:
    """Stop the server. Raises: ValueError if there is none.

    >>> stop_server()
    Traceback (most recent call last):
    ValueError: stop_server: no server is running.
    """
    if not _server:
        raise ValueError("stop_server: no server is running.")
    _server.clear()


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Record another process with this one, by its server.

    Args:
      pid, port: of the process, and of its server.
    Returns: a function that undoes it.
    Raises: RuntimeError if the server cannot be reached within 30 seconds, or `pid` is this process.

    >>> import socket, subprocess, sys
    >>> with socket.create_server(("", 0)) as free:  # a port that nobody uses
    ...     port = free.getsockname()[1]
    >>> program = f"from tapeless import profiler; profiler.start_server({port}); print('ready', flush=True); input()"
    >>> command = [sys.executable, "-c", program]
    >>> with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
    ...     _ = other.stdout.readline()  # until its server runs
    ...     undo = register_subprocess(other.pid, port)  # what is recorded from here on is of both
    ...     undo()
    ...     _ = other.communicate("end\\n")
    """
    return profiler_sessions.profiler.register_subprocess(pid, port)


# ---- memory --------------------------------------------------------------------------------------------------


def device_memory_profile(backend: str | None = None) -> bytes:
    """Return the memory that arrays and programs take on a platform, or the default one, as pprof reads it.

    Raises: RuntimeError if the platform is not there.
    """
    return profiler_sessions.heap_profile(backend)


def save_device_memory_profile(filename: str | Path, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file. Raises: RuntimeError if the platform is not there.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_device_memory_profile(f"{folder}/memory.prof")
    ...     os.listdir(folder)
    ['memory.prof']
    """
    Path(filename).write_bytes(device_memory_profile(backend))
