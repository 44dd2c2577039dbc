"""Inspection of the namespace, and import from other libraries, as the array API standard (2024.12) asks for."""

from typing import Any

from tapeless.lowering import array, devices
from tapeless.lowering.array import DeviceArray
from tapeless.lowering.devices import Device
from tapeless.tracer import dtypes

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> DeviceArray:
    """Convert an array of another library, sharing its memory if possible: see `tapeless.from_dlpack`.

    Args:
      x: has `__dlpack__` and `__dlpack_device__`.
      device: one of `tl.devices()`, or the sharding of an array; by default the device of x.
      copy: None to share if that is possible; False to share or fail; True to copy.
    Raises: BufferError if it cannot be shared and `copy` is False, or cannot be read at all; TypeError for no device.
    """
    return array.from_dlpack(x, device=devices.of_placement("from_dlpack", device), copy=copy)


class ArrayNamespaceInfo:
    """The answers of `__array_namespace_info__()`: what the namespace can do, and its defaults."""

    def capabilities(self) -> dict[str, Any]:
        """Say whether indexing by masks and shapes that depend on elements work, and the most axes an array may have.

        They do outside of `jit` and other transformations.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Device:
        """Return the device that arrays are made on if none is named."""
        return devices.current_device()

    def devices(self) -> list[Device]:
        """List all devices of the default platform."""
        return devices.devices()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Return the dtypes of values that do not say: real and complex floating point, integers, and positions.

        Raises: TypeError if `device` is none.
        """
        devices.of_placement("default_dtypes", device)
        kinds = {"real floating": "f", "complex floating": "c", "integral": "i", "indexing": "i"}
        return {name: dtypes.default_dtype(kind) for name, kind in kinds.items()}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """Return the dtypes of the standard by name, or those of a kind, as in `isdtype`, or of several.

        Raises: ValueError for an unknown kind, TypeError if `device` is none.
        """
        devices.of_placement("dtypes", device)
        kinds = tuple(_KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if k not in _KINDS]
        if unknown:
            raise ValueError(f"dtypes: {unknown[0]!r} is no kind; these are: {', '.join(_KINDS)}.")
        found = {name: dtypes.canonical(name) for name in _DTYPES}
        return {name: dtype for name, dtype in found.items() if any(dtypes.kind(dtype) in _KINDS[k] for k in kinds)}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """Say what the namespace can do: `capabilities`, `default_device`, `default_dtypes`, `devices` and `dtypes`."""
    return ArrayNamespaceInfo()
