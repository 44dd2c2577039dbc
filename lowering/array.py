"""`DeviceArray`: an array on a device, and the ways in and out: NumPy, dlpack, Python numbers, pickles.

A value goes in by copy, whatever it is: mutating what it came from later does not show (but see `from_dlpack`). It
comes out read-only, without a copy where the device's memory is the host's. A deleted or donated array says so.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, SupportsIndex

import numpy as np

from tapeless.lowering import devices, host, memory_errors, transfers
from tapeless.lowering.devices import Device, OnOneDevice, SingleDeviceSharding
from tapeless.lowering.xla_workarounds import compat, forking
from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, Unplaced
from tapeless.tracer.caches import Recent
from tapeless.tracer.core import Tracer, check_truth
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray, aval_of, incoming_number, narrow_array

# Shards of arrays by JAX's names: an array on one device has one shard, the whole array.


@dataclass(frozen=True, eq=False)
class AddressableShard:
    """The part of an array on one device: `index` selects it, `replica_id` numbers the copies of a part."""

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: Any


class ShardMethods(OnOneDevice):
    """Properties and methods of an array on one device that describe its only shard."""

    __slots__ = ()

    @property
    def addressable_shards(self: Any) -> list[AddressableShard]:
        """The shards that this process can read, in a list: one, the whole array."""
        return [AddressableShard(self.device, (slice(None),) * self.aval.ndim, 0, self)]

    @property
    def global_shards(self: Any) -> list[AddressableShard]:
        """The shards on the devices of all processes: `addressable_shards`."""
        return self.addressable_shards

    def addressable_data(self: Any, index: int) -> Any:
        """Return the elements of shard `index`: the array itself. Raises: IndexError for any but the first."""
        shards = self.addressable_shards
        if not -len(shards) <= index < len(shards):
            raise IndexError(
                f"addressable_data: an array of {self.aval} has one shard, on {self.device}, not number {index}."
            )
        return shards[index].data


class DeviceArray(ShardMethods, Array):
    """An array on a device. Made from results in C++, one call each: what the constructor does is the price of that."""

    # `__array_struct__` is NumPy's view of the elements, from when they were read: NumPy asks for it, and finds it
    # without a call of Python. Whoever gives the memory away forgets it, see `forget_view`.
    __slots__ = ("__array_struct__", "__weakref__", "aval", "buf")

    def __init__(self, buf: Any) -> None:
        self.buf: Any = buf
        self.aval: ShapedArray = buf.aval

    # ---- where and whether

    @property
    def device(self) -> Device:
        """The device it is on."""
        return devices.device_of_handle(self.live()._sharding._internal_device_list[0])

    @property
    def sharding(self) -> SingleDeviceSharding:
        """The placement of the elements: on one device."""
        return SingleDeviceSharding(self.device)

    def devices(self) -> set[Device]:
        """The devices it is on."""
        return {self.device}

    @property
    def committed(self) -> bool:
        """Tell whether a user put it on its device, or an array that it was computed from."""
        return getattr(self.buf, "is_committed", False)

    def commit(self) -> "DeviceArray":
        """Keep the array on its device: it is computed with there. Return the array."""
        self.live().is_committed = True
        return self

    def is_deleted(self) -> bool:
        """Tell whether its memory was given up: by `delete`, or by donating it to a program."""
        return self.buf.is_deleted()

    def live(self) -> Any:
        """The buffer. Raises: RuntimeError if it was deleted or donated."""
        buf = self.buf
        if buf.is_deleted():
            raise deleted_error(self.aval)
        return buf

    def delete(self) -> None:
        """Give up the memory: now, or with the last NumPy view of it or array of another library that shares it.

        Only the reference is given up, because freeing memory that a dlpack consumer holds aborts.
        """
        forget_view(self)
        self.buf = _Deleted(self.aval)

    def is_ready(self) -> bool:
        """Tell whether it is computed; asking does not wait."""
        return self.live().is_ready()

    def block_until_ready(self) -> "DeviceArray":
        """Wait until the array is computed, and return it. Raises: the error of its computation."""
        wait((self,))
        return self

    def on_device_size_in_bytes(self) -> int:
        """The memory it takes on its device, padding and packing included."""
        return self.live().on_device_size_in_bytes()

    def unsafe_buffer_pointer(self) -> int:
        """Address of the elements on the device; valid for as long as the array is."""
        if self.device.platform == "cpu":
            return self._host().ctypes.data
        return compat.address(self.live())

    def around(self, buf: Any) -> "DeviceArray":
        """An array of the same class in another buffer."""
        return DeviceArray(buf)

    def placed(self, aval: ShapedArray, device: Device) -> "DeviceArray":
        """Return the array on `device` with type `aval`, converted if the dtype differs; itself if nothing changes."""
        if self.aval.dtype != aval.dtype:
            return put(np.asarray(self), aval, device)
        if self.device is device:
            return with_type(self, aval)
        if self.device.client is not device.client:
            return put(np.asarray(self), aval, device)
        forking.check()
        transfers.between_devices(aval)
        return DeviceArray(compat.transfer(self.live(), aval, device.sharding, device.handle))

    def refuse_in_children(self) -> None:
        """Raise RuntimeError for an array that never gets ready: this process was forked while it was computed."""
        if forking.forked and not self.is_ready():
            raise forking.refusal()

    # ---- out: NumPy and Python

    def _host(self) -> np.ndarray[Any, Any]:
        if forking.forked:
            self.refuse_in_children()
        if (devices.only() or self.device).platform != "cpu":
            transfers.to_host(self.aval)
        return host.raising(compat.to_numpy, self.live())

    def copy_to_host_async(self) -> None:
        """Begin to copy the elements to the host, without waiting for them: reading them later finds them there."""
        buf = self.live()
        if self.device.platform != "cpu":
            transfers.explicitly(transfers.to_host, self.aval)
            compat.copy_to_host_async(buf)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        host = self._host()
        if host.dtype.isbuiltin == 1 and not host.flags.writeable:  # there is no form for dtypes of others
            self.__array_struct__: Any = host.__array_struct__
        if dtype is not None and dtype != host.dtype:
            if copy is False:
                raise ValueError(f"np.asarray(..., copy=False): {self.aval} cannot become {np.dtype(dtype)} uncopied.")
            return host.astype(dtype)
        return host.copy() if copy else host

    def item(self, *index: SupportsIndex) -> Any:
        """One element as a Python number: that at `index`, or the only one. Raises: ValueError if there are more."""
        return self._host().item(*index)

    def tolist(self) -> Any:
        """The elements as Python numbers, in lists as deep as the array has axes."""
        return self._host().tolist()

    def tobytes(self, order: Literal["C", "F", "A", "K"] = "C") -> bytes:
        """The elements as bytes, as `numpy.ndarray.tobytes` gives them."""
        return self._host().tobytes(order)

    def __bool__(self) -> bool:
        check_truth(self.aval)
        return bool(self._host())

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        return self._host().__index__()

    def _scalar(self) -> Any:
        if self.aval.shape:
            raise TypeError(
                f"only 0-dimensional arrays can be converted to Python scalars, not {self.aval}: use tolist()."
            )
        return self._host()[()]

    def __iter__(self) -> Iterator["DeviceArray"]:
        if not self.aval.shape:
            raise TypeError(f"iteration over {self.aval}, an array without axes. x[None] has one, of length 1.")
        return self._rows()

    def _rows(self) -> Iterator["DeviceArray"]:
        """The parts along the first axis, by way of the host: one read, and for each a put, cheaper than a program."""
        host, device, aval = self._host(), self.device, self.aval.update(shape=self.aval.shape[1:])
        for i in range(len(host)):
            row = put(host[i, ...], aval, device)
            yield row.commit() if self.committed else row

    def __hash__(self) -> int:
        raise TypeError(
            f"an array is not hashable: {self.aval}. Use its elements, x.item() or tuple(x.tolist()), or id(x)."
        )

    def __format__(self, spec: str) -> str:
        host = self._host()
        return format(host if host.ndim else host[()], spec)

    def __str__(self) -> str:
        return repr(self) if self.is_deleted() else str(self._host())

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"<deleted Array: {self.aval}>"
        return _described(self._host(), self.aval)

    # ---- out: other libraries, copies, files

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """A capsule sharing the memory, which nobody may write to (the form in use has no way to say so).

        Raises: BufferError for dtypes that dlpack does not have, and for other devices.
        """
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"__dlpack__: the array is on {self.device}; move it with device_put first.")
        try:
            return compat.export_dlpack(duplicate(self).buf if copy else self.live(), stream)
        except compat.xc.XlaRuntimeError as error:
            self.live()
            if memory_errors.is_exhausted(error):  # of the program that computes it
                raise memory_errors.explain_read(error) from None
            raise BufferError(f"__dlpack__: dlpack has no form for {self.aval}: {error}") from None

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.device
        return (_DLPACK_OF_PLATFORM[device.platform], device.handle.local_hardware_id or 0)

    def __copy__(self) -> "DeviceArray":
        return duplicate(self)

    def __deepcopy__(self, memo: Any) -> "DeviceArray":
        return duplicate(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return from_elements, (self._host(), self.aval.weak_type)


def forget_view(x: DeviceArray) -> None:
    """Drop NumPy's view of an array that is to be deleted or donated: XLA takes no memory that is shared."""
    x.__array_struct__ = None
    del x.__array_struct__  # not set, it has nothing to be deleted


