"""Platforms and devices: which there are, and the default.

A platform's client is made at the first use of its devices: CPU is built in, CUDA and TPU are PJRT plugins that
are loaded if they are installed (their packages `jax_plugins.*` and `libtpu`; jax itself is never imported).

Settings, read when a client is made:
- TAPELESS_PLATFORM        cpu, gpu or tpu: the platform to use, instead of the best there is
- TAPELESS_NUM_CPU_DEVICES how many devices the CPU counts as (or `config_cpu_devices(n)`)
- XLA_PYTHON_CLIENT_PREALLOCATE, XLA_PYTHON_CLIENT_MEM_FRACTION, ... as jaxlib defines them. By default CUDA reserves
  three quarters of the memory: a process that uses jax or torch beside us should set the former to false.
"""

import ctypes
import functools
import gc
import importlib
import importlib.util
import os
import re
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tapeless.lowering.xla_workarounds import forking
from tapeless.lowering.xla_workarounds.compat import jaxlib_core, xc
from tapeless.tracer import source
from tapeless.tracer.settings.config import Field, add_field, config
from tapeless.tracer.types import GIVEN_TO_JAX


class Device:
    """A device. Each device is one object, so `is` and `==` compare devices.

    `handle`, `list` and `sharding` are jaxlib's device, its list of this device alone, and the placement of a whole
    array on it.
    """

    __slots__ = ("__weakref__", "device_kind", "handle", "id", "list", "platform", "process_index", "sharding")

    def __init__(self, handle: Any) -> None:
        self.handle: Final = handle
        self.id: int = handle.id
        self.platform: str = handle.platform
        self.device_kind: str = handle.device_kind
        self.process_index: int = handle.process_index
        self.list: Final = xc.DeviceList((handle,))
        self.sharding: Final = xc.GSPMDSharding(self.list, xc.HloSharding.replicate())

    @property
    def client(self) -> Any:
        """The PJRT client, which compiles for this device."""
        return self.handle.client

    @property
    def memory_kinds(self) -> tuple[str, ...]:
        """The kinds of memory that the device can address: its own, "device", and perhaps "pinned_host"."""
        return tuple([memory.kind for memory in self.handle.addressable_memories()])

    def addressable_memories(self) -> Sequence[Any]:
        """List the memories that the device can address, each with a `kind`."""
        return self.handle.addressable_memories()

    def memory_stats(self) -> dict[str, int] | None:
        """Return the memory in use and in total, in bytes; None if the platform does not count it."""
        return self.handle.memory_stats()

    def __repr__(self) -> str:
        return repr(self.handle)

    def __reduce__(self) -> tuple[Any, ...]:
        return _device_numbered, (self.platform, self.id)


class Sharding:
    """The placement of an array's elements. There is one kind: all of them on one device, `SingleDeviceSharding`."""

    __slots__ = ()

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold elements."""
        raise NotImplementedError


class OnOneDevice:
    """Properties of JAX's names that are the same for all arrays on one device, and for their shardings."""

    __slots__ = ()

    @property
    def is_fully_addressable(self) -> bool:
        """Tell whether this process can read all elements: always true."""
        return True

    @property
    def is_fully_replicated(self) -> bool:
        """Tell whether each of its devices has all elements: always true."""
        return True


class SingleDeviceSharding(OnOneDevice, Sharding):
    """A whole array on one device, in the device's own memory. Equal to another one if the devices are.

    Raises: NotImplementedError for another memory.
    """

    __slots__ = ("device",)

    memory_kind: Final = "device"
    num_devices: Final = 1

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None:
        if memory_kind not in (None, self.memory_kind):
            raise NotImplementedError(
                f"SingleDeviceSharding: arrays are in a device's own memory, {self.memory_kind!r}, not {memory_kind!r}."
            )
        self.device: Final = device

    @property
    def device_set(self) -> set[Device]:
        return {self.device}

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """The devices in order, by the name that Orbax reads them by."""
        return (self.device,)

    @property
    def _is_concrete(self) -> bool:
        """Raise TypeError: JAX asks for this of the arrays that it is given."""
        raise TypeError(GIVEN_TO_JAX)

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of an array's part on a device: the whole shape."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
        """Map the device to the index of its part of an array: all elements."""
        return {self.device: (slice(None),) * len(global_shape)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self.device is other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r})"


