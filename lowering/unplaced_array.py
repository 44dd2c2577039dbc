"""`UnplacedArray`: a number or a NumPy array as an array of ours, which goes to a device when it is computed with.

Users' functions are called with these where a transformation has no more than a number: the seed of a gradient, a
residual, an operand that somebody wrote. So operators and promotion are ours there, and on whichever device the other
operands are. The elements are a copy that nobody can write to, and the buffer belongs to this array alone.
"""

from typing import Any, Final

import numpy as np

from tapeless.lowering import array, devices
from tapeless.lowering.array import DeviceArray
from tapeless.lowering.devices import Device
from tapeless.tracer import dtypes
from tapeless.tracer.array import Unplaced
from tapeless.tracer.types import ShapedArray, aval_of, exact, kept, narrowed


class UnplacedArray(DeviceArray, Unplaced):
    """An array whose elements are NumPy's. It has a buffer, on the current device, from when one is asked for."""

    __slots__ = ("_buf", "host")

    def __init__(self, host: Any, aval: ShapedArray) -> None:
        self._buf: Any = None
        self.aval: ShapedArray = aval
        self.host: Final = host

    @property
    def buf(self) -> Any:  # type: ignore[override]  # an attribute of other arrays
        """The buffer, made when it is first asked for."""
        if self._buf is None:
            self._buf = array.put(self.host, self.aval, devices.current_device()).buf
        return self._buf

    @buf.setter
    def buf(self, buf: Any) -> None:
        self._buf = buf

    def is_deleted(self) -> bool:
        """Tell whether it was given up: by `delete`, or by donating it to a program."""
        return self._buf is not None and self._buf.is_deleted()

    def placed(self, aval: ShapedArray, device: Device) -> DeviceArray:
        """Return an array on `device` with type `aval`."""
        return array.to_device(self._host(), aval, device)

    def _host(self) -> np.ndarray[Any, Any]:
        if self.is_deleted():
            self.live()
        return np.asarray(self.host)


def unplaced(x: Any) -> UnplacedArray:
    """Make an array of a number or a NumPy array, of the type that these have.

    Raises: OverflowError for an integer of Python's that does not fit it, or an element if `config.numpy_bits` is 32.
    """
    aval = aval_of(x)
    array.check_number_fits(x, aval)
    if not isinstance(x, np.ndarray):
        number = exact(x, aval.dtype)
        return UnplacedArray(number[()] if aval.weak_type else number, aval)
    return UnplacedArray(narrowed(x, aval.dtype) if dtypes.is_narrower(aval.dtype, x.dtype) else kept(x), aval)
