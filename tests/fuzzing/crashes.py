"""Programs that end the process: shortened by trying each candidate in a process of its own."""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.fuzzing.builder import build
from tests.fuzzing.families import TABLE
from tests.fuzzing.judge import judge
from tests.fuzzing.modes import Case
from tests.fuzzing.profiles import PROFILES
from tests.fuzzing.program import Program
from tests.fuzzing.report import script
from tests.fuzzing.shrink import shrink

ROOT = Path(__file__).resolve().parents[2]
ATTEMPTS, SECONDS = 60, 120.0


def shortened(profile: str, seed: int, mode: str) -> str:
    """A short program that ends the process in this mode, as a script."""
    program, _ = build(PROFILES[profile], seed, TABLE)
    if not ends_process(program, profile, seed, mode):
        return "# alone, the program does not end the process"
    return script(Case(shrink(program, lambda p: ends_process(p, profile, seed, mode), ATTEMPTS), seed), [mode])


def ends_process(program: Program, profile: str, seed: int, mode: str) -> bool:
    """Whether running the program ends a process by a signal."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program")
        path.write_bytes(pickle.dumps(program))
        command = [sys.executable, "-m", "tests.fuzzing", "--replay", str(path), "--profile", profile]
        command += ["--seed", str(seed), "--only", mode]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=os.environ | {"TAPELESS_CACHE": "0"},
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode < 0


def replay(path: str, seed: int, only: Sequence[str]) -> None:
    """Run a pickled program in these modes."""
    judge(Case(pickle.loads(Path(path).read_bytes()), seed), only=only)
