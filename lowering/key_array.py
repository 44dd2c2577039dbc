"""`KeyArray`: an array of keys on a device, around the buffer of their words.

Keys are no numbers: nothing converts them to NumPy, to Python or to another library, unless a user asks for their words
by `random.key_data`, which shares the memory.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from tapeless.lowering.array import DeviceArray
from tapeless.lowering.devices import Device
from tapeless.tracer.extended_dtypes import KEY
from tapeless.tracer.types import ShapedArray, holds_keys, keys_of_words, physical


class KeyArray(DeviceArray):
    """Keys on a device. Its buffer is that of their words, uint32[..., n]."""

    __slots__ = ()

    def __init__(self, buf: Any, dtype: Any) -> None:
        self.buf: Any = buf
        self.aval: ShapedArray = keys_of_words(buf.aval, dtype)

    @property
    def words(self) -> DeviceArray:
        """The words, in the same memory. Raises: RuntimeError if that was deleted or donated."""
        return DeviceArray(self.live())

    def around(self, buf: Any) -> "KeyArray":
        """Keys for the same generator, in another buffer."""
        return KeyArray(buf, self.aval.dtype)

    def placed(self, aval: ShapedArray, device: Device) -> DeviceArray:
        """Itself on `device`. Raises: TypeError if `aval` is no type of keys."""
        if not holds_keys(aval):
            self._host()
        return KeyArray(self.words.placed(physical(aval), device).buf, aval.dtype)

    def unsafe_buffer_pointer(self) -> int:
        """Address of the words on the device; valid for as long as the array is."""
        return self.words.unsafe_buffer_pointer()

    def _host(self) -> NoReturn:
        raise TypeError(
            f"an array of keys does not become a NumPy array or a Python number: {self.aval}.\n"
            "  Their words, which are uint32, are random.key_data(keys)."
        )

    def _scalar(self) -> NoReturn:
        self._host()

    def _rows(self) -> Iterator[DeviceArray]:
        return (KeyArray(row.buf, self.aval.dtype) for row in self.words._rows())

    def __hash__(self) -> int:
        raise TypeError(f"an array is not hashable: {self.aval}. Use random.key_data(keys).tolist(), or id(keys).")

    def __dlpack__(self, **_: Any) -> NoReturn:
        raise BufferError(f"__dlpack__: dlpack has no form for {self.aval}. Export random.key_data(keys).")

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(f"keys have no format {spec!r}: {self.aval}.")
        return str(self)

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        if self.is_deleted():
            return super().__repr__()
        return f"Array({self.aval.shape}, dtype={self.aval.dtype.name}) overlaying:\n{np.asarray(self.words)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.words, self.aval.dtype)


def wrapped(buf: Any, aval: ShapedArray) -> DeviceArray:
    """The array of type `aval` that a buffer holds."""
    return KeyArray(buf, aval.dtype) if holds_keys(aval) else DeviceArray(buf)


def _unpickled(words: DeviceArray, dtype: Any = KEY) -> KeyArray:
    return KeyArray(words.buf, dtype)
