"""A script for JAX, run by a process of its own, with JAX or with Tapeless in its place. It writes results as JSON."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WITH_JAX = (sys.executable,)
WITH_TAPELESS = (sys.executable, "-m", "tapeless.as_jax")


def results(command: tuple[str, ...], script: str) -> Any:
    """What a script of this folder writes."""
    done = subprocess.run([*command, str(HERE / script)], capture_output=True, text=True, cwd=HERE.parents[1])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
