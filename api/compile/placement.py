"""Moving pytrees of arrays between host and devices."""

from typing import Any

from tapeless.arguments.argument_checks import check_arrays
from tapeless.lowering import array, devices
from tapeless.lowering.array import DeviceArray, wait
from tapeless.lowering.key_array import KeyArray
from tapeless.tracer import pytree
from tapeless.tracer.core import Tracer


def device_put(x: Any, device: Any = None, *, donate: bool = False, may_alias: bool | None = None) -> Any:
    """Put the arrays of a pytree on `device`, by copy unless they are there; while tracing, return `x` itself.

    Args:
      x: a pytree of arrays, NumPy arrays, numbers, or anything that speaks dlpack.
      device: one of `tl.devices()`, or the sharding of an array that is on it; by default arrays stay, and other values
        go to the default device. A pytree of these says it for each part of `x`.
      donate: accepted for compatibility; an array's memory is freed when nobody holds the array.
      may_alias: whether an array that is there may be the result; False copies it.
    Raises: TypeError if a leaf is not an array, or `device` not a device; ValueError if the structure of `device` is no
      prefix of that of `x`, or if `x` is donated and may be the result, too.
    """
    if donate and may_alias:
        raise ValueError(
            "device_put: may_alias=True lets the result be `x` itself, and donate=True gives up its memory.\n"
            "  Leave out one of them."
        )
    check_arrays("device_put: x{}", pytree.tree_map(lambda leaf: 0 if hasattr(leaf, "__dlpack__") else leaf, x))
    places = pytree.broadcast_prefix(device, x, lambda place: place is None, who="device_put", name="device")
    leaves, tree = pytree.flatten(x)
    placed = [_placed(leaf, devices.of_placement("device_put", place)) for leaf, place in zip(leaves, places)]
    if may_alias is False:
        placed = [
            array.duplicate(new) if new is leaf and isinstance(new, DeviceArray) else new
            for leaf, new in zip(leaves, placed)
        ]
    return pytree.unflatten(tree, placed)


def _placed(leaf: Any, device: devices.Device | None) -> Any:
    return leaf if isinstance(leaf, Tracer) else array.device_put(leaf, device)


def device_get(x: Any) -> Any:
    """Copy the arrays of a pytree to the host, as read-only NumPy arrays.

    Numbers, keys and traced arrays are returned unchanged.
    """
    return pytree.tree_map(lambda leaf: leaf if isinstance(leaf, _KEPT) else array.device_get(leaf), x)


_KEPT = (KeyArray, Tracer, bool, int, float, complex)


def copy_to_host_async(x: Any) -> Any:
    """Start copying the arrays of a pytree to the host, and return the pytree. Reading an array waits for its copy."""
    for leaf in pytree.leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x


def block_until_ready(x: Any) -> Any:
    """Wait until the arrays of a pytree have been computed, and return the pytree. Other leaves are ignored.

    Raises: what went wrong in computing them.
    """
    # One array is not flattened, which takes as long as a small program.
    wait((x,) if isinstance(x, DeviceArray) else [leaf for leaf in pytree.leaves(x) if isinstance(leaf, DeviceArray)])
    return x


def one_device(who: str, device: Any, backend: str | None, *shardings: Any) -> devices.Device | None:
    """Return the one device that is named: by itself, as the first of a platform, or by leaves of pytrees of shardings.

    Returns: None if none is named.
    Raises: TypeError in the name of `who` if something else is; NotImplementedError if there are several; RuntimeError
      if there is no such platform.
    """
    named = [device, *[place for tree in shardings for place in pytree.leaves(tree)]]
    if backend is not None:
        named.append(devices.devices(backend)[0])
    found = {devices.of_placement(who, x) for x in named} - {None}
    if len(found) > 1:
        raise NotImplementedError(f"{who}: a function runs on one device, not on {', '.join(sorted(map(str, found)))}.")
    return next(iter(found), None)
