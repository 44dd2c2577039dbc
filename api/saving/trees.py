"""`save` and `load_tree`: a tree of arrays in a file of safetensors' layout, whose metadata describe the tree.

Reading runs no code that a file names: there is no pickle, and a class is only ever that of the tree `like`. Left out:
arrays over several devices, and files that other programs wrote.
"""

import json
import mmap
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tapeless.lowering import transfers
from tapeless.lowering.array import DeviceArray, deleted_error, from_elements
from tapeless.lowering.key_array import KeyArray
from tapeless.saving import tree_nodes
from tapeless.saving.safetensors_layout import FileHeader, bytes_of, parse_json, read_header, refuse, write
from tapeless.saving.tree_nodes import Node, TreePart, format_path
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.array import Array
from tapeless.tracer.dtypes import DType
from tapeless.tracer.keys import prng_keys
from tapeless.tracer.types import ShapedArray, aval_of, check_unmasked, holds_keys, key_dtype_of, physical

_FORMAT, _TREE, _CHECKSUM, _VERSION = "tapeless.format", "tapeless.tree", "tapeless.crc32", "1"
_KIND = "tapeless.kind"
_WORDS = np.dtype("uint32")

Elements = np.ndarray[Any, Any]


def save(path: str | os.PathLike[str], tree: Any) -> None:
    """Write a tree of arrays to a file, which appears only when it is complete.

    Args:
      path: of the file; one that is there is replaced when the new one is complete.
      tree: nested containers of arrays of any dtype, ours or NumPy's, keys of random numbers, Python's numbers, strings
        and None. Named tuples and registered classes are taken apart: what is no leaf of theirs is not written.
    Raises: TypeError, naming its path, for a leaf of another kind or a dict key other than a string or number,
      and if a tree stands in the place of the path;
      RuntimeError, naming its path, for an array that was deleted or donated;
      NotImplementedError on a big-endian machine; OSError if the file cannot be written.
    Source: the layout is that of safetensors; docs/saving.md says how the tree is described in it.

    >>> import tempfile, pathlib, tapeless as tl, tapeless.numpy as tnp
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.safetensors")
    >>> save(path, {"w": tnp.arange(3), "steps": 10})
    >>> tl.load(path)
    {'steps': 10, 'w': Array([0, 1, 2], dtype=int32)}
    """
    given: Any = path
    if not isinstance(given, (str, os.PathLike)):
        name = type(given).__name__
        raise TypeError(f"save: the path comes first, save(path, tree): {pytree.article_of(name)} {name} is no path.")
    write_tree(path, tree)


def write_tree(path: str | os.PathLike[str], tree: Any, kind: str | None = None) -> None:
    """Write a tree as `save` does; `kind` says what it is, if it is the tree of an object that `load` makes of it."""
    pytree.structure(tree)  # or RecursionError: the tree contains itself
    arrays: dict[str, tuple[str, Elements]] = {}
    nodes = [_array_node(part, arrays) if part.node is None else part.node for part in tree_nodes.parts(tree)]
    text = json.dumps(nodes, separators=(",", ":"), ensure_ascii=False)
    metadata = {_FORMAT: _VERSION, _CHECKSUM: checksum_of_text(text), _TREE: text}
    write(Path(path), metadata | ({} if kind is None else {_KIND: kind}), arrays)


class LoadedTree(NamedTuple):
    """A tree from a file; the kind of the object that it is the tree of, None for a tree and nothing else."""

    tree: Any
    kind: str | None


def load_tree(path: Path, like: Any, *, mmap: bool) -> LoadedTree:
    """Read a tree, as `tl.load` says."""
    with open(path, "rb") as file:
        header = read_header(path, file)
        kind, nodes = header.metadata.get(_KIND), _nodes(path, header)
        values = _LeafReader(path, header, _mapped(file) if mmap else _reader(path, file), on_device=not mmap)
        if like is None:
            _check_no_class(path, nodes)
            return LoadedTree(tree_nodes.build_tree(nodes, values.of), kind)
        _check_like(path, header, nodes, [*tree_nodes.parts(like)])
        leaves = [values.of(node) for node in nodes if tree_nodes.children_of(node) is None]
        return LoadedTree(pytree.unflatten(pytree.structure(like), leaves), kind)


