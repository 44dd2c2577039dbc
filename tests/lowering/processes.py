"""Programs in a process of their own: for settings that are read once, and for what must not be imported."""

import os
import subprocess
import sys


def run_python(program: str, **environment: str) -> str:
    """What `program` prints. Fails with its errors if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TAPELESS_CACHE": "0", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
