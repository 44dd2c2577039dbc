"""Equinox through `as_jax`: which names keep it from being imported, and its core, which has JAX's numbers."""

import subprocess
import sys

import numpy as np
import pytest

from tests.ecosystem.running import HERE, WITH_JAX, WITH_TAPELESS, results

pytest.importorskip("equinox")
FILLED_IN = (sys.executable, "-m", "tests.ecosystem.equinox_names")


def test_the_first_missing_name_is_named():
    done = subprocess.run([*WITH_TAPELESS, str(HERE / "equinox_mlp.py")], capture_output=True, text=True)
    assert done.returncode != 0
    message = "jax.extend: Tapeless stands for JAX here, and does not have it; see 'Not supported yet' in its README."
    assert done.stderr.endswith(f"ImportError: {message}\n")


def test_core():
    """Modules, filtered transformations and a network, in one script; the missing names are filled in for us."""
    theirs, ours = (results(command, "equinox_mlp.py") for command in (WITH_JAX, FILLED_IN))
    assert list(ours) == list(theirs)
    for name, expected in theirs.items():
        np.testing.assert_allclose(ours[name], expected, rtol=1e-4, atol=1e-6, err_msg=name)
