"""Everything that differs among the jaxlib releases we run on, found by feature and never by version.

What jaxlib does is stable; how it is spelled is not. Here each difference is hidden behind one function, so that a new
release is a change to this file. Three rules of jaxlib's bear on all of lowering, and hold on every release:
- its process-wide switches belong to jax (`set_enable_x64_state` above all): we set none, we pass keywords;
- some of its paths import jax behind the user's back: we take the others wherever there are others;
- many of its checks are missing: we hand it checked arguments (buffers are compared by size in bytes only).
"""

import functools
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

# Read once, when the extension is loaded: without it each client logs a line about its devices.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import numpy as np

from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.types import ShapedArray


class _JaxlibModule(LateModule):
    """A module of jaxlib, loaded when a program is first compiled or an array made: to trace programs takes none.

    What is found there is kept, as dispatch asks for it at each call.
    """

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = super().__getattr__(name)
        return found


xc: Any = _JaxlibModule("jaxlib.xla_client")  # its stubs describe one release, and we run on several
jaxlib_core: Any = _JaxlibModule("jaxlib._jax")
_version: Any = _JaxlibModule("jaxlib.version")


def jaxlib_version() -> str:
    """Return the release of jaxlib, as "0.10.2"."""
    return _version.__version__


def jaxlib_identity() -> str:
    """Identify the build of jaxlib: programs that one build compiled do not run in another."""
    return f"jaxlib {jaxlib_version()}, interface {xc._version}, commit {getattr(_version, '__git_hash__', '')}"


# What surrounds calls that import jax.core. As long as the process lives jaxlib keeps the classes that it finds there,
# or that there are none: they must be JAX's own, whatever `import jax` means just then; see api/jax_shim.py.
around_imports_of_jax: list[Callable[[], AbstractContextManager[None]]] = []


def _importing_jax(call: Callable[..., Any], *args: Any) -> Any:
    with ExitStack() as around:
        for enter in around_imports_of_jax:
            around.enter_context(enter())
        return call(*args)


# ---- buffers


def put(host: np.ndarray[Any, Any], aval: ShapedArray, sharding: Any, device: Any) -> Any:
    """A buffer holding a copy of `host`, made before this returns.

    The keywords are what makes it so: other semantics alias NumPy's memory, sometimes, and without `enable_x64`
    jax's switch, if jax is there, decides whether 64 bits arrive.
    """
    copied = xc.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
    return xc.batched_device_put(aval, sharding, [host], [device], enable_x64=True, host_buffer_semantics=copied)


def transfer(buf: Any, aval: ShapedArray, sharding: Any, device: Any) -> Any:
    """A buffer on another device."""
    return xc.batched_device_put(aval, sharding, [buf], [device], enable_x64=True)


def duplicate(buf: Any, devices: Any, sharding: Any) -> Any:
    """Copy `buf` to a buffer of its own memory; `devices` is a DeviceList of one."""
    always = jaxlib_core.ArrayCopySemantics.ALWAYS_COPY
    return xc.batched_copy_array_to_devices_with_sharding([buf], [devices], [sharding], [always])[0]


def to_numpy(buf: Any) -> np.ndarray[Any, Any]:
    """The elements, read-only: a view where there is host memory to view, else a copy. Waits for them.

    Through memoryview, because `np.asarray(buf)` of a deleted buffer is an object array, and not an error.
    """
    try:
        return np.asarray(memoryview(buf))
    except (BufferError, TypeError, ValueError, RuntimeError):  # no buffer format for bfloat16 and the like; not on CPU
        return _read_back(buf)


def _read_back(buf: Any) -> np.ndarray[Any, Any]:
    if hasattr(buf, "_to_np_array_did_copy"):
        return buf._to_np_array_did_copy()[0]
    return _importing_jax(buf._single_device_array_to_np_array_did_copy)[0]


def copy_to_host_async(buf: Any) -> None:
    """Begin to copy a buffer to the host, where `to_numpy` will find it."""
    name = "_copy_single_device_array_to_host_async"
    getattr(buf, name if hasattr(buf, name) else "copy_to_host_async")()


