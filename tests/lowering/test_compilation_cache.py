"""The cache on disk: hits, keys, damage, strangers, several writers, limits."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tapeless.lowering import compilation_cache, devices
from tapeless.lowering import compile as compiling
from tapeless.lowering.array import device_put
from tapeless.lowering.compilation_cache import CompilationCache, default_cache, program_key
from tapeless.lowering.compile import compile_module, compile_options
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer.types import ShapedArray
from tests.lowering.processes import run_python

TEXT = """module @m {
  func.func public @main(%a: tensor<3xf64>) -> tensor<3xf64> {
    %0 = stablehlo.add %a, %a : tensor<3xf64> loc(#loc0)
    return %0 : tensor<3xf64>
  }
}
#loc0 = loc("model.py":12:0)"""

posix = pytest.mark.skipif(os.name != "posix", reason="files belong to users on POSIX only")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompilationCache:
    """The cache in use, empty."""
    cache = CompilationCache(tmp_path / "cache")
    monkeypatch.setattr(compiling, "default_cache", lambda: cache)
    return cache


def run() -> list[float]:
    program = compile_module(TEXT, out_avals=[ShapedArray((3,), "float64")], device=devices.devices("cpu")[0])
    return program(device_put(np.arange(3.0)))[0].tolist()


def files(cache: CompilationCache) -> list[Path]:
    return sorted(cache.directory.iterdir())


def forbid_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("compiled, though it was in the cache")

    monkeypatch.setattr(compiling, "_compile_once", refuse)


def key_of(text: str = TEXT, **options: object) -> str:
    cpu = devices.devices("cpu")[0]
    return program_key(text, cpu, compile_options(cpu, options))


def test_the_second_time_nothing_is_compiled(cache: CompilationCache, monkeypatch: pytest.MonkeyPatch):
    assert run() == [0, 2, 4]
    forbid_compiling(monkeypatch)
    assert run() == [0, 2, 4]
    assert [path.name for path in files(cache)] == [f"{key_of()}.program"]


def test_another_process_finds_it(tmp_path: Path):
    program = """
import tests.lowering.test_compilation_cache as t
from tapeless.lowering import compile as compiling
once, compiled = compiling._compile_once, []
compiling._compile_once = lambda *a: compiled.append(1) or once(*a)
print(t.run(), len(compiled))
"""
    root = str(Path(__file__).parents[2])
    printed = [
        run_python(
            program,
            TAPELESS_CACHE="1",
            TAPELESS_CACHE_DIR=str(tmp_path),
            PYTHONPATH=os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]),
        )
        for _ in range(2)
    ]
    assert printed == ["[0.0, 2.0, 4.0] 1", "[0.0, 2.0, 4.0] 0"]


def test_callbacks_are_taken_anew(cache: CompilationCache):
    text = """func.func public @main(%a: tensor<3xf64>) -> tensor<3xf64> {
      %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) {api_version = 4 : i32, has_side_effect = true,
           backend_config = {index = 0 : ui64}} : (tensor<3xf64>) -> tensor<3xf64>
      return %0 : tensor<3xf64> }"""
    for function in (np.negative, np.square):
        program = compile_module(
            text,
            out_avals=[ShapedArray((3,), "float64")],
            device=devices.devices("cpu")[0],
            callbacks=[lambda x, function=function: (function(x),)],
        )
        assert program(device_put(np.arange(3.0)))[0].tolist() == function(np.arange(3.0)).tolist()
    assert len(files(cache)) == 1


# ---- keys


def test_what_keys_depend_on(monkeypatch: pytest.MonkeyPatch):
    keys = [key_of(), key_of(TEXT.replace("add", "multiply")), key_of(xla_cpu_enable_fast_math=True)]
    for name, value in (
        ("jaxlib_identity", lambda: "jaxlib 9.9.9"),
        ("processor", lambda: ("a faster one",)),
        ("XLA_FLAGS", "--xla_cpu_enable_fast_math=true"),
    ):
        with monkeypatch.context() as changed:
            if name == "XLA_FLAGS":
                changed.setenv(name, value)
            else:
                changed.setattr(compat if hasattr(compat, name) else compilation_cache, name, value)
            compilation_cache._environment.cache_clear()
            keys.append(key_of())
    compilation_cache._environment.cache_clear()
    assert len(set(keys)) == len(keys)
    assert key_of() == keys[0]


def test_keys_do_not_depend_on_source_lines():
    assert key_of(TEXT) == key_of(TEXT.replace('"model.py":12:0', '"other/model.py":345:0'))
    assert key_of(TEXT) != key_of(TEXT.replace("3xf64", "4xf64"))


def test_the_processor_is_described():
    assert all(isinstance(part, str) for part in compilation_cache.processor())
    if sys.platform == "linux":
        assert len(compilation_cache.processor()) > 3


# ---- damage

DAMAGE = {
    "empty": lambda content: b"",
    "cut in the header": lambda content: content[:20],
    "cut in the program": lambda content: content[:-1],
    "longer": lambda content: content + b"\0",
    "one bit": lambda content: content[:-10] + bytes([content[-10] ^ 1]) + content[-9:],
    "foreign": lambda content: b"\x80\x04\x95 a pickle, perhaps" * 10,
    "well wrapped nonsense": lambda content: compilation_cache._wrapped(b"nonsense" * 100),
    "well wrapped nothing": lambda content: compilation_cache._wrapped(b""),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_replaced(damage: str, cache: CompilationCache, monkeypatch: pytest.MonkeyPatch):
    run()
    (path,) = files(cache)
    good = path.read_bytes()
    path.write_bytes(DAMAGE[damage](good))
    assert run() == [0, 2, 4]
    forbid_compiling(monkeypatch)
    assert run() == [0, 2, 4]


def test_a_directory_in_the_place_of_a_file(cache: CompilationCache):
    (cache.directory / f"{key_of()}.program").mkdir()
    assert run() == [0, 2, 4]


def test_a_directory_that_disappears(cache: CompilationCache):
    cache.directory.rmdir()
    assert run() == [0, 2, 4]


# ---- strangers


@posix
def test_files_are_private(cache: CompilationCache):
    run()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (cache.directory, *files(cache))]
    assert modes == [0o700, 0o600]


