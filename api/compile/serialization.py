"""Compiled functions as bytes, and back: signatures in JSON, constants and the executable as they are.

Structures are written as nested lists: Python's containers by name, named tuples and registered classes by module and
name, with auxiliary data that are plain values. Reading looks classes up among those that are there; it imports
nothing and calls nothing that the bytes name but the `unflatten` functions of such classes, when results are returned.
"""

import base64
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tapeless.arguments.signatures import IntegerNarrowing, Signature
from tapeless.lowering import saved_programs
from tapeless.lowering.array import DeviceArray
from tapeless.lowering.compile import Executable
from tapeless.lowering.devices import Device
from tapeless.lowering.dispatch import buffer_on
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.pytree.treedef import classify, node_of, node_types
from tapeless.tracer.types import ShapedArray

_SAVE, _LOAD = "serialize", "stages.load"


class SavedFunction(NamedTuple):
    """A loaded function: an executable on a device, its leading constants, its donated arguments, its types."""

    signature: Signature
    executable: Executable
    consts: list[Any]
    donated: tuple[int, ...]


def write_compiled(signature: Signature, executable: Executable, consts: list[Any], donated: tuple[int, ...]) -> bytes:
    """Write a compiled function as bytes. Raises: TypeError if it calls the host, or a structure cannot be written."""
    found, blob = saved_programs.executable_parts(_SAVE, executable)
    arrays = [DeviceArray(buf) for buf in consts]
    header = {
        **found,
        "signature": _signature_text(signature),
        "consts": [_type_text(x.aval) for x in arrays],
        "donated": donated,
    }
    return saved_programs.pack_file(header, [blob, *[np.asarray(x).tobytes() for x in arrays]])