def address(buf: Any) -> int:
    """Return the device address of a buffer's elements."""
    return _importing_jax(buf.unsafe_buffer_pointer)


# ---- results


def result_handler(aval: ShapedArray, sharding: Any) -> Any:
    """A function in C++ that gives a raw result its type and sharding; `.wrap(cls)` makes it call `cls` on that."""
    try:
        return xc.array_result_handler(aval, sharding, True, True)
    except TypeError:  # newer releases never check, and have no argument that says so
        return xc.array_result_handler(aval, sharding, True)


# ---- dlpack


def export_dlpack(buf: Any, stream: Any = None) -> Any:
    """An unversioned capsule: the one form that every release makes and every consumer reads."""
    return jaxlib_core.buffer_to_dlpack_managed_tensor(buf, stream=stream)


def import_dlpack(capsule: Any, device: Any, stream: Any, copy: bool | None) -> Any:
    """A raw buffer on the memory of a capsule, or on a copy of it where alignment requires one and `copy` lets it."""
    return _importing_jax(jaxlib_core.dlpack_managed_tensor_to_buffer, capsule, device, stream, copy)


def has_default_layout(buf: Any, dtype: Any, shape: Sequence[int], device: Any) -> bool:
    """Tell whether a buffer is in row-major order, which programs assume; imported ones may be transposed."""
    return str(buf._pjrt_layout) == str(device.client.get_default_layout(np.dtype(dtype), tuple(shape), device))


# ---- programs


def deserialize(client: Any, blob: bytes, devices: Any, callbacks: Sequence[Any], options: Any = None) -> Any:
    """Load the executable that `.serialize()` gave `blob`; with `options`, for the devices that these assign.

    Raises: XlaRuntimeError, or whatever else a bad blob leads to.
    """
    if callbacks:
        return client.deserialize_executable(blob, devices, options, list(callbacks))
    return client.deserialize_executable(blob, devices, options)


def memory_field(stats: Any, name: str) -> Any:
    """A field of an executable's memory statistics, None on releases that do not have it."""
    return getattr(stats, name, None)


# ---- LAPACK


@functools.cache
def load_lapack() -> None:
    """Make LAPACK's routines known to XLA: a program that calls one of them before this ends the process.

    They are SciPy's, whose loading takes a good part of a second: hence not before some program needs them.
    """
    lapack = importlib.import_module("jaxlib.lapack")
    for platform, targets in lapack.registrations().items():
        for name, capsule, api in targets:
            xc.register_custom_call_target(name, capsule, platform=platform, api_version=api)
    lapack._lapack.initialize()


def with_extra_options(options: Any, extra: Mapping[str, str]) -> Any:
    """Compile options with entries of `xla_backend_extra_options` added, which bindings for Python do not offer.

    By protocol buffers: what is appended to a message is merged with it. The numbers are those of the fields
    `executable_build_options.debug_options.xla_backend_extra_options[name] = value`.
    """
    added = [
        _field(3, _field(3, _field(500, _field(1, name.encode()) + _field(2, value.encode()))))
        for name, value in extra.items()
    ]
    return xc.CompileOptions.ParseFromString(b"".join([options.SerializeAsString(), *added])) if added else options


def _field(number: int, content: bytes) -> bytes:
    """A field of a protocol buffer that has a length."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(n: int) -> bytes:
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + _varint(n >> 7)


# ---- modules


def module_cost(client: Any, text: str) -> dict[str, float]:
    """XLA's estimates of a StableHLO module as it is written: "flops", "bytes accessed", "transcendentals", ..."""
    hlo = jaxlib_core.mlir.mlir_module_to_xla_computation(text).get_hlo_module()
    return dict(jaxlib_core.hlo_module_cost_analysis(client, hlo))


def hlo_text(text: str) -> str:
    """Print a StableHLO module as HLO, as it is before XLA optimises it."""
    return jaxlib_core.mlir.mlir_module_to_xla_computation(text).as_hlo_text()
