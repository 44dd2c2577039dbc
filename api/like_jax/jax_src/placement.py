"""Arrays put together of parts on devices, and their layouts, as far as libraries need them: there is one part."""

from collections.abc import Sequence
from typing import Any

from tapeless.lowering.array import DeviceArray
from tapeless.lowering.devices import SingleDeviceSharding

__all__ = ["Format"]


class Format(SingleDeviceSharding):
    """A placement of arrays with the layout in memory that XLA chooses: the name of `jax.experimental.layout`.

    Raises: NotImplementedError for another layout than None, or without a placement.
    """

    __slots__ = ()

    def __init__(self, layout: None = None, sharding: SingleDeviceSharding | None = None) -> None:
        if layout is not None or sharding is None:
            raise NotImplementedError(f"Format: layouts are XLA's choice: give a sharding, and no layout ({layout!r}).")
        super().__init__(sharding.device)

    @property
    def layout(self) -> None:
        """The layout: none is given."""

    @property
    def sharding(self) -> SingleDeviceSharding:
        """The placement."""
        return SingleDeviceSharding(self.device)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: SingleDeviceSharding, arrays: Sequence[Any], *, dtype: Any = None
) -> Any:
    """Put together an array of its parts on devices: return the only one.

    Raises: TypeError if a part is no array on a device; ValueError if there is not one, or if its shape, dtype or
      device is not as stated.
    """
    for x in arrays:
        if not isinstance(x, DeviceArray):
            raise TypeError(
                f"make_array_from_single_device_arrays: parts are arrays on devices, not {type(x).__name__}: "
                "jax.device_put puts a value on a device."
            )
    found = [(x.shape, x.device, dtype and x.dtype) for x in arrays]
    if found != [(tuple(shape), sharding.device, dtype)]:
        raise ValueError(
            f"make_array_from_single_device_arrays: parts are {[f'{x.aval} on {x.device}' for x in arrays]}, not one "
            f"array of shape {tuple(shape)} on {sharding.device}{f' of {dtype}' if dtype else ''}."
        )
    return arrays[0]
