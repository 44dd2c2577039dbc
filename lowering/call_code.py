"""Code of a call of a compiled program, written for arguments of the kinds that were given before.

What an argument is is decided once, when the code is written. The code compares its class and its type, and goes the
shortest way to a buffer from there: an array on the device has one, an array of NumPy is put, a number that was put
before is found by its value. It takes the values that `to_device` takes, and as that does.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.lowering.array import DeviceArray, duplicate, number_reader, putter, to_device
from tapeless.lowering.compile import is_plain
from tapeless.lowering.devices import Device
from tapeless.tracer.array import Unplaced
from tapeless.tracer.pytree.codegen import ArgumentCode, ResultCode
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray


def argument_code(
    x: Any, aval: ShapedArray, device: Device, donated: bool, type_of: Callable[[Any], ShapedArray]
) -> ArgumentCode:
    """Return what writes the code for an argument of a program, if there is one device.

    Args:
      x, aval: a value like those to come, and the type that the program has for it.
      donated: whether the program takes the memory of the argument, which nobody else must have then.
      type_of: computes the type that a program has for a value of the class of `x`, under the settings of now.
    """
    if isinstance(x, DeviceArray) and not isinstance(x, Unplaced):
        return _code(x, "{x}.aval is not {0}", (aval,), "{x}.buf")
    if type(x) is np.ndarray and x.ndim and x.dtype is aval.dtype:  # of native byte order, and not to be narrowed
        others = "{x}.dtype is not {0} or {x}.shape != {1}"
        return _code(x, others, (aval.dtype, aval.shape, putter(aval, device)), "{2}({x})")
    if not _is_typed_by_class(x):
        return _code(x, "{0}({x}) is not {1}", (type_of, aval, _converter(aval, device, donated)), "{2}({x})")
    read = _converter(aval, device, True) if donated else number_reader(type(x), aval, device)
    return _code(x, "", (read,), "{0}({x})")


def result_code(aval: ShapedArray) -> ResultCode:
    """Return what writes the code that makes a result of a buffer, or takes one that is made: see `Executable.run`."""
    if not is_plain(aval):
        return lambda name, raw, constant: [f"{name} = {raw}"]
    return lambda name, raw, constant: [  # what `DeviceArray(raw)` does, in half the time
        f"{name} = {constant(object.__new__)}({constant(DeviceArray)})",
        f"{name}.buf, {name}.aval = {raw}, {constant(aval)}",
    ]


def _code(x: Any, others: str, constants: tuple[Any, ...], value: str) -> ArgumentCode:
    """Return what writes code for the class of `x`: `{x}` is for the argument, numbers for constants."""
    kind = type(x)

    def write(name: str, constant: Callable[[Any], str]) -> tuple[str, str]:
        names = [*map(constant, constants)]
        wrong = [f"type({name}) is not {constant(kind)}", *[others.format(*names, x=name)] * bool(others)]
        return " or ".join(wrong), value.format(*names, x=name)

    return write


def _is_typed_by_class(x: Any) -> bool:
    """Tell whether all numbers of a class have one type; NumPy's integers may need a width, see `jit`."""
    if isinstance(x, np.generic):
        return isinstance(x, (np.bool, np.inexact)) and config.numpy_bits == 64
    return type(x) in (bool, int, float, complex)


def _converter(aval: ShapedArray, device: Device, donated: bool) -> Callable[[Any], Any]:
    if donated:
        return lambda x: duplicate(to_device(x, aval, device)).buf  # equal numbers share their memory
    return lambda x: to_device(x, aval, device).buf