class _Deleted:
    """Stands where the buffer of a deleted array was."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval: Final = aval

    def is_deleted(self) -> bool:
        return True


def wait(arrays: Sequence[DeviceArray]) -> None:
    """Wait until arrays are computed, by one call. Raises: the error of a computation, or of a deleted array."""
    if forking.forked:
        for x in arrays:
            x.refuse_in_children()
    try:
        host.raising(compat.xc.batched_block_until_ready, [x.buf for x in arrays])
    except RuntimeError:
        for x in arrays:  # asked now, and not before each wait
            if x.is_deleted():
                raise deleted_error(x.aval) from None
        raise


def deleted_error(aval: ShapedArray, who: str = "this array") -> RuntimeError:
    """The error for an array that was deleted or donated."""
    return RuntimeError(
        f"{who} has been deleted or donated: {aval}.\n"
        "  A program that took it by donate_argnums reused its memory, or delete() was called.\n"
        "  Use the program's result instead, or pass a copy."
    )


def _described(host: np.ndarray[Any, Any], aval: ShapedArray) -> str:
    """`Array([1., 2.], dtype=float32)`: the type is on a line of its own where it would not fit."""
    width = np.get_printoptions()["linewidth"]
    kind = f"dtype={aval.dtype.name}{', weak_type=True' if aval.weak_type else ''})"
    elements = f"[], shape={aval.shape}"
    if aval.size:
        elements = np.array2string(host, prefix="Array(", suffix=",", separator=", ", max_line_width=width)
    last_line = len(elements) - elements.rfind("\n") - 1
    fits = last_line + len(kind) + 3 <= width
    return f"Array({elements},{' ' if fits else ' ' * len('Array(')}{kind}"


# ---- in


def to_device(value: Any, aval: ShapedArray, device: Device) -> DeviceArray:
    """`value` as an array of type `aval` on `device`, by copy. An array of ours that is there already is returned.

    Args:
      value: an array of ours, a NumPy array of any byte order and strides, a NumPy or Python scalar.
      aval: its type; a weakly typed number may take another width than its own by it.
    Raises: OverflowError if a Python integer does not fit.
    """
    if isinstance(value, DeviceArray):
        return value.placed(aval, device)
    if aval.dtype == dtypes.float0:
        return put(np.zeros(aval.shape, bool), aval.update(dtype=np.dtype(bool)), device)
    if isinstance(value, np.ndarray):
        return put(value, aval, device) if value.ndim else scalar_constant(value[()], aval, device)
    return scalar_constant(value, aval, device)


def put(host: Any, aval: ShapedArray, device: Device) -> DeviceArray:
    """Copy NumPy's elements to the device, in the native byte order of `aval`'s dtype."""
    if isinstance(host, _to_be_narrowed()) and dtypes.is_narrower(aval.dtype, host.dtype):
        host = narrow_array(np.asarray(host), aval.dtype)  # config.numpy_bits is 32, or was when its type was asked for
    if transfers.to_device_guard.was_set or forking.forked:
        check_transfer(aval)
    host = np.asarray(host, aval.dtype)
    return DeviceArray(compat.put(host, aval, device.sharding, device.handle))


def check_transfer(aval: ShapedArray) -> None:
    """Raise RuntimeError if nothing may be put on a device now."""
    forking.check()
    transfers.to_device(aval)


def _to_be_narrowed() -> Any:
    """Return the classes of values that have to fit; a NumPy scalar may be rounded beside an array of fewer bits."""
    return np.ndarray if config.numpy_bits == 64 else (np.ndarray, np.generic)


def with_type(x: DeviceArray, aval: ShapedArray) -> DeviceArray:
    """The same memory under another type, of the same shape and dtype: weak or strong."""
    if x.aval is aval:
        return x
    other = x.around(x.live())
    other.aval = aval
    return other


def duplicate(x: DeviceArray) -> DeviceArray:
    """An array equal to `x` in memory of its own, on the same device."""
    forking.check()
    device = x.device
    copy = with_type(x.around(compat.duplicate(x.live(), device.list, device.sharding)), x.aval)
    return copy.commit() if x.committed else copy


scalars: Recent[Any, DeviceArray] = Recent(256)


def scalar_constant(value: Any, aval: ShapedArray, device: Device) -> DeviceArray:
    """A number as an array. The last few hundred are kept: `x * 2.0` in a loop transfers nothing."""
    # Equal numbers share an entry, for `aval` says what they become; but 0.0 == -0.0, also as parts of complex numbers.
    plain = aval.dtype.kind in "iu" or (value and not isinstance(value, (complex, np.complexfloating)))
    key = (value if plain else repr(value), aval, device)
    found = scalars.get(key)
    if found is None:
        found = scalars.recall(key)
    if found is None or found.is_deleted():
        check_number_fits(value, aval)
        found = scalars.enter(key, put(value, aval, device))
    return found


def check_number_fits(value: Any, aval: ShapedArray) -> None:
    """Raise OverflowError if an integer of Python's does not fit its type."""
    if type(value) is int and dtypes.is_integer(aval.dtype):
        dtypes.check_fits(value, aval.dtype)