# ---- writing -------------------------------------------------------------------------------------------------


def _array_node(part: TreePart, arrays: dict[str, tuple[str, Elements]]) -> Node:
    """Describe a leaf that is an array, and add its elements to `arrays`, under a name of its own."""
    x = part.value
    if not isinstance(x, (Array, np.ndarray, np.generic)):
        value, advice = ("", "\n  Write dict(...) around it.") if isinstance(x, Mapping) else (f"{x!r} ", "")
        raise TypeError(
            f"save: the leaf {format_path(part.path)} is {value}of type {type(x).__name__}; "
            f"files hold arrays, keys, numbers, strings and None.{advice}"
        )
    check_unmasked(x, f"save: the leaf {format_path(part.path)}")
    if isinstance(x, Array) and holds_keys(x.aval):
        name, crc = _enter(arrays, part, np.asarray(prng_keys.key_data(x)))
        return ["key", name, key_dtype_of(x.aval).tag, x.shape, crc]
    if isinstance(x, DeviceArray) and x.is_deleted():
        raise deleted_error(x.aval, f"save: the leaf {format_path(part.path)}")
    values = np.asarray(x)
    try:
        dtype = dtypes.canonical(values.dtype)
        if dtype == dtypes.float0:
            raise TypeError("float0 has no elements.")
    except TypeError as error:
        raise TypeError(f"save: the leaf {format_path(part.path)} cannot be saved: {error}") from error
    name, crc = _enter(arrays, part, values)
    return ["array", name, dtype.name, values.shape, crc, isinstance(x, Array) and x.aval.weak_type]


def _enter(arrays: dict[str, tuple[str, Elements]], part: TreePart, values: Elements) -> tuple[str, int]:
    """Add an array under the name that its path makes, with a number behind it if that is taken.

    Returns: the name, and the checksum of the elements.
    """
    plain = pytree.keystr(part.path, simple=True, separator=".") or "array"
    name, copies = plain, 1
    while name in arrays or name == "__metadata__":
        name, copies = f"{plain}~{copies}", copies + 1
    lying = stored(values)
    arrays[name] = tag_of(dtypes.canonical(values.dtype)), lying
    return name, zlib.crc32(bytes_of(lying))


# ---- reading -------------------------------------------------------------------------------------------------


def _nodes(path: Path, header: FileHeader) -> list[Node]:
    """Read the description of the tree in a file. Raises: ValueError unless it is whole and uses every array once."""
    version = header.metadata.get(_FORMAT)
    if version is None or _TREE not in header.metadata:
        refuse(path, "it is a safetensors file that save did not write: no tree is described in it")
    if version != _VERSION:
        refuse(path, f"it is of format {version}, of another version of tapeless; this one reads {_VERSION}")
    text = header.metadata[_TREE]
    if header.metadata.get(_CHECKSUM) != checksum_of_text(text):
        refuse(path, "the description of its tree is damaged: its checksum differs")
    nodes = parse_json(path, text, "the description of its tree")
    try:
        if type(nodes) is not list:
            raise ValueError("it is no list")
        tree_nodes.check_whole(nodes)
    except (ValueError, OverflowError) as error:
        refuse(path, f"the description of its tree is damaged: {error}")
    used = [node[1] for node in nodes if node[0] in ("array", "key")]
    if sorted(used) != sorted(header.arrays):
        odd = min(set(used) ^ set(header.arrays), default=None) or next(x for x in used if used.count(x) > 1)
        refuse(path, f"the array {odd!r} is not once in both the header and the tree")
    return nodes


def checksum_of_text(text: str) -> str:
    """Compute CRC-32 of a text, in hexadecimal digits."""
    return f"{zlib.crc32(text.encode(errors='surrogatepass')):08x}"


def _mapped(file: BinaryIO) -> Callable[[int, int], Elements]:
    """Map the bytes of a file: views, which are read when they are used."""
    whole = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    return lambda begin, end: whole[begin:end]


def _reader(path: Path, file: BinaryIO) -> Callable[[int, int], Elements]:
    """Read copies of the bytes of a file."""

    def read(begin: int, end: int) -> Elements:
        file.seek(begin)
        raw = file.read(end - begin)
        if len(raw) < end - begin:
            refuse(path, "it was cut short while it was read")
        return np.frombuffer(raw, np.uint8)

    return read


