"""equinox, imported and run through `as_jax`: the numbers are JAX's."""

import pytest

from tests.ecosystem.running import compare_both

pytest.importorskip("equinox")


@pytest.mark.parametrize("script", ["equinox_mlp.py", "equinox_model.py", "equinox_functions.py"])
def test_equinox(script: str):
    """One script, unedited, by both."""
    compare_both(script)
