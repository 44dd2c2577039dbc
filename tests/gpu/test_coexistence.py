"""Tapeless and jax on one GPU, in one process, in either order: both load the same plugin."""

import os
import subprocess
import sys

import pytest

from tests.gpu import IS_GPU

pytestmark = pytest.mark.skipif(not IS_GPU, reason="tests/test_coexistence.py is for the CPU")

OURS = """
import tapeless as tl, tapeless.numpy as tnp
x = tl.jit(tl.grad(lambda x: tnp.linalg.svd(x)[1].sum()))(tnp.eye(3) * 2)
assert x.device.platform == "gpu" and abs(x[0, 0] - 1) < 1e-5, x
"""
THEIRS = """
import jax, jax.numpy as jnp
y = jax.jit(jax.grad(lambda x: jnp.linalg.svd(x)[1].sum()))(jnp.eye(3) * 2)
assert y.device.platform == "gpu" and abs(y[0, 0] - 1) < 1e-5, y
"""


@pytest.mark.parametrize("programs", [(OURS, THEIRS), (THEIRS, OURS)], ids=["ours first", "ours second"])
def test_both_compute(programs: tuple[str, str], device: object):
    pytest.importorskip("jax")
    environment = {**os.environ, "TAPELESS_PLATFORM": "gpu", "JAX_PLATFORMS": ""}
    code = "".join([*programs, programs[0]])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
