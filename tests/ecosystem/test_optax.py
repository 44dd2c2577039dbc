"""optax, imported and run through `as_jax`: the numbers are JAX's."""

import numpy as np
import pytest

from tests.ecosystem.running import WITH_JAX, WITH_TAPELESS, compare_both, results

pytest.importorskip("optax")


def test_optimizers():
    """One script, unedited, by both."""
    theirs, ours = (results(command, "optax_optimizers.py") for command in (WITH_JAX, WITH_TAPELESS))
    assert list(ours) == list(theirs) and len(ours) > 8
    for name, expected in theirs.items():
        # Sums may be taken in another order; what an optimizer divides by magnifies that.
        np.testing.assert_allclose(ours[name], expected, rtol=1e-4, atol=1e-5, err_msg=name)


def test_names():
    """All of them, by one program for the transformations."""
    compare_both("optax_names.py")
