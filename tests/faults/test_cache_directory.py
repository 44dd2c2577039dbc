"""Cache directories as they are found: full, shared by many processes, interrupted. See test_compilation_cache.py.

Whatever they are, programs are compiled and right; a directory that is of no use costs one warning at most.
"""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tapeless.lowering.compilation_cache import CompilationCache
from tests.faults.processes import run

COMPUTING = """
import numpy as np
import tapeless as tl, tapeless.numpy as tnp
print(tl.jit(lambda x: tnp.sum(tnp.sin(x) * 2))(np.zeros(3, np.float32)))
"""

# The first byte beyond so many fails, as on a full disk, and what was written before stays.
FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
"""


def computed(directory: Path, before: str = "") -> str:
    """What a process prints that computes with this cache."""
    return run(before + COMPUTING, TAPELESS_CACHE="1", TAPELESS_CACHE_DIR=str(directory))


def _files(directory: Path) -> list[str]:
    return sorted(path.suffix for path in (directory / "programs").iterdir())


def test_a_full_disk(tmp_path: Path):
    assert computed(tmp_path, FULL) == "0.0\n" and _files(tmp_path) == []
    assert computed(tmp_path) == "0.0\n" and _files(tmp_path)


def test_a_disk_that_is_full_later(tmp_path: Path):
    """What is there is found, and what cannot be added is not."""
    computed(tmp_path)
    before = _files(tmp_path)
    assert computed(tmp_path, FULL) == "0.0\n" and _files(tmp_path) == before


def test_a_file_in_the_place_of_the_directory(tmp_path: Path):
    """The warning says what to do; `-W error` would make it the error that it is not otherwise."""
    (tmp_path / "programs").write_text("mine")
    with pytest.raises(OSError, match="programs"):
        CompilationCache(tmp_path)


SHARING = """
import sys
import numpy as np
import tapeless as tl, tapeless.numpy as tnp
for n in range(1, 4):
    x = np.full(n, 0.5, np.float32)
    assert np.allclose(tl.jit(lambda x: tnp.sum(tnp.sin(x)))(x), n * np.sin(0.5))
"""


def test_many_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """They write and read the same programs at the same time, and leave each once."""
    monkeypatch.setenv("TAPELESS_CACHE", "1")
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path))
    command = [sys.executable, "-c", SHARING]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate(timeout=120)[1] for process in running] == [""] * 4
    assert set(_files(tmp_path)) == {".program"}
    count = len(_files(tmp_path))
    run(SHARING)
    assert len(_files(tmp_path)) == count


def test_an_interrupted_writer_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = CompilationCache(tmp_path)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.put("key", b"program")
    assert _files(tmp_path) == [] and cache.get("key") is None


KILLED = """
import os, signal
from tapeless.lowering import compilation_cache

def replace(*_):
    os.kill(os.getpid(), signal.SIGKILL)

os.replace = replace
compilation_cache.CompilationCache(os.environ["TAPELESS_CACHE_DIR"]).put("key", b"program")
"""


def test_a_killed_writer_leaves_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What it leaves is swept when it is an hour old."""
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL and _files(tmp_path) == [".partial"]
    assert CompilationCache(tmp_path).get("key") is None