class _LeafReader:
    """The leaves of a file by their descriptions."""

    def __init__(
        self, path: Path, header: FileHeader, elements: Callable[[int, int], Elements], on_device: bool
    ) -> None:
        self._path, self._header, self._elements, self._on_device = path, header, elements, on_device

    def of(self, node: Node) -> Any:
        """Read the value of a leaf. Raises: ValueError naming the file if a byte is no value of its dtype."""
        kind = node[0]
        if kind not in ("array", "key"):
            return tree_nodes.scalar(node)
        aval = _type_of(self._path, self._header, node)
        found = self._header.arrays[node[1]]
        raw = self._elements(self._header.elements + found.begin, self._header.elements + found.end)
        if (self._on_device or kind == "key") and zlib.crc32(raw.data) != node[4]:
            refuse(self._path, f"{node[1]!r} is damaged: the checksum of its elements differs")
        if kind == "key":
            return KeyArray(_put(raw.view(_WORDS).reshape(found.shape), False).buf, aval.dtype)
        try:
            host = restored(raw, aval.dtype, aval.shape)
        except ValueError as error:
            refuse(self._path, f"{node[1]!r} is damaged: {error}")
        return _put(host, aval.weak_type) if self._on_device else host


def _put(host: Elements, weak: bool) -> Any:
    return transfers.explicitly(from_elements, host, weak)


def _type_of(path: Path, header: FileHeader, node: Node) -> ShapedArray:
    """Return the type of an array, or of keys. Raises: ValueError if the header has another than the tree says."""
    kind, name, dtype_name, shape = node[:4]
    found, given = header.arrays[name], tuple(shape)
    keys = dtypes.of_name(f"key<{dtype_name}>") if kind == "key" else None
    if keys is not None and (found.tag, found.shape) == (tag_of(_WORDS), physical(ShapedArray(given, keys)).shape):
        return ShapedArray(given, keys)
    dtype = _dtype_named(dtype_name) if kind == "array" else None
    if dtype is not None and (found.tag, found.shape) == (tag_of(dtype), stored_shape(dtype, given)):
        return ShapedArray(given, dtype, node[5])
    return refuse(path, f"{name!r} should be {kind} {dtype_name}{shape}, and is {found.tag}{list(found.shape)}")


def _dtype_named(name: str) -> Any:
    """Return the dtype of numbers that has just this name; None if there is none."""
    try:
        dtype = dtypes.canonical(name)
    except TypeError:
        return None
    return dtype if dtype.name == name and dtypes.kind(dtype) in "biufc" else None


def _check_no_class(path: Path, nodes: Sequence[Node]) -> None:
    for node in nodes:
        if node[0] == "class":
            module, _, name = node[1].partition(":")
            raise ValueError(
                f"load: {path} holds {pytree.article_of(name)} {name} of module {module}, "
                "and files do not say how to make one.\n"
                "  Give a tree that has one: load(path, like=tree)."
            )


# ---- like ----------------------------------------------------------------------------------------------------


def _check_like(path: Path, header: FileHeader, nodes: Sequence[Node], parts: Sequence[TreePart]) -> None:
    """Compare descriptions with the tree that the reader gave, in preorder, up to the first difference."""
    for node, part in zip(nodes, parts, strict=False):  # until one ends they agree in what follows, so both end there
        wanted = part.node
        if wanted is None:
            _check_leaf(path, header, node, part)
        elif not _agree(node, wanted):
            _differ(path, part, _in_words(header, path, node), _in_words(header, path, wanted))


def _agree(node: Node, wanted: Node) -> bool:
    if node[0] == wanted[0] == "class":  # that it is in another module now does not matter
        return node[1].partition(":")[2] == wanted[1].partition(":")[2] and node[2] == wanted[2]
    return node[0] == wanted[0] if node[0] in _SCALARS else node == wanted


_SCALARS = ("bool", "int", "float", "complex", "str")


