"""flax, haiku, keras and orbax, imported and run through `as_jax`: the numbers are JAX's."""

import importlib.util

import pytest

from tests.ecosystem.running import compare_both


@pytest.mark.parametrize(
    ("library", "script"),
    [
        ("flax", "flax_linen.py"),
        ("flax", "flax_nnx.py"),
        ("orbax", "orbax_checkpoints.py"),
        ("haiku", "haiku_model.py"),
        ("keras", "keras_models.py"),
    ],
)
def test_models(library: str, script: str):
    """One script, unedited, by both. The library is not imported here: that would bring JAX into this process."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    compare_both(script)
