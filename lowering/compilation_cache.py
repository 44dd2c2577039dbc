"""A cache of compiled programs on disk, on by default.

It is in the user's cache directory: TAPELESS_CACHE_DIR, else $XDG_CACHE_HOME/tapeless or ~/.cache/tapeless
(~/Library/Caches/tapeless on macOS, %LOCALAPPDATA%\\tapeless on Windows). TAPELESS_CACHE=0 turns it off.

A compiled program is machine code: *loading one is running it*. So the files are kept in a folder of mode 0700 that
must belong to the user, a file must too and may not be a link, and never is anything unpickled. Do not point
TAPELESS_CACHE_DIR at a directory into which others may put things in the user's name.

A file is a header (magic, digest of the rest) and the program; one that is cut short, damaged or foreign is removed.
Files appear by os.replace, whole or not at all, so processes may share the directory. Reading refreshes a file's time
and the oldest go when the directory exceeds its limit. Every program is written, since that takes 0.3 ms against the
5 ms or more of the smallest compilation.
"""

import functools
import os
import platform
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tapeless.lowering.devices import Device
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer import source
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.settings.config import config

if TYPE_CHECKING:
    import hashlib
    import random
    import tempfile
else:
    hashlib, random, tempfile = LateModule("hashlib"), LateModule("random"), LateModule("tempfile")

_MAGIC = b"tapeless program 1\n"
_HEADER = len(_MAGIC) + 32  # bytes of a digest of SHA-256
_SUFFIX, _PARTIAL = ".program", ".partial"
_LIMIT = 2**30
_WRITES_PER_SWEEP = 128
_STALE_SECONDS = 3600


class CompilationCache:
    """Programs by key, in files of one directory.

    Raises: OSError if the directory cannot be made, is not the user's, or cannot be written to.
    """

    def __init__(self, directory: str | os.PathLike[str], limit: int = _LIMIT) -> None:
        self.directory: Final = Path(directory).expanduser() / "programs"
        self.limit: Final = limit
        _make_private(self.directory)

    def get(self, key: str) -> bytes | None:
        """Return the program of a key, and mark it as most recently used; None if it is missing or damaged."""
        path = self._path(key)
        try:
            content = _read_own(path)
        except OSError:
            return None
        payload = _unwrapped(content)
        with suppress(OSError):
            path.unlink() if payload is None else os.utime(path)
        return payload

    def put(self, key: str, blob: bytes) -> None:
        """Write a program, unless it takes over a quarter of the limit; failing is no error: the disk may be full."""
        if len(blob) > self.limit // 4:
            return
        with suppress(OSError):
            _write(self._path(key), _wrapped(blob))
            # By chance, so that many short processes sweep as often as a long one, with no state to share.
            if random.random() * _WRITES_PER_SWEEP < 1:
                self.sweep()

    def remove(self, key: str) -> None:
        """Forget the program of a key."""
        with suppress(OSError):
            self._path(key).unlink()

    def sweep(self) -> None:
        """Evict the least recently used programs until a fifth is free, if over the limit; and abandoned files."""
        entries = sorted(self._entries())
        excess = sum(size for _, size, _ in entries) - self.limit
        surplus = excess + self.limit // 5 if excess > 0 else 0
        for _, size, path in entries:
            if surplus <= 0:
                return
            with suppress(OSError):
                path.unlink()
                surplus -= size

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """Yield time of last use, size and path of every program; remove the partial files of dead writers."""
        now = time.time()
        with os.scandir(self.directory) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(_SUFFIX):
                        yield status.st_mtime, status.st_size, Path(entry.path)
                    elif entry.name.endswith(_PARTIAL) and now - status.st_mtime > _STALE_SECONDS:
                        os.unlink(entry.path)

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}{_SUFFIX}"


# ---- files


def _make_private(directory: Path) -> None:
    """Make a directory that only the user can enter. Raises: PermissionError if it is somebody else's."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or not _is_own(status):
        raise PermissionError(f"{directory} is not a directory of this user's")
    if stat.S_IMODE(status.st_mode) != 0o700 and os.name == "posix":
        directory.chmod(0o700)
    if not os.access(directory, os.W_OK):
        raise PermissionError(f"{directory} is not writable")


def _is_own(status: os.stat_result) -> bool:
    """Tell whether a file belongs to the user, where files belong to users."""
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


def _read_own(path: Path) -> bytes:
    """Read a regular file that belongs to the user. Raises: OSError if it is no such file."""
    with open(os.open(path, os.O_RDONLY | _NO_LINKS), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or not _is_own(status):
            raise PermissionError(f"{path} is not a file of this user's")
        return file.read()


_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def _write(path: Path, content: bytes) -> None:
    """Write a file of mode 0600 atomically."""
    handle, partial = tempfile.mkstemp(suffix=_PARTIAL, dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(partial, path)
    except BaseException:  # an interrupt, too
        with suppress(OSError):
            os.unlink(partial)
        raise


def _wrapped(blob: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(blob).digest() + blob


def _unwrapped(content: bytes) -> bytes | None:
    """Return the program in a file; None if its header or checksum is wrong."""
    blob = content[_HEADER:]
    return blob if content[:_HEADER] == _MAGIC + hashlib.sha256(blob).digest() else None


# ---- keys


def program_key(text: str | bytes, device: Device, options: Any) -> str:
    """Return the key of a compiled program: a digest of all that the compiler's output depends on.

    jaxlib loads programs of other releases and other processors without complaint, so the key must tell them apart.
    The source lines at the end of a module's text do not count: moving a function does not compile it anew.
    """
    parts = (
        _environment(device.client, device.device_kind),
        options.SerializeAsString(),
        _without_source_lines(text),
    )
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


@functools.lru_cache(maxsize=16)
def _environment(client: Any, device_kind: str) -> bytes:
    flags = [os.environ.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")]
    return "\n".join(
        [compat.jaxlib_identity(), client.platform, client.platform_version, device_kind, *processor(), *flags]
    ).encode()


@functools.cache
def processor() -> tuple[str, ...]:
    """Identify the CPU model and its features, which XLA compiles for."""
    names = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    found: dict[str, str] = {}
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not line.strip():
                break  # the first core stands for all
            name, _, value = line.partition(":")
            if name.strip() in names:
                found[name.strip()] = value.strip()
    return (platform.machine(), platform.processor(), platform.system(), *found.values())


_SOURCE_LINES = re.compile(r'(?:\n#loc\d* = loc\("[^"\n]*":\d+:\d+\))+\s*\Z')


def _without_source_lines(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else _SOURCE_LINES.sub("", text).encode()


# ---- the cache in use


def default_cache() -> CompilationCache | None:
    """Return the cache that the settings ask for; None if it is turned off or its directory cannot be used."""
    return _cache_in(config.compilation_cache_dir) if config.enable_compilation_cache else None


@functools.cache
def _cache_in(given: str) -> CompilationCache | None:
    """Return the cache in a directory, or else in that of the environment; None, with a warning, if it fails."""
    if not given and os.environ.get("TAPELESS_CACHE", "1").lower() in ("0", "false", "off"):
        return None
    directory = given or os.environ.get("TAPELESS_CACHE_DIR") or _user_cache_directory()
    try:
        return CompilationCache(directory)
    except (OSError, RuntimeError) as error:
        with suppress(RuntimeWarning):  # -W error makes it one, and programs run without a cache
            source.warn(
                f"compiled programs are not kept: {error}. Set TAPELESS_CACHE_DIR to a directory, or TAPELESS_CACHE=0.",
                RuntimeWarning,
            )
        return None


def _user_cache_directory() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tapeless"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "tapeless"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tapeless"
