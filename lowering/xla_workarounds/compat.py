"""Compatibility with several releases of jaxlib: all that differs among them, found by feature and never by version.

What jaxlib does is stable; how it is spelled is not. Here each difference is hidden behind one function, so that a new
release is a change to this file. Three facts about jaxlib bear on all of lowering, and hold on every release:
- its process-wide switches belong to jax (`set_enable_x64_state` above all): we set none, we pass keywords;
- some of its functions import jax behind the user's back: we call others wherever there are others;
- it checks little: we hand it checked arguments (it compares buffers by size in bytes only).
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
    """A module of jaxlib, loaded at its first use, to compile a program or to make an array: tracing needs none.

    Its attributes are cached, as dispatch reads them at each call.
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


# Context managers around calls in which jaxlib imports jax.core. For the life of the process jaxlib keeps the classes
# that it finds there, or that there are none: they must be JAX's own, whatever `import jax` means (like_jax/shim.py).
around_imports_of_jax: list[Callable[[], AbstractContextManager[None]]] = []


def _importing_jax(call: Callable[..., Any], *args: Any) -> Any:
    with ExitStack() as around:
        for enter in around_imports_of_jax:
            around.enter_context(enter())
        return call(*args)


# ---- buffers


def put(host: np.ndarray[Any, Any], aval: ShapedArray, sharding: Any, device: Any) -> Any:
    """Copy `host` to a buffer on a device, before this returns.

    The keywords ensure that: other semantics sometimes alias NumPy's memory, and without `enable_x64` a switch of jax,
    if jax is loaded, decides whether 64 bits arrive.
    """
    copied = xc.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
    return xc.batched_device_put(aval, sharding, [host], [device], enable_x64=True, host_buffer_semantics=copied)


def transfer(buf: Any, aval: ShapedArray, sharding: Any, device: Any) -> Any:
    """Copy a buffer to another device."""
    return xc.batched_device_put(aval, sharding, [buf], [device], enable_x64=True)


def duplicate(buf: Any, devices: Any, sharding: Any) -> Any:
    """Copy `buf` to a buffer of its own memory; `devices` is a DeviceList of one."""
    always = jaxlib_core.ArrayCopySemantics.ALWAYS_COPY
    return xc.batched_copy_array_to_devices_with_sharding([buf], [devices], [sharding], [always])[0]


def same_memory(buf: Any) -> Any:
    """Make another buffer of the same memory: which is deleted with it, where a program takes it."""
    return buf.clone()


def to_numpy(buf: Any) -> np.ndarray[Any, Any]:
    """Wait for a buffer, and return its elements, read-only: a view if they are in host memory, else a copy.

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
    """Begin to copy a buffer to the host, where `to_numpy` will find the copy."""
    name = "_copy_single_device_array_to_host_async"
    getattr(buf, name if hasattr(buf, name) else "copy_to_host_async")()


def address(buf: Any) -> int:
    """Return the device address of a buffer's elements."""
    return _importing_jax(buf.unsafe_buffer_pointer)


# ---- results


def result_handler(aval: ShapedArray, sharding: Any) -> Any:
    """Return a C++ function that gives a raw result its type and sharding; `.wrap(cls)` makes it apply `cls` then."""
    try:
        return xc.array_result_handler(aval, sharding, True, True)
    except TypeError:  # newer releases never check, and have no argument that says so
        return xc.array_result_handler(aval, sharding, True)


# ---- dlpack


def export_dlpack(buf: Any, stream: Any = None) -> Any:
    """Export an unversioned capsule: the one form that every release writes and every consumer reads."""
    return jaxlib_core.buffer_to_dlpack_managed_tensor(buf, stream=stream)


def import_dlpack(capsule: Any, device: Any, stream: Any, copy: bool | None) -> Any:
    """Import a capsule as a raw buffer on its memory, or on a copy if alignment requires one and `copy` allows it."""
    return _importing_jax(jaxlib_core.dlpack_managed_tensor_to_buffer, capsule, device, stream, copy)


def has_default_layout(buf: Any, dtype: Any, shape: Sequence[int], device: Any) -> bool:
    """Tell whether a buffer is in row-major order, which programs assume; imported ones may be transposed."""
    return str(buf._pjrt_layout) == str(device.client.get_default_layout(np.dtype(dtype), tuple(shape), device))


# ---- programs


def deserialize(client: Any, blob: bytes, devices: Any, callbacks: Sequence[Any], options: Any = None) -> Any:
    """Load an executable from the bytes of its `.serialize()`; with `options`, for the devices that these assign.

    Raises: XlaRuntimeError, or any other exception for a bad blob.
    """
    if callbacks:
        return client.deserialize_executable(blob, devices, options, list(callbacks))
    return client.deserialize_executable(blob, devices, options)


def memory_field(stats: Any, name: str) -> Any:
    """Return a field of an executable's memory statistics; None on releases that do not have it."""
    return getattr(stats, name, None)


# ---- LAPACK


@functools.cache
def load_lapack(platform: str) -> frozenset[str]:
    """Register LAPACK's routines with XLA, and return their names; of a GPU none is known.

    A program that calls one of them before that ends the process.

    They are SciPy's, which takes a good part of a second to load: hence only when a program needs them. On a GPU the
    kernels that call them on the host are registered with the device, and get their addresses here.
    """
    if platform != "cpu":
        importlib.import_module("jaxlib.gpu_solver").initialize_hybrid_kernels()
        return frozenset()
    lapack = importlib.import_module("jaxlib.lapack")
    found = lapack.registrations()
    for platform, targets in found.items():
        for name, capsule, api in targets:
            xc.register_custom_call_target(name, capsule, platform=platform, api_version=api)
    lapack._lapack.initialize()
    return frozenset(name for name, *_ in found["cpu"])


def with_extra_options(options: Any, extra: Mapping[str, str]) -> Any:
    """Add entries of `xla_backend_extra_options` to compile options, for which there is no Python binding.

    By protocol buffers: fields appended to a serialized message are merged into it. The numbers are those of the fields
    `executable_build_options.debug_options.xla_backend_extra_options[name] = value`.
    """
    added = [
        _field(3, _field(3, _field(500, _field(1, name.encode()) + _field(2, value.encode()))))
        for name, value in extra.items()
    ]
    return xc.CompileOptions.ParseFromString(b"".join([options.SerializeAsString(), *added])) if added else options


def _field(number: int, content: bytes) -> bytes:
    """Encode a length-delimited field of a protocol buffer."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(n: int) -> bytes:
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + _varint(n >> 7)


# ---- modules


def module_cost(client: Any, text: str) -> dict[str, float]:
    """Return XLA's estimates for a StableHLO module, unoptimised: "flops", "bytes accessed", "transcendentals", ..."""
    hlo = jaxlib_core.mlir.mlir_module_to_xla_computation(text).get_hlo_module()
    return dict(jaxlib_core.hlo_module_cost_analysis(client, hlo))


def hlo(text: str) -> Any:
    """Convert a StableHLO module to HLO, before XLA optimises it: an `XlaComputation`."""
    return jaxlib_core.mlir.mlir_module_to_xla_computation(text)
