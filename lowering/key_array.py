"""`KeyArray`: an array of keys on a device, around the buffer of their words.

Keys are no numbers: nothing converts them to NumPy, to Python or to another library, unless a user asks for their words
by `random.key_data`, which shares the memory.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tapeless.lowering.array import DeviceArray
from tapeless.lowering.devices import Device
from tapeless.tracer import source
from tapeless.tracer.extended_dtypes import KEY
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray, holds_keys, keys_of_words, physical

if TYPE_CHECKING:
    from tapeless.tracer.keys import key_reuse
else:
    key_reuse = LateModule("tapeless.tracer.keys.key_reuse")


class KeyArray(DeviceArray):
    """Keys on a device. Its buffer is that of their words, uint32[..., n]."""

    __slots__ = ("_key_objects",)

    def __init__(self, buf: Any, dtype: Any, key_objects: Any = None) -> None:
        self.buf: Any = buf
        self.aval: ShapedArray = keys_of_words(buf.aval, dtype)
        self._key_objects = key_objects

    @property
    def key_objects(self) -> Any:
        """The keys as objects that record where they were used, see `tracer.keys.key_reuse`; made at the first read."""
        if self._key_objects is None:
            self._key_objects = key_reuse.new_keys(self.aval.shape)
        return self._key_objects

    @key_objects.setter
    def key_objects(self, keys: Any) -> None:
        self._key_objects = keys

    @property
    def words(self) -> DeviceArray:
        """The words, in the same memory. Raises: RuntimeError if the memory was deleted or donated."""
        return DeviceArray(self.live())

    def around(self, buf: Any) -> "KeyArray":
        """Return keys for the same generator, in another buffer."""
        return KeyArray(buf, self.aval.dtype, self.key_objects if config.debug_key_reuse else None)

    def placed(self, aval: ShapedArray, device: Device) -> DeviceArray:
        """Return the keys on `device`. Raises: TypeError if `aval` is no type of keys."""
        if not holds_keys(aval):
            self._host()
        return self.around(self.words.placed(physical(aval), device).buf)

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the words on the device; it is valid for as long as the array lives."""
        return self.words.unsafe_buffer_pointer()

    def _host(self) -> NoReturn:
        raise TypeError(
            f"an array of keys does not become a NumPy array or a Python number: {self.aval}.\n"
            "  Their words, which are uint32, are random.key_data(keys)."
        )

    def _scalar(self) -> NoReturn:
        self._host()

    def _rows(self) -> Iterator[DeviceArray]:
        objects = self.key_objects if config.debug_key_reuse else None
        for i, row in enumerate(self.words._rows()):
            yield KeyArray(row.buf, self.aval.dtype, None if objects is None else objects[i, ...])

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


def wrap_buffer(buf: Any, aval: ShapedArray) -> DeviceArray:
    """Wrap a buffer as an array of type `aval`: of keys, or of numbers."""
    return KeyArray(buf, aval.dtype) if holds_keys(aval) else DeviceArray(buf)


def run_followed(jaxpr: Jaxpr, args: Sequence[Any], run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """Run a program, and follow the keys in it if `config.debug_key_reuse` says so.

    Args:
      run: computes the results of `jaxpr` for `args`.
    Raises: KeyReuseError before anything is run, naming both lines, if it would use a key twice.
    """
    if not config.debug_key_reuse:
        return run()
    reader = key_reuse.KeyReader(source.describe_here())
    found = reader.read(jaxpr, [key_reuse.find_keys(x, v.aval) for x, v in zip(args, jaxpr.invars)])
    results = run()
    reader.settle()
    for x, keys in zip(results, found):
        if isinstance(x, KeyArray):
            x.key_objects = keys
    return results


def _unpickled(words: DeviceArray, dtype: Any = KEY) -> KeyArray:
    return KeyArray(words.buf, dtype)