def make_single_device_sharding(device: Device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """Make the placement of whole arrays on one device. Raises: NotImplementedError for another memory than its own.

    >>> make_single_device_sharding(devices("cpu")[0])
    SingleDeviceSharding(device=CpuDevice(id=0))
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


# ---- available devices


def devices(backend: str | None = None) -> list[Device]:
    """List the devices of a platform ("cpu", "gpu", "cuda", "tpu"), or of the default one.

    Raises: RuntimeError if the platform is not there, with the reason.
    """
    return list(_platform(backend or default_backend()))


def get_backend(platform: str | None = None) -> Any:
    """Return the PJRT client of a platform, by default of the one that is used.

    Raises: RuntimeError if the platform is not there.

    >>> get_backend("cpu").platform
    'cpu'
    """
    return devices(platform)[0].client


def backends() -> dict[str, Any]:
    """Return the PJRT clients of the platforms that are used, by name: the CPU, and the default one.

    >>> "cpu" in backends()
    True
    """
    clients = [get_backend(platform) for platform in ("cpu", None)]
    return {client.platform: client for client in clients}


def local_devices(process_index: int | None = None, backend: str | None = None) -> list[Device]:
    """List the devices of a platform, or of the default one, that belong to a process, by default this one.

    Raises: RuntimeError if the platform is not there, with the reason; ValueError if no device belongs to the process.
    """
    there = _platform(backend or default_backend())
    own = there[0].client.process_index() if process_index is None else process_index
    found = [d for d in there if d.process_index == own]
    if not found:
        raise ValueError(f"local_devices: no device of {there[0].platform!r} belongs to process_index={own!r}.")
    return found


def device_count(backend: str | None = None) -> int:
    """Count the devices of a platform, or of the default one, over all processes.

    Raises: RuntimeError if the platform is not there, with the reason.
    """
    return len(_platform(backend or default_backend()))


def local_device_count(backend: str | None = None) -> int:
    """Count the devices of a platform, or of the default one, that belong to this process.

    Raises: RuntimeError if the platform is not there, with the reason.
    """
    return len(local_devices(backend=backend))


def process_count(backend: str | None = None) -> int:
    """Count the processes of a platform, or of the default one.

    Raises: RuntimeError if the platform is not there, with the reason.
    """
    return len(process_indices(backend))


def process_index(backend: str | None = None) -> int:
    """Return the number of this process among the processes of a platform, or of the default one, from 0.

    Raises: RuntimeError if the platform is not there, with the reason.
    """
    return _platform(backend or default_backend())[0].client.process_index()


def process_indices(backend: str | None = None) -> list[int]:
    """List the numbers of the processes of a platform, or of the default one.

    Raises: RuntimeError if the platform is not there, with the reason.
    """
    return sorted({d.process_index for d in _platform(backend or default_backend())})


def default_backend() -> str:
    """Name the platform that is used by default: "cpu", "gpu" or "tpu"."""
    return _default_platform()[0].platform


def device_of_handle(handle: Any) -> Device:
    """Return the `Device` of a jaxlib device."""
    return _by_handle[handle]


def only_one() -> bool:
    """Tell whether the platforms in use have one device in all, so that no value can be on another one."""
    if not _by_handle:
        _default_platform()
    return len(_by_handle) == 1


def only() -> Device | None:
    """Return the only device of the platforms in use, or None: a fast test before every eager operation."""
    return _only


def of_placement(who: str, placement: Any) -> Device | None:
    """Return the device of a placement: a device, the sharding of an array on one device, or None.

    Raises: TypeError in the name of `who` if `placement` is none of these.
    """
    device = placement.device if isinstance(placement, SingleDeviceSharding) else placement
    if device is not None and not isinstance(device, Device):
        advice = _of_name(device) if isinstance(device, str) else ""
        raise TypeError(f"{who}: the device must be one of tl.devices(), not {device!r}.{advice}")
    return device


def _of_name(name: str) -> str:
    """Advise what to write for a device by PyTorch's name, as `cuda:1`."""
    platform, _, number = name.partition(":")
    platform = "gpu" if platform == "cuda" else platform
    known = platform in ("cpu", "gpu", "tpu") and (number.isdecimal() or not number)
    return f"\n  Write tl.devices({platform!r})[{number or 0}]." if known else ""


def config_cpu_devices(n: int) -> None:
    """Make the CPU count as `n` devices, to try programs for several. Call it before the CPU is used.

    Raises: ValueError for less than 1; RuntimeError if the CPU is in use already with another number.

    A process that has computed nothing yet:

    >>> import subprocess, sys
    >>> program = "import tapeless as tl; tl.config_cpu_devices(2); print(tl.device_count('cpu'))"
    >>> subprocess.check_output([sys.executable, "-c", program], text=True)
    '2\\n'
    """
    if n < 1:
        raise ValueError(f"config_cpu_devices: the CPU is at least one device, not {n}.")
    config.update("num_cpu_devices", n)


# ---- the default device


def current_device() -> Device:
    """Return the device for values that are on none: the one set by `default_device`, else the first."""
    return _default.__get__(None) or _default_platform()[0]


def _check_platform(name: str) -> None:
    """Connect to a platform, to check that it is there. Raises: RuntimeError if it is not, with the reason."""
    _platform(name)


config.watch("platform_name", _check_platform)


@contextmanager
def default_device(device: Device | str | None) -> Generator[Device]:
    """Use a device, or the first of a platform, within a with block (of this thread or task).

    Raises: on entry, RuntimeError if the platform is not there, with the reason, TypeError for other values.

    >>> with default_device("cpu") as device:
    ...     device
    CpuDevice(id=0)
    """
    with _default.scope(device):
        yield current_device()


def set_default_device(device: Device | str | None) -> None:
    """Use a device, or the first of a platform, from now on, in every thread; None goes back to the first device.

    Raises: RuntimeError if the platform is not there, with the reason, TypeError for other values.
    """
    config.update("default_device", device)


def _chosen(device: Any) -> Device | None:
    if device is None or isinstance(device, Device):
        return device
    if isinstance(device, str):
        return _platform(device)[0]
    raise TypeError(f"a device or the name of a platform is expected, not {device!r} of type {type(device).__name__}.")


class _DeviceField(Field[Any]):
    """The setting `config.default_device`: a device or None; a platform's name means its first device."""

    def checked(self, value: Any) -> Device | None:
        return _chosen(value)


_default = add_field("default_device", _DeviceField(None, None, keyed=False))


class _CountField(Field[int]):
    """The setting `config.num_cpu_devices`: as how many devices the CPU counts; -1 for what the environment says."""

    def checked(self, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or (value < 1 and value != -1):
            raise ValueError(f"config.num_cpu_devices must be a positive integer, or -1 for 1, not {value!r}.")
        there = _found.get("cpu")
        if there is not None and value not in (-1, len(there)):
            raise RuntimeError(
                f"config_cpu_devices({value}): the CPU is in use, as {len(there)} device(s). Call this before anything "
                "is computed, or set TAPELESS_NUM_CPU_DEVICES."
            )
        return value


# ---- platforms

_found: dict[str, tuple[Device, ...]] = {}
_by_handle: dict[Any, Device] = {}
_only: Device | None = None
_lock = threading.RLock()
_ALIASES = {"gpu": "cuda"}
when_connected: list[Callable[[], None]] = []  # called when there is one more platform
_cpu_devices = add_field("num_cpu_devices", _CountField(-1, None, keyed=False))


def list_clients() -> dict[str, Any]:
    """Return the PJRT clients of the platforms that are in use by now, by name."""
    return {devices[0].platform: devices[0].client for devices in _found.values()}


def _platform(name: str) -> tuple[Device, ...]:
    """Return the devices of a platform, whose client is made on first use."""
    name = _ALIASES.get(name, name)
    return _found.get(name) or _connect(name)


def _connect(name: str) -> tuple[Device, ...]:
    global _only
    with _lock:
        if name in _found:
            return _found[name]
        if name not in _clients:
            raise RuntimeError(f"there is no platform {name!r}; there are {', '.join([*_clients, *_ALIASES])}.")
        forking.check()
        client = _clients[name]()
        forking.prepare(client)
        _install_hooks()
        found = tuple(map(Device, client.devices()))
        handles = {d.handle: d for d in found}
        _only = found[0] if len(found) == 1 and not _by_handle else None
        _found[name] = found  # whatever interrupts this, both are done or neither is
        _by_handle.update(handles)
        for forget in when_connected:
            forget()
        return found


def _device_numbered(platform: str, id: int) -> Device:
    found = [d for d in _platform(platform) if d.id == id]
    if not found:
        raise RuntimeError(f"there is no {platform} device {id} here; there are {devices(platform)}.")
    return found[0]


def _default_platform() -> tuple[Device, ...]:
    """Return the devices of the platform `config.platform_name`, else of the best one."""
    asked = config.platform_name
    return _platform(asked) if asked else _best_platform()


@functools.cache
def _best_platform() -> tuple[Device, ...]:
    """Return the devices of the platform TAPELESS_PLATFORM, else of the best that works: TPU, CUDA, CPU."""
    asked = os.environ.get("TAPELESS_PLATFORM")
    if asked:
        return _platform(asked)
    for name, is_likely in (("tpu", _has_tpu), ("cuda", _has_cuda)):
        if is_likely():
            try:
                return _platform(name)
            except (RuntimeError, OSError, ImportError) as error:
                source.warn(f"the {name} plugin is installed and does not work: {error}\n  Using CPU.")
    return _platform("cpu")


# ---- cpu


def _cpu_client() -> Any:
    n = _cpu_devices.__get__(None)
    if n == -1:
        flag = re.search(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
        n = int(os.environ.get("TAPELESS_NUM_CPU_DEVICES", flag[1] if flag else "1"))
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n > 1:
        # Collectives wait for each other in XLA's thread pool, which some releases make as wide as the machine: with
        # more devices than cores it fills with waiting programs, and the process is aborted.
        os.environ.setdefault("PJRT_NPROC", str(max(32, 4 * n)))
    elif threads == 2:
        # An operation of each of two programs may wait, see `in_turn` in hlo.py. With more threads than cores those of
        # OpenBLAS wait for each other.
        os.environ.setdefault("PJRT_NPROC", "3")
    return xc.make_cpu_client(num_devices=n)


# ---- plugins: loaded as `jax_plugins.xla_cuda*.initialize()` does it, which would import jax

_CUDA_LIBRARIES = {
    "cu13": "libcudart.so.13 libnvrtc.so.13 libcublas.so.13 libcublasLt.so.13 libcupti.so.13 libcusparse.so.12 "
    "libcusolver.so.12 libcufft.so.12",
    "nccl": "libnccl.so.2",
    "nvshmem": "libnvshmem_host.so.3",
    "cudnn": "libcudnn.so.9",
}


_DRIVER_NODES = ("/dev/nvidiactl", "/dev/dxg")  # of Linux, and of Linux in Windows


def _has_cuda() -> bool:
    """Tell whether there is a plugin and a driver; the plugin is often installed without a driver."""
    return _cuda_plugin() is not None and _has_cuda_driver()


def _has_cuda_driver() -> bool:
    return any(Path(node).exists() for node in _DRIVER_NODES)


def _cuda_plugin() -> Any:
    """Find the package of the CUDA plugin, without importing it; None if there is none."""
    if importlib.util.find_spec("jax_plugins") is None:
        return None
    found = (importlib.util.find_spec(f"jax_plugins.xla_cuda{v}") for v in (13, 12))
    return next((spec for spec in found if spec is not None), None)


def _cuda_client() -> Any:
    plugin = _cuda_plugin()
    if plugin is None:
        raise RuntimeError(
            "there is no CUDA plugin: pip install jax-cuda13-plugin jax-cuda13-pjrt, of jaxlib's version."
        )
    if not _has_cuda_driver():  # which the plugin would find out with lines of its own on stderr
        raise RuntimeError(f"there is a CUDA plugin and no GPU: none of {', '.join(_DRIVER_NODES)} is there.")
    major = plugin.name[-2:]
    # Jax loads the plugin as "cuda", and fails where that is there: it is taken from jax, and not taken away from it.
    name = "cuda" if xc.pjrt_plugin_loaded("cuda") else "tapeless_cuda"
    if not xc.pjrt_plugin_loaded(name):
        _preload_cuda_libraries(major)
        api = xc.load_pjrt_plugin_dynamically(name, str(_folder(plugin) / "xla_cuda_plugin.so"))
        _register_cuda_kernels(api, importlib.import_module(f"jax_cuda{major}_plugin.cuda_plugin_extension"))
        importlib.import_module("jaxlib._profiler").register_plugin_profiler(api)
    if not xc.pjrt_plugin_initialized(name):
        xc.initialize_pjrt_plugin(name)
    return xc.make_c_api_client(name, dict(xc.generate_pjrt_gpu_plugin_options()))


def _preload_cuda_libraries(major: str) -> None:
    """Load the CUDA libraries that pip installed, so that the plugin finds them; others come by LD_LIBRARY_PATH."""
    if major != "13" or importlib.util.find_spec("nvidia") is None:
        return
    for path in _cuda_library_paths():
        try:
            ctypes.CDLL(str(path))
        except OSError:
            continue  # the plugin says which it misses


def _cuda_library_paths() -> Iterator[Path]:
    for package, libraries in _CUDA_LIBRARIES.items():
        spec = importlib.util.find_spec(f"nvidia.{package}")
        if spec is not None:
            yield from (_folder(spec) / "lib" / library for library in libraries.split())


def _folder(package: Any) -> Path:
    return Path(package.submodule_search_locations[0])


def _register_cuda_kernels(api: Any, extension: Any) -> None:
    """Register the plugin's and jaxlib's kernels (LAPACK's counterparts, threefry, ...) with XLA."""
    xc.register_custom_type_handler("CUDA", functools.partial(extension.register_custom_type, api))
    xc.register_custom_call_handler("CUDA", functools.partial(extension.register_custom_call_target, api))
    for name, kind in extension.ffi_types().items():
        xc.register_custom_type(name, kind, platform="CUDA")
    for name, handler in extension.ffi_handlers().items():
        xc.register_custom_call_target(name, handler, platform="CUDA", api_version=1)
    for library in ("gpu_solver", "gpu_linalg", "gpu_prng", "gpu_sparse"):
        for platform, targets in importlib.import_module(f"jaxlib.{library}").registrations().items():
            for name, target, version in targets:
                xc.register_custom_call_target(name, target, platform=platform, api_version=version)


def _has_tpu() -> bool:
    """Tell whether there is a plugin and a Google device on the bus; without one libtpu asks the network, and waits."""
    if not os.environ.get("TPU_LIBRARY_PATH") and importlib.util.find_spec("libtpu") is None:
        return False
    vendors = Path("/sys/bus/pci/devices").glob("*/vendor")
    return any(vendor.read_text().strip() == "0x1ae0" for vendor in vendors)


def _tpu_client() -> Any:
    if not _has_tpu():
        raise RuntimeError("there is no TPU here, or no plugin for it: pip install libtpu.")
    if not xc.pjrt_plugin_loaded("tpu"):
        path = os.environ.get("TPU_LIBRARY_PATH") or importlib.import_module("libtpu").get_library_path()
        api = xc.load_pjrt_plugin_dynamically("tpu", path)
        importlib.import_module("jaxlib._profiler").register_plugin_profiler(api)
    if not xc.pjrt_plugin_initialized("tpu"):
        xc.initialize_pjrt_plugin("tpu")
    return xc.make_c_api_client("tpu", {})


_clients = {"cpu": _cpu_client, "cuda": _cuda_client, "tpu": _tpu_client}

# ---- hooks of the process


@functools.cache
def _install_hooks() -> None:
    class Collection(Exception):
        """A hook of the garbage collector: an instance, made and dropped, releases Python objects that buffers held.

        Otherwise jaxlib does so in its own time. If the hook were Python code, an interrupt that comes during garbage
        collection would be raised in it, and lost except for a line on stderr. This one runs no Python: an exception
        takes any arguments, and its finalizer is jaxlib's function.
        """

        __slots__ = ()
        __del__ = staticmethod(jaxlib_core.collect_garbage)

    gc.callbacks.append(Collection)