def read_compiled(data: Any, device: Device) -> SavedFunction:
    """Read a compiled function, for a device. Raises: ValueError, TypeError as `stages.load`."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"{_LOAD}: expected the bytes that serialize() returned, not {type(data).__name__}.")
    header, (blob, *arrays) = saved_programs.unpack_file(_LOAD, bytes(data))
    out_avals = [*map(_type, header["signature"]["out_avals"])]
    executable = saved_programs.load_executable(_LOAD, header, blob, device, out_avals)
    signature = _signature(header["signature"])
    consts = [_constant(_type(text), content, device) for text, content in zip(header["consts"], arrays, strict=True)]
    return SavedFunction(signature, executable, consts, tuple(header["donated"]))


def _constant(aval: ShapedArray, content: bytes, device: Device) -> Any:
    return buffer_on(np.frombuffer(content, aval.dtype).reshape(aval.shape), device)


# ---- signatures ----------------------------------------------------------------------------------------------


def _signature_text(signature: Signature) -> dict[str, Any]:
    return {
        "name": signature.name,
        "function": signature.function,
        "names": signature.names,
        "in_tree": _tree_text(signature.in_tree, "arguments"),
        "in_avals": [*map(_type_text, signature.in_avals)],
        "out_tree": _tree_text(signature.out_tree, "results"),
        "out_avals": [*map(_type_text, signature.out_avals)],
        "narrowings": [
            [found.what, found.dtype.name, found.source.describe() if found.source else None]
            for found in signature.narrowings
        ],
    }


def _signature(text: Mapping[str, Any]) -> Signature:
    return Signature(
        text["name"],
        text["function"],
        tuple(text["names"]),
        _tree(text["in_tree"]),
        tuple(map(_type, text["in_avals"])),
        _tree(text["out_tree"]),
        tuple(map(_type, text["out_avals"])),
        tuple(
            [
                IntegerNarrowing(i, dtypes.canonical(name), _LoadedLine(line) if line else None)
                for i, name, line in text["narrowings"]
            ]
        ),
    )


class _LoadedLine(NamedTuple):
    """A line of a program that is elsewhere."""

    text: str

    def describe(self) -> str:
        return self.text


def _type_text(aval: ShapedArray) -> list[Any]:
    return [aval.shape, "float0" if aval.dtype == dtypes.float0 else aval.dtype.name, aval.weak_type]


def _type(text: list[Any]) -> ShapedArray:
    shape, name, weak = text
    return ShapedArray(tuple(shape), dtypes.float0 if name == "float0" else dtypes.canonical(name), weak)


# ---- structures ----------------------------------------------------------------------------------------------

_CONTAINERS: dict[str, type] = {
    cls.__name__: cls for cls in (tuple, list, dict, type(None), OrderedDict, defaultdict, deque)
}
_FACTORIES: dict[str, Any] = {cls.__name__: cls for cls in (list, dict, set, tuple, int, float, complex, bool, str)}


def _tree_text(tree: Any, where: str) -> Any:
    """Write a tree definition as names and lists; messages name `where`. Raises: TypeError for nodes without a name."""
    if tree is pytree.LEAF:
        return "*"
    children = [_tree_text(child, where) for child in tree.children]
    cls, aux = tree.node_data()
    if cls.__name__ in _CONTAINERS and _CONTAINERS[cls.__name__] is cls:
        return [cls.__name__, _value_text(_plain(cls, aux, where), where, cls), children]
    if cls.__module__ == "tapeless" or cls.__module__.startswith("tapeless."):
        raise _unnamed(
            where,
            f"{pytree.article_of(cls.__name__)} {cls.__name__}, a function with a program or a function of its own",
        )
    return [f"{cls.__module__}:{cls.__qualname__}", _value_text(aux, where, cls), children]


def _tree(text: Any) -> Any:
    if text == "*":
        return pytree.LEAF
    name, aux, children = text
    cls = _CONTAINERS.get(name) or _class_named(name)
    value = _value(aux)
    if cls is defaultdict:
        value = (_FACTORIES[value[0]] if value[0] else None, value[1])
    return node_of(node_types[cls], value).nest([*map(_tree, children)])


def _plain(cls: type, aux: Any, where: str) -> Any:
    """Return the auxiliary data of a container, with the factory of a defaultdict by its name."""
    if cls is not defaultdict:
        return aux
    factory, keys = aux
    if factory is not None and factory not in _FACTORIES.values():
        raise _unnamed(where, f"a defaultdict of {factory!r}")
    return (None if factory is None else factory.__name__, keys)


def _class_named(name: str) -> type:
    """Return the class of this module and name, if it is here and a node. Raises: TypeError if it is not."""
    module, _, qualname = name.partition(":")
    known = [cls for cls in node_types if (cls.__module__, cls.__qualname__) == (module, qualname)]
    if len(known) == 1:
        return known[0]
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and classify(found) is not None:
        return found
    raise TypeError(
        f"{_LOAD}: the function takes or gives {pytree.article_of(qualname)} {qualname} of module {module}, "
        "and no such node of pytrees is here.\n"
        "  Import the module, and register the class, before the function is loaded."
    )


def _unnamed(where: str, what: str) -> TypeError:
    return TypeError(
        f"{_SAVE}: the structure of the {where} holds {what}, which cannot be saved.\n"
        "  Python's containers can, and named tuples and registered classes whose auxiliary data are None, numbers, "
        "strings, bytes, dtypes, or tuples, lists and dicts of these."
    )


# ---- values --------------------------------------------------------------------------------------------------


def _value_text(value: Any, where: str, owner: type) -> Any:
    """Write auxiliary data, so that reading gives the same types: numbers but integers are tagged."""
    kind = type(value)
    if kind in (type(None), bool, int, str):
        return value
    if kind is tuple or kind is list:
        return [kind.__name__, *[_value_text(item, where, owner) for item in value]]
    if kind is dict:
        return ["dict", *[[_value_text(each, where, owner) for each in item] for item in value.items()]]
    for name, (cls, write, _) in _SCALARS.items():
        if kind is cls:
            return [name, write(value)]
    if isinstance(value, np.dtype):
        return ["dtype", dtypes.canonical(value).name]
    whose = f"{pytree.article_of(owner.__name__)} {owner.__name__}"
    raise _unnamed(where, f"{whose} with {value!r:.80} of type {kind.__name__} as auxiliary data")


def _value(text: Any) -> Any:
    if not isinstance(text, list):
        return text
    name, *items = text
    if name in ("tuple", "list"):
        return (tuple if name == "tuple" else list)(map(_value, items))
    if name == "dict":
        return {_value(key): _value(item) for key, item in items}
    if name == "dtype":
        return dtypes.canonical(items[0])
    return _SCALARS[name][2](items[0])


_SCALARS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "float": (float, float.hex, float.fromhex),
    "complex": (complex, lambda z: [z.real.hex(), z.imag.hex()], lambda parts: complex(*map(float.fromhex, parts))),
    "bytes": (bytes, lambda x: base64.b64encode(x).decode(), base64.b64decode),
}
