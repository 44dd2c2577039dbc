"""Code of a call of a compiled program, written for arguments of the kinds that were given before.

What an argument is is decided once, when the code is written. The code compares its class and its type, and goes the
shortest way to a buffer from there: an array on the device has one, an array of NumPy is put, a number that was put
before is found by its value. It takes the values that `to_device` takes, and as that does.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.lowering import transfers
from tapeless.lowering.array import (
    DeviceArray,
    check_number_fits,
    check_transfer,
    duplicate,
    scalar_constant,
    scalars,
    to_device,
)
from tapeless.lowering.compile import is_plain
from tapeless.lowering.devices import Device
from tapeless.lowering.xla_workarounds import compat, forking
from tapeless.tracer.array import Unplaced
from tapeless.tracer.pytree.codegen import ReadLeaf, WrappedLeaf
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray


def argument_leaf(
    x: Any, aval: ShapedArray, device: Device, donated: bool, type_of: Callable[[Any], ShapedArray]
) -> WrappedLeaf | ReadLeaf:
    """Return how code reads an argument of a program, if there is one device.

    Args:
      x, aval: a value like those to come, and the type that the program has for it.
      donated: whether the program takes the memory of the argument, which nobody else must have then.
      type_of: computes the type that a program has for a value of the class of `x`, under the settings of now.
    """
    kind = type(x)
    if isinstance(x, DeviceArray) and not isinstance(x, Unplaced):
        return WrappedLeaf(kind, aval, "aval", "buf")
    if kind is np.ndarray and x.ndim and x.dtype is aval.dtype:  # of native byte order, and not to be narrowed
        others = "{x}.dtype is not {0} or {x}.shape != {1}"
        return ReadLeaf(kind, _putter(aval, device), others, (aval.dtype, aval.shape))
    if not _is_typed_by_class(x):
        return ReadLeaf(kind, _converter(aval, device, donated), "{0}({x}) is not {1}", (type_of, aval))
    return ReadLeaf(kind, _converter(aval, device, True) if donated else _number_reader(kind, aval, device))


def result_leaf(aval: ShapedArray) -> WrappedLeaf | None:
    """Return how code makes a result of a buffer; None for one that the program makes: see `Executable.run`."""
    return WrappedLeaf(DeviceArray, aval, "aval", "buf") if is_plain(aval) else None


def _is_typed_by_class(x: Any) -> bool:
    """Tell whether all numbers of a class have one type; NumPy's integers may need a width, see `jit`."""
    if isinstance(x, np.generic):
        return isinstance(x, (np.bool, np.inexact)) and config.numpy_bits == 64
    return type(x) in (bool, int, float, complex)


def _converter(aval: ShapedArray, device: Device, donated: bool) -> Callable[[Any], Any]:
    if donated:
        return lambda x: duplicate(to_device(x, aval, device)).buf  # equal numbers share their memory
    return lambda x: to_device(x, aval, device).buf


def _putter(aval: ShapedArray, device: Device) -> Callable[[np.ndarray[Any, Any]], Any]:
    """Make a function that copies an array of NumPy, of the shape and dtype of `aval`, to a buffer on the device.

    It does what `put` does, in one function, for it is called at each call of a program.
    """
    put, copied = compat.put_and_semantics()
    sharding, devices, guard = device.sharding, [device.handle], transfers.to_device_guard

    def put_buffer(host: np.ndarray[Any, Any]) -> Any:
        if guard.was_set or forking.forked:
            check_transfer(aval)
        return put(aval, sharding, [host], devices, enable_x64=True, host_buffer_semantics=copied)

    return put_buffer


def _number_reader(kind: type, aval: ShapedArray, device: Device) -> Callable[[Any], Any]:
    """Make a function that gives the buffer of a number of class `kind`: that of `scalar_constant`, if it is kept.

    A number that is not is kept when it comes again: numbers that never do, as a rate falling at every step, would
    leave hundreds of buffers.
    """
    if issubclass(kind, (complex, np.complexfloating)):
        return lambda value: scalar_constant(value, aval, device).buf
    is_integer, put_buffer = aval.dtype.kind in "iu", _putter(aval, device)
    came: set[Any] = set()

    def read(value: Any) -> Any:
        found = scalars.get((value, aval, device)) if value or is_integer else None
        if found is not None and not found.buf.is_deleted():
            return found.buf
        if not value or value in came:
            return scalar_constant(value, aval, device).buf
        if len(came) >= _NUMBERS_LIMIT:
            came.clear()
        came.add(value)
        if is_integer:
            check_number_fits(value, aval)
        return put_buffer(np.asarray(value, aval.dtype))

    return read


_NUMBERS_LIMIT = 64
