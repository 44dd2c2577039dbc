"""A script for JAX, run by a process of its own, with JAX or with Tapeless in its place. It writes results as JSON."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
WITH_JAX = (sys.executable,)
WITH_TAPELESS = (sys.executable, "-m", "tapeless.as_jax")


def results(command: tuple[str, ...], script: str) -> Any:
    """What a script of this folder writes."""
    done = subprocess.run([*command, str(HERE / script)], capture_output=True, text=True, cwd=HERE.parents[1])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compare_both(script: str) -> None:
    """Run a script by both, and compare what they write."""
    theirs, ours = (results(command, script) for command in (WITH_JAX, WITH_TAPELESS))
    compare(ours, theirs)


def compare(ours: Any, theirs: Any, name: str = "") -> None:
    """Numbers, in dicts and lists: sums may be taken in another order. Words are the same."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key, expected in theirs.items():
            compare(ours[key], expected, f"{name}/{key}")
    elif isinstance(theirs, list) and any(isinstance(x, list) for x in theirs):
        for i, (mine, expected) in enumerate(zip(ours, theirs, strict=True)):
            compare(mine, expected, f"{name}[{i}]")
    elif isinstance(theirs, str):  # NumPy finds no dtype in which to subtract them
        assert ours == theirs, name
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6, err_msg=name)
