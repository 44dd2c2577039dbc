"""Files in the layout of safetensors: the length of a header, the header in JSON, the elements of all arrays.

    8 bytes     length of the header, a little-endian integer
    header      {"__metadata__": {name: text}, name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
    elements    little-endian, in C order; the arrays follow each other without gaps, offsets count from here

Nothing is trusted that a file says: lengths, names and offsets are compared with what is there before anything is read
by them. Source: https://huggingface.co/docs/safetensors, "Format". Left out: elements of less than a byte, packed.
"""

import json
import math
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

HEADER_LIMIT = 100_000_000  # bytes, as in safetensors' own reader
_LENGTH = 8
_OF_NUMPY = (b"\x93NUMPY", b"PK\x03\x04")  # how files of numpy.save and numpy.savez begin
_ALIGNMENT = 64  # of the elements, as a whole
_RANK_LIMIT, _SIZE_LIMIT = 64, 2**63 - 1  # NumPy's
_METADATA = "__metadata__"

ITEM_SIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip


@dataclass(frozen=True)
class StoredArray:
    """An array in a file: safetensors' name of its dtype, its shape, and where its bytes begin and end."""

    tag: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class FileHeader:
    """The metadata and the arrays of a file, by name, and the position of the elements in it."""

    metadata: Mapping[str, str]
    arrays: Mapping[str, StoredArray]
    elements: int


# ---- writing -------------------------------------------------------------------------------------------------


def write(path: Path, metadata: Mapping[str, str], arrays: Mapping[str, tuple[str, np.ndarray[Any, Any]]]) -> None:
    """Write a file of named arrays, which is there whole or not at all.

    Args:
      path: where; a file that is there is replaced when the new one is complete.
      metadata: texts by name.
      arrays: for each name safetensors' name of the dtype, and the elements, in C order.
    Raises: ValueError if the header is longer than readers take; OSError if the file cannot be written.
    """
    check_byte_order("save")
    # Those of wide elements first, so that all are aligned although there are no gaps.
    names = sorted(arrays, key=lambda name: -ITEM_SIZES[arrays[name][0]])
    header = _header_text(metadata, {name: arrays[name] for name in names})
    if len(header) > HEADER_LIMIT:
        raise ValueError(f"save: {path} would have a header of {len(header)} bytes; the limit is {HEADER_LIMIT}.")

    def contents(file: BinaryIO) -> None:
        file.write(len(header).to_bytes(_LENGTH, "little"))
        file.write(header)
        for name in names:
            file.write(bytes_of(arrays[name][1]))

    _replace(path, contents)


def bytes_of(values: np.ndarray[Any, Any]) -> Any:
    """Return the bytes of elements in C order, without a copy."""
    return values.reshape(-1).view(np.uint8).data


