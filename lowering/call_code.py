"""Code of a call of a compiled program, written for arguments of the kinds that were given before.

What an argument is is decided once, when the code is written. The code compares its class and its type, and goes the
shortest way to a buffer from there: an array on the device has one, that of an array of NumPy or of a number is found
or made, see host_values.py. It takes the values that `to_device` takes, and as that does.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.lowering.array import DeviceArray, duplicate, to_device
from tapeless.lowering.compile import is_plain
from tapeless.lowering.devices import Device
from tapeless.lowering.host_values import array_putter, array_reader, is_read, number_reader
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
        return WrappedLeaf(kind, aval, "aval", "buf", "__array_struct__" if donated else "")
    if is_read(x, aval):
        others = "{x}.dtype is not {0} or {x}.shape != {1}"
        read = array_putter(aval, device) if donated else array_reader(aval, device)
        return ReadLeaf(kind, read, others, (aval.dtype, aval.shape))
    if not _is_typed_by_class(x):
        return ReadLeaf(kind, _converter(aval, device, donated), "{0}({x}) is not {1}", (type_of, aval))
    return ReadLeaf(kind, _converter(aval, device, True) if donated else number_reader(kind, aval, device))


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
