"""equinox, imported and run through `as_jax`: the numbers are JAX's."""

from typing import Any

import numpy as np
import pytest

from tests.ecosystem.running import WITH_JAX, WITH_TAPELESS, results

pytest.importorskip("equinox")


@pytest.mark.parametrize("script", ["equinox_mlp.py", "equinox_model.py", "equinox_functions.py"])
def test_equinox(script: str):
    """One script, unedited, by both."""
    theirs, ours = (results(command, script) for command in (WITH_JAX, WITH_TAPELESS))
    compare(ours, theirs)


def compare(ours: Any, theirs: Any, name: str = "") -> None:
    """Sums may be taken in another order."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key, expected in theirs.items():
            compare(ours[key], expected, f"{name}/{key}")
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6, err_msg=name)
