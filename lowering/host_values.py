"""Buffers of values on the host: an array of NumPy, or a number, is put; a small one that comes again is found.

It is found by its bits, never by the object: who writes to an array of NumPy has another value. A value is kept when it
comes the second time, for values that never do, as a rate falling at every step, would leave hundreds of buffers. A
number that is found is no transfer; an array of NumPy always counts as one.
"""

import functools
from collections.abc import Callable
from struct import Struct
from typing import Any

import numpy as np

from tapeless.lowering import transfers
from tapeless.lowering.array import check_number_fits, check_transfer
from tapeless.lowering.devices import Device
from tapeless.lowering.xla_workarounds import compat, forking
from tapeless.tracer import dtypes
from tapeless.tracer.types import ShapedArray

Reader = Callable[[Any], Any]  # from a value to a buffer
_SMALL = 256  # bytes, of which a copy and its hash take a thirtieth of a put
_LIMIT = 64  # values of one type that are kept
_UNSOUGHT = 1000  # values that are put at once, after so many as are kept of which none came again
_guard = transfers.to_device_guard


def is_read(x: Any, aval: ShapedArray) -> bool:
    """Tell whether a value of type `aval` is an array of NumPy that is put as it is, by `array_reader`.

    Others are converted first: those of other byte orders, to be narrowed, of float0, of subclasses, without axes.
    """
    return type(x) is np.ndarray and x.dtype is aval.dtype and x.ndim > 0 and aval.dtype is not dtypes.float0


@functools.lru_cache(maxsize=256)
def array_reader(aval: ShapedArray, device: Device) -> Reader:
    """Make the function that returns a buffer of an array of NumPy of this shape and dtype, which is copied."""
    small = aval.nbytes <= _SMALL
    return _finder(aval, device, np.ndarray.tobytes, np.ndarray) if small else array_putter(aval, device)


def array_putter(aval: ShapedArray, device: Device) -> Reader:
    """Make a function as `array_reader` does, whose buffers nobody else has: a program may take their memory."""
    put, copied = compat.put_and_semantics()
    sharding, devices = device.sharding, [device.handle]

    def read(host: np.ndarray[Any, Any]) -> Any:
        if _guard.was_set or forking.forked:
            check_transfer(aval)
        return put(aval, sharding, [host], devices, True, False, copied, True)

    return read


@functools.lru_cache(maxsize=256)
def number_reader(kind: type, aval: ShapedArray, device: Device) -> Reader:
    """Make the function that returns a buffer of a number of class `kind`, shared by equal numbers.

    It raises OverflowError for an integer of Python's that does not fit.
    """
    return _finder(aval, device, _BITS.get(kind, np.generic.tobytes), kind)


_BITS: dict[type, Callable[[Any], Any]] = {  # keys of numbers: -0.0 is not 0.0, and nan is nan
    bool: bool,
    int: int,
    float: Struct("d").pack,
    complex: lambda z: _PAIR.pack(z.real, z.imag),
}
_PAIR = Struct("dd")


def _finder(aval: ShapedArray, device: Device, key_of: Callable[[Any], Any], kind: type) -> Reader:
    """Make the function that puts values of class `kind`, and finds those that came before by their keys.

    To seek takes a tenth of a call: it is left off for a while where nothing came again.
    """
    put, copied = compat.put_and_semantics()
    sharding, devices, dtype = device.sharding, [device.handle], aval.dtype
    is_array, is_integer = kind is np.ndarray, kind is int
    known: dict[Any, Any] = {}  # buffers; None for a value that came once
    was_found, unsought = False, 0

    def read(value: Any) -> Any:
        nonlocal was_found, unsought
        if unsought:
            unsought -= 1
            return put_value(value)
        key = key_of(value)
        found = known.get(key, known)
        if found is not known and found is not None and not found.is_deleted():
            was_found = True
            if is_array and (_guard.was_set or forking.forked):
                check_transfer(aval)
            return found
        made = put_value(value)
        if found is known and len(known) >= _LIMIT:
            unsought, was_found = 0 if was_found else _UNSOUGHT, False
            known.clear()
        known[key] = None if found is known else made
        return made

    def put_value(value: Any) -> Any:
        if _guard.was_set or forking.forked:
            check_transfer(aval)
        if is_integer:
            check_number_fits(value, aval)
        return put(aval, sharding, [np.asarray(value, dtype)], devices, True, False, copied, True)

    return read
