"""Programs run in a process of their own, whose end is part of what is tested."""

import os
import subprocess
import sys
import textwrap


def run(program: str, *arguments: object, timeout: float = 60, **environment: str) -> str:
    """What `program` prints on stdout. Fails if it does not end with 0, or says anything on stderr."""
    done = finished(program, *arguments, timeout=timeout, **environment)
    assert done.returncode == 0 and not done.stderr, f"ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


def finished(
    program: str, *arguments: object, timeout: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """How `program` ended, native stacks included should it crash."""
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program), *map(str, arguments)]
    given = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=given)
