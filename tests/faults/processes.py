"""Programs run in a process of their own, whose end is part of what is tested."""

import os
import re
import subprocess
import sys
import textwrap

_PROGRESS = re.compile(r"Compiling .* since .* \(config\.progress = False")  # a busy machine takes its time


def run(program: str, *arguments: object, timeout: float = 60, **environment: str) -> str:
    """What `program` prints. Fails if it does not end with 0, or says more on stderr than that it compiles."""
    done = finished(program, *arguments, timeout=timeout, **environment)
    said = "".join(line for line in done.stderr.splitlines(keepends=True) if not _PROGRESS.match(line))
    assert done.returncode == 0 and not said, f"ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


def finished(
    program: str, *arguments: object, timeout: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """How `program` ended, native stacks included should it crash."""
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program), *map(str, arguments)]
    given = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=given)