def _header_text(metadata: Mapping[str, str], arrays: Mapping[str, tuple[str, np.ndarray[Any, Any]]]) -> bytes:
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    end = 0
    for name, (tag, values) in arrays.items():
        begin, end = end, end + values.nbytes
        header[name] = {"dtype": tag, "shape": list(values.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    return text + b" " * (-(_LENGTH + len(text)) % _ALIGNMENT)


def _replace(path: Path, write_contents: Callable[[BinaryIO], None]) -> None:
    """Write a file beside `path`, wait until the disk has it, and rename it; what a link points to is replaced.

    Raises: OSError, which names `path` as it was given, not the file beside it.
    """
    given, path = path, path.resolve()
    partial = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    try:
        with open(partial, "xb") as file:
            write_contents(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException as error:  # an interrupt, too
        with suppress(OSError):
            os.unlink(partial)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(given)) from None
        raise


# ---- reading -------------------------------------------------------------------------------------------------


def read_header(path: Path, file: BinaryIO) -> FileHeader:
    """Read and check the header of an open file; `path` is for messages.

    Raises: ValueError naming the file and the reason if it is not a whole, consistent file of this layout.
    """
    check_byte_order("load")
    size = os.fstat(file.fileno()).st_size
    if size < _LENGTH:
        refuse(path, f"it has {size} bytes, fewer than the length of a header takes")
    start = file.read(_LENGTH)
    length = int.from_bytes(start, "little")
    if length > HEADER_LIMIT and start.startswith(_OF_NUMPY):
        refuse(path, "it was written by NumPy, and tapeless.numpy.load reads it")
    if length > HEADER_LIMIT:
        refuse(path, f"its first 8 bytes, {start!r}, are no length of a header, as files of save begin with")
    if length > size - _LENGTH:
        refuse(path, f"it is cut short: its header takes {length} bytes, and {size - _LENGTH} follow")
    parsed = _parsed(path, file.read(length))
    metadata = parsed.pop(_METADATA, {})
    if not _is_object(metadata) or not all(isinstance(text, str) for text in metadata.values()):
        refuse(path, "the metadata of its header are not texts")
    arrays = {name: _stored_array(path, name, entry) for name, entry in parsed.items()}
    _check_offsets(path, arrays, size - _LENGTH - length)
    return FileHeader(metadata, arrays, _LENGTH + length)


def parse_json(path: Path, text: bytes | str, what: str) -> Any:
    """Parse JSON strictly: no name twice in an object, no NaN. Raises: ValueError naming the file and `what`."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name is there twice")
        return found

    def no_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number of JSON")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=no_constant)
    except RecursionError:
        refuse(path, f"{what} is nested too deeply")
    except ValueError as error:  # of the text's encoding, of JSON, of integers with thousands of digits
        refuse(path, f"{what} is no JSON that is read here: {error}")


def refuse(path: Path, reason: str) -> NoReturn:
    """Raise ValueError naming the file and the reason."""
    raise ValueError(f"load: {path} cannot be read: {reason}.")


def check_byte_order(who: str) -> None:
    """Raise NotImplementedError on a machine that is not little-endian, as the elements in files are."""
    if sys.byteorder != "little":
        raise NotImplementedError(
            f"{who}: files hold little-endian elements, and this machine is {sys.byteorder}-endian."
        )


def _parsed(path: Path, header: bytes) -> dict[str, Any]:
    if not header.startswith(b"{"):
        refuse(path, "it is no safetensors file: no '{' begins its header")
    return parse_json(path, header, "its header")  # an object, because of the brace


def _is_object(x: Any) -> bool:
    return type(x) is dict


def _stored_array(path: Path, name: str, entry: Any) -> StoredArray:
    if not _is_object(entry) or set(entry) != {"dtype", "shape", "data_offsets"}:
        refuse(path, f"the entry of {name!r} in its header has not just a dtype, a shape and data_offsets")
    tag, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(tag) is not str or tag not in ITEM_SIZES:
        refuse(path, f"the dtype of {name!r}, {tag!r}, is not one of {', '.join(ITEM_SIZES)}")
    if not _are_sizes(shape) or len(shape) > _RANK_LIMIT:
        refuse(path, f"the shape of {name!r} is no list of up to {_RANK_LIMIT} sizes")
    if not _are_sizes(offsets) or len(offsets) != 2:
        refuse(path, f"the data_offsets of {name!r} are not two positions")
    if math.prod(max(n, 1) for n in shape) * ITEM_SIZES[tag] > _SIZE_LIMIT:
        refuse(path, f"the shape of {name!r} is larger than arrays get")
    return StoredArray(tag, tuple(shape), *offsets)


def _are_sizes(x: Any) -> bool:
    return type(x) is list and all(type(n) is int and 0 <= n <= _SIZE_LIMIT for n in x)


def _check_offsets(path: Path, arrays: Mapping[str, StoredArray], size: int) -> None:
    """Check that the arrays fill the rest of the file, each with the bytes that its type takes, one after the other."""
    end = 0
    for name, x in sorted(arrays.items(), key=lambda item: (item[1].begin, item[1].end)):
        if x.begin != end:
            fault = "overlaps the array before it" if x.begin < end else "leaves a gap before it"
            refuse(path, f"{name!r} {fault}: it begins at byte {x.begin}, and not at {end}")
        needed = math.prod(x.shape) * ITEM_SIZES[x.tag]
        if x.end - x.begin != needed:
            refuse(
                path, f"{name!r} takes {needed} bytes as {x.tag}{list(x.shape)}, and its offsets give {x.end - x.begin}"
            )
        end = x.end
    if end != size:
        fault = "is cut short" if end > size else "has more bytes than its header says"
        refuse(path, f"it {fault}: its arrays take {end} bytes, and {size} follow the header")