def device_put(value: Any, device: Device | None = None) -> DeviceArray:
    """`value` as an array on `device`: a number, a NumPy array, one of ours, or any that speaks dlpack.

    By copy, except that an array of ours which is on `device` is returned; with no device, on whichever it is.
    """
    return transfers.explicitly(_device_put, value, device)


def _device_put(value: Any, device: Device | None) -> DeviceArray:
    if device is not None:
        return _on_device(value, device).commit()
    return value if isinstance(value, DeviceArray) else _on_device(value, devices.current_device())


def _on_device(value: Any, device: Device) -> DeviceArray:
    if isinstance(value, Unplaced):
        return put(np.asarray(value), value.aval, device)
    if isinstance(value, DeviceArray):
        there = value.placed(value.aval, device)
        alone = there is not value or value.committed
        return there if alone else with_type(there.around(compat.same_memory(there.live())), there.aval)
    if hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic)):
        imported = from_dlpack(value, copy=True)
        return imported.placed(imported.aval, device)
    value = incoming_number(value)
    aval = aval_of(value)
    if aval.shape or aval.dtype == dtypes.float0:
        return to_device(value, aval, device)
    check_number_fits(value, aval)
    return put(value, aval, device)  # not one of `scalar_constant`, which may be donated only once


def device_get(x: Any) -> np.ndarray[Any, Any]:
    """The elements as a NumPy array, read-only if `x` is ours."""
    return transfers.explicitly(np.asarray, x)