def _check_leaf(path: Path, header: FileHeader, node: Node, part: TreePart) -> None:
    x = part.value
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(
            f"load: like has {x!r} of type {type(x).__name__} {format_path(part.path)}; "
            "its leaves are arrays, types of arrays, numbers and strings."
        )
    wanted = aval_of(x) if isinstance(x, Array) else ShapedArray(tuple(x.shape), dtypes.canonical(x.dtype))
    there = _type_of(path, header, node) if node[0] in ("array", "key") else None
    if there is None or (there.shape, there.dtype) != (wanted.shape, wanted.dtype):
        _differ(path, part, _in_words(header, path, node), str(wanted.strong()))


def _differ(path: Path, part: TreePart, there: str, here: str) -> None:
    raise ValueError(f"load: {path} and like differ {format_path(part.path)}: {there} in the file, {here} in like.")


def _in_words(header: FileHeader, path: Path, node: Node) -> str:
    match node:
        case ["array" | "key", *_]:
            return str(_type_of(path, header, node).strong())
        case ["class", name, keys]:
            kind = name.partition(":")[2]
            return f"{pytree.article_of(kind)} {kind} of {', '.join(keys)}"
        case ["dict" | "OrderedDict" as name, keys]:
            return f"{pytree.article_of(name)} {name} of {', '.join(repr(tree_nodes.scalar(key)) for key in keys)}"
        case ["None"]:
            return "None"
        case ["tuple" | "list" | "deque" as name, n, *_]:
            return f"a {name} of {n}"
        case [name, *_]:
            return f"a Python {name}"
        case _:
            return "nothing"


# ---- elements as they are stored -----------------------------------------------------------------------------
# Elements of arrays as they lie in files: which of safetensors' dtypes holds which of ours, and the way back.
#
# What safetensors has no dtype for is held by another: complex numbers by pairs of real ones, along one more axis;
# small integers by bytes of the same value; small floats by the byte that they are in memory. Where not every byte is
# a value of the dtype (booleans, and types of less than 8 bits) bytes are checked when they are read.


_TAGS = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "int2": "I8", "int4": "I8",
    "complex64": "F32", "complex128": "F64",
}  # fmt: skip


def tag_of(dtype: DType) -> str:
    """Name the dtype of safetensors that holds one of ours: U8 for bits that have no name there."""
    return _TAGS.get(dtype.name, "U8")


def stored(values: Elements) -> Elements:
    """Return the elements as they lie in a file: little-endian, complex numbers as pairs along one more axis."""
    dtype = dtypes.canonical(values.dtype)
    values = np.asarray(values, dtype, order="C")
    if dtypes.is_complex(dtype):
        return values.reshape(-1).view(dtypes.real_part_dtype(dtype)).reshape(stored_shape(dtype, values.shape))
    if _is_small_integer(dtype):
        return values.astype(_byte_of(dtype))
    return values


def stored_shape(dtype: DType, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the stored form of an array of this dtype and shape."""
    return (*shape, 2) if dtypes.is_complex(dtype) else shape


def restored(raw: Elements, dtype: DType, shape: tuple[int, ...]) -> Elements:
    """Restore an array of this dtype and shape from its bytes: a view, but for integers of less than 8 bits.

    Raises: ValueError if a byte is not a value of the dtype.
    """
    if dtypes.is_bool(dtype):
        _check_bytes(raw, 0, 1, dtype)
    elif _is_small_integer(dtype):
        limits = dtypes.iinfo(dtype)
        raw = raw.view(_byte_of(dtype))
        _check_bytes(raw, int(limits.min), int(limits.max), dtype)
        return raw.astype(dtype).reshape(shape)
    elif dtypes.bits_of(dtype) < 8:
        _check_bytes(raw, 0, 2 ** dtypes.bits_of(dtype) - 1, dtype)
    return raw.view(dtype).reshape(shape)


def _is_small_integer(dtype: DType) -> bool:
    return dtypes.is_integer(dtype) and dtypes.bits_of(dtype) < 8


def _byte_of(dtype: DType) -> type:
    return np.int8 if dtypes.is_signed(dtype) else np.uint8


def _check_bytes(raw: Elements, low: int, high: int, dtype: DType) -> None:
    if raw.size and not low <= int(raw.min()) <= int(raw.max()) <= high:
        raise ValueError(f"a byte of it is no {dtype.name}")
