"""File format of compiled programs: a header, with types and platform, and the program.

A file is: a line that names the format; the SHA-256 digest of the rest; the length of the header; the header, JSON; and
parts, such as the executable, whose lengths are in the header. Reading a file executes nothing, but the executable is
machine code: whoever runs it trusts the file.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tapeless.lowering.compilation_cache import processor
from tapeless.lowering.compile import CallingExecutable, Executable, compile_options
from tapeless.lowering.devices import Device
from tapeless.lowering.xla_workarounds import compat
from tapeless.lowering.xla_workarounds.uninterrupted import call_uninterrupted
from tapeless.tracer.types import ShapedArray

_FORMAT = b"tapeless compiled function, format "
_MAGIC = _FORMAT + b"1\n"
_DIGEST = hashlib.sha256().digest_size
_LENGTH = 8
_LAPACK = ("lapack_", "tridiagonal_solve_perturbed_ffi", "cuhybrid_")  # in the names of its routines


def pack_file(header: Mapping[str, Any], parts: Sequence[bytes]) -> bytes:
    """Write a header and parts as one file."""
    text = json.dumps({**header, "parts": [*map(len, parts)]}).encode()
    body = b"".join([len(text).to_bytes(_LENGTH, "little"), text, *parts])
    return _MAGIC + hashlib.sha256(body).digest() + body


def unpack_file(who: str, data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Read the header and the parts of a file. Raises: ValueError if it is another file, or not whole."""
    if not data.startswith(_FORMAT):
        raise ValueError(f"{who}: these bytes are not what serialize() of a compiled function wrote.")
    if not data.startswith(_MAGIC):
        other = data[len(_FORMAT) :].partition(b"\n")[0][:20].decode(errors="replace")
        raise ValueError(f"{who}: these bytes are of format {other}, of another version of tapeless; this one reads 1.")
    digest, body = data[len(_MAGIC) :][:_DIGEST], data[len(_MAGIC) + _DIGEST :]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError(f"{who}: the bytes are damaged, or cut short: their checksum differs.")
    end = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
    header = json.loads(body[_LENGTH:end])
    parts: list[bytes] = []
    for length in header["parts"]:
        parts.append(body[end : end + length])
        end += length
    return header, parts


def environment(device: Device) -> dict[str, Any]:
    """Describe where a program of a device runs: the build of jaxlib, the kind of the device, the processor."""
    machine, name, system, *features = processor()
    return {
        "jaxlib": compat.jaxlib_identity(),
        "platform": f"{device.platform}, {device.client.platform_version}",
        "device": device.device_kind,
        "machine": f"{machine} {system}",
        "features": sorted({word for text in (name, *features) for word in text.split()}),
    }


def check_environment(who: str, saved: Mapping[str, Any], device: Device) -> None:
    """Raise ValueError naming all differences if a program that was saved elsewhere does not run on a device here."""
    here = environment(device)
    differing = [
        f"{name}: {saved.get(name)!s} there, {here[name]!s} here"
        for name in ("jaxlib", "platform", "device", "machine")
        if saved.get(name) != here[name]
    ]
    missing = sorted(set(saved.get("features", ())) - set(here["features"]))
    if missing and not differing:
        differing = [f"processor: this one lacks {' '.join(missing[:20])}"]
    if differing:
        listed = "\n".join(f"  {each}." for each in differing)
        raise ValueError(f"{who}: the function was compiled elsewhere.\n{listed}\n  Compile it here.")


def executable_parts(who: str, executable: Executable) -> tuple[dict[str, Any], bytes]:
    """Describe an executable, and write it as bytes. Raises: TypeError if it calls functions on the host."""
    if isinstance(executable, CallingExecutable):
        raise TypeError(f"{who}: the function calls Python on the host, which cannot be saved.")
    device = executable.device
    calls_lapack = any(name in executable.as_text() for name in _LAPACK)
    return {"environment": environment(device), "device_id": device.id, "lapack": calls_lapack}, executable.serialize()


def load_executable(
    who: str, header: Mapping[str, Any], blob: bytes, device: Device, out_avals: Sequence[ShapedArray]
) -> Executable:
    """Load an executable from the header and the bytes of `executable_parts`.

    Raises: ValueError naming what differs, if it was compiled elsewhere, or if jaxlib refuses it.
    """
    check_environment(who, header["environment"], device)
    if header["lapack"]:
        compat.load_lapack(device.platform)
    # Another device of the same kind must be assigned, or the program runs on the one that it was compiled for.
    options = compile_options(device, {}) if device.id != header["device_id"] else None
    try:
        found = call_uninterrupted(compat.deserialize, device.client, blob, device.list, (), options)
    except Exception as error:
        raise ValueError(f"{who}: jaxlib cannot load this program: {error}") from error
    return SavedExecutable(found, device, out_avals, blob)


class SavedExecutable(Executable):
    """A loaded compiled program, with the bytes that it was loaded from."""

    __slots__ = ("_blob",)

    def __init__(self, loaded: Any, device: Device, out_avals: Sequence[ShapedArray], blob: bytes) -> None:
        super().__init__(loaded, device, out_avals, None)
        self._blob = blob

    def serialize(self) -> bytes:
        return self._blob