def live_arrays(platform: str | None = None) -> list[DeviceArray]:
    """List the arrays on the devices of a platform, or of the default one: those that someone holds, constants of
    compiled programs and numbers kept for later use among them; keys as their words.

    Raises: RuntimeError if the platform is not there, with the reason.
    """
    bufs = devices.devices(platform)[0].client.live_arrays()
    return [DeviceArray(buf) for buf in bufs if type(buf.aval) is ShapedArray and not buf.is_deleted()]


def from_elements(host: np.ndarray[Any, Any], weak_type: bool) -> DeviceArray:
    """Copy NumPy's elements to the current device: bit for bit, in their own dtype, whatever `config.numpy_bits`."""
    return put(host, ShapedArray(host.shape, host.dtype, weak_type), devices.current_device())


# ---- dlpack

_DLPACK_CPU, _DLPACK_CUDA, _DLPACK_CUDA_HOST = 1, 2, 3
_DLPACK_OF_PLATFORM = {"cpu": _DLPACK_CPU, "gpu": _DLPACK_CUDA}


def from_dlpack(x: Any, *, device: Device | None = None, copy: bool | None = None) -> DeviceArray:
    """Convert an array of another library, sharing its memory where possible.

    It shares the memory where it can, and then what the other library writes to it shows here: arrays are immutable
    only as far as we write to them. `copy=True` never shares.

    Args:
      x: has `__dlpack__` and `__dlpack_device__`.
      device: where to put it; by default where it is.
      copy: None to share if the elements are contiguous, in C order and aligned; False to share or fail; True to copy.
    Raises: TypeError if x has not these methods; BufferError if it cannot be shared and `copy` is False, or cannot be
      read at all.
    """
    lacks = next((name for name in ("__dlpack__", "__dlpack_device__") if not hasattr(x, name)), None)
    if lacks is not None:
        who = "a traced array" if isinstance(x, Tracer) else type(x).__name__
        raise TypeError(f"from_dlpack: x must have __dlpack__ and __dlpack_device__, but {who} has no {lacks}.")
    there = _copied(x) if copy else _shared(x, copy)
    if device is None or there.device is device:
        return there
    if copy is False:
        raise BufferError(f"from_dlpack: {there.aval} is on {there.device}: it can come to {device} by copy only.")
    return there.placed(there.aval, device)