@posix
def test_a_directory_open_to_others_is_closed(tmp_path: Path):
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs").chmod(0o777)
    assert stat.S_IMODE(CompilationCache(tmp_path).directory.stat().st_mode) == 0o700


@posix
def test_links_are_not_followed(cache: CompilationCache, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(compilation_cache._wrapped(b"planted"))
    (cache.directory / "k.program").symlink_to(elsewhere)
    assert cache.get("k") is None
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "programs").symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="not a directory of this user's"):
        CompilationCache(tmp_path / "linked")


@posix
def test_what_belongs_to_another_is_refused(cache: CompilationCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache.put("k", b"blob")
    monkeypatch.setattr(compilation_cache.os, "getuid", lambda: os.geteuid() + 1)
    assert cache.get("k") is None
    with pytest.raises(PermissionError, match="not a directory of this user's"):
        CompilationCache(tmp_path / "cache")


@posix
def test_a_pipe_does_not_block(cache: CompilationCache):
    os.mkfifo(cache.directory / "k.program")
    assert cache.get("k") is None


# ---- several writers

WRITER = """
import sys
from tapeless.lowering.compilation_cache import CompilationCache
cache = CompilationCache(sys.argv[1])
wrong = 0
for i in range(300):
    key = f"k{i % 3}"
    cache.put(key, bytes([i % 3]) * 50_000)
    found = cache.get(key)
    wrong += found is not None and found != bytes([i % 3]) * 50_000
    cache.sweep()
print(wrong)
"""


def test_two_writers_at_once(tmp_path: Path):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [writer.communicate(timeout=120)[0].strip() for writer in writers] == ["0", "0"]
    cache = CompilationCache(tmp_path)
    assert sorted(path.suffix for path in files(cache)) == [".program"] * 3
    assert [cache.get(f"k{i}") for i in range(3)] == [bytes([i]) * 50_000 for i in range(3)]


# ---- limits


def test_the_oldest_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("random.random", lambda: 1.0)  # no write sweeps by chance
    cache = CompilationCache(tmp_path, limit=10_000)
    for i in range(12):
        cache.put(f"k{i}", bytes(900))
        os.utime(cache._path(f"k{i}"), (1000 + i, 1000 + i))
    assert cache.get("k0") is not None  # which makes it the newest
    cache.sweep()
    kept = {path.stem for path in files(cache)}
    assert kept == {"k0", *(f"k{i}" for i in range(12 - len(kept) + 1, 12))}
    assert sum(path.stat().st_size for path in files(cache)) <= 8_000


def test_within_the_limit_nothing_goes(tmp_path: Path):
    cache = CompilationCache(tmp_path, limit=10_000)
    for i in range(9):
        cache.put(f"k{i}", bytes(900))
    cache.sweep()
    assert len(files(cache)) == 9


def test_writes_sweep_by_and_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compilation_cache.random, "random", lambda: 0.0)
    cache = CompilationCache(tmp_path, limit=10_000)
    for i in range(50):
        cache.put(f"k{i}", bytes(900))
    assert sum(path.stat().st_size for path in files(cache)) <= 10_000


def test_programs_too_big_to_keep(tmp_path: Path):
    cache = CompilationCache(tmp_path, limit=1000)
    cache.put("k", bytes(500))
    assert files(cache) == []


def test_what_a_dead_writer_left_is_removed(cache: CompilationCache):
    for name, age in (("old.partial", 7200), ("new.partial", 0), ("old.txt", 7200)):
        (cache.directory / name).write_bytes(b"")
        os.utime(cache.directory / name, (time.time() - age,) * 2)
    cache.sweep()
    assert [path.name for path in files(cache)] == ["new.partial", "old.txt"]


# ---- the one in use


@pytest.fixture
def fresh_default():
    compilation_cache._cache_in.cache_clear()
    yield
    compilation_cache._cache_in.cache_clear()


@pytest.mark.usefixtures("fresh_default")
def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("TAPELESS_CACHE", "1")
    monkeypatch.delenv("TAPELESS_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache().directory == tmp_path / "xdg" / "tapeless" / "programs"
    compilation_cache._cache_in.cache_clear()
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path / "own"))
    assert default_cache().directory == tmp_path / "own" / "programs"


@pytest.mark.parametrize("system, folder", [("darwin", "Library/Caches/tapeless"), ("win32", "AppData/Local/tapeless")])
def test_where_it_is_elsewhere(system: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert compilation_cache._user_cache_directory() == tmp_path / folder


@pytest.mark.usefixtures("fresh_default")
@pytest.mark.parametrize("off", ["0", "false", "OFF"])
def test_turning_it_off(off: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TAPELESS_CACHE", off)
    assert default_cache() is None
    assert run() == [0, 2, 4]


@pytest.mark.usefixtures("fresh_default")
def test_an_unusable_directory_costs_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TAPELESS_CACHE", "1")
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path / "file" / "below"))
    with pytest.warns(RuntimeWarning, match="compiled programs are not kept") as warned:
        assert run() == [0, 2, 4]
    assert warned[0].filename == __file__  # the user's line
    assert run() == [0, 2, 4]