def _copied(x: Any) -> DeviceArray:
    if isinstance(x, DeviceArray):
        return duplicate(x)
    if isinstance(x, np.ndarray):
        return _in_its_own_dtype(x)
    # Copying may go on after the call, and while it does the owner of the memory must not write to it.
    return duplicate(_shared(x, None)).block_until_ready()


def _shared(x: Any, copy: bool | None) -> DeviceArray:
    if isinstance(x, DeviceArray):
        return x
    if getattr(x, "is_neg", bool)():  # torch exports the memory of a negated view as it is, before negation
        raise _unreadable(x, "its elements are to be negated, which dlpack cannot say; use resolve_neg()")
    device, stream = _place(x)
    try:
        buf = compat.import_dlpack(_capsule(x, stream), device.handle, stream, copy)
    except (compat.xc.XlaRuntimeError, BufferError) as error:
        return _by_copy(x, copy, str(error))
    aval = _imported_type(x, buf, device)
    if compat.has_default_layout(buf, aval.dtype, aval.shape, device.handle):
        return DeviceArray(compat.result_handler(aval, device.sharding)(buf))
    if copy is False:
        raise _unshareable(x, "its elements are not in C order")
    return put(compat.to_numpy(buf), aval, device)


def _by_copy(x: Any, copy: bool | None, reason: str) -> DeviceArray:
    """Import by a copy what jaxlib cannot (strided or read-only NumPy arrays), if `copy` allows it."""
    if copy is False:
        raise _unshareable(x, reason) from None
    try:
        host = x if isinstance(x, np.ndarray) else np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError, ValueError):
        raise _unreadable(x, reason) from None
    return _in_its_own_dtype(host)


def _in_its_own_dtype(host: np.ndarray[Any, Any]) -> DeviceArray:
    """A copy of NumPy's elements on the CPU, whatever `config.numpy_bits`: dlpack shares arrays as they are."""
    return put(host, ShapedArray(host.shape, dtypes.canonical(host.dtype)), devices.devices("cpu")[0])


def _unshareable(x: Any, reason: str) -> BufferError:
    return BufferError(
        f"from_dlpack: this {type(x).__name__} cannot be shared: {reason.rstrip('.')}.\n"
        "  Make it contiguous and aligned to 64 bytes, or copy it with copy=True."
    )


def _unreadable(x: Any, reason: str) -> BufferError:
    return BufferError(f"from_dlpack: this {type(x).__name__} cannot be read: {reason.rstrip('.')}.")


def _imported_type(x: Any, buf: Any, device: Device) -> ShapedArray:
    """The type of an imported buffer, which does not know it: on the CPU that of its elements, else what `x` says."""
    if device.platform == "cpu":
        host = compat.to_numpy(buf)
        return ShapedArray(host.shape, dtypes.canonical(host.dtype))
    return ShapedArray(tuple(x.shape), dtypes.canonical(str(x.dtype).rpartition(".")[2]))


def _place(x: Any) -> tuple[Device, Any]:
    """The device of an array, and the stream on which we want it to be ready."""
    kind, number = x.__dlpack_device__()
    if kind in (_DLPACK_CPU, _DLPACK_CUDA_HOST):
        return devices.devices("cpu")[0], None
    if kind == _DLPACK_CUDA:
        device = next(d for d in devices.local_devices(backend="gpu") if d.handle.local_hardware_id == number)
        return device, device.handle.get_stream_for_external_ready_events()
    raise BufferError(f"from_dlpack: arrays of dlpack device type {int(kind)} cannot be read, only CPU's and CUDA's.")


def _capsule(x: Any, stream: Any) -> Any:
    export: Callable[..., Any] = x.__dlpack__
    return export() if stream is None else export(stream=stream)


def is_supported_dtype(dtype: Any) -> bool:
    """Tell whether arrays of a dtype can be shared by dlpack.

    Raises: TypeError for None, which NumPy takes as float64, and for what is no dtype.
    """
    if dtype is None:
        raise TypeError("is_supported_dtype: expected a dtype, not None.")
    return np.dtype(dtype) in {dtypes.canonical(name) for name in _SUPPORTED.split()}


_SUPPORTED = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
)
