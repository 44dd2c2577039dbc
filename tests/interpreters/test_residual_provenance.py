"""Structure is seen through so many operations, and no more."""

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.interpreters.residual_provenance import DEPTH


def test_a_value_made_of_very_many_others():
    """Each sum is made of what is repeated, and is not followed to the first one."""

    def f(x):
        total = tnp.outer(x, x)
        for _ in range(20 * DEPTH):
            total = total + tnp.outer(x, x)
        return tnp.sum(total @ x)

    np.testing.assert_allclose(tl.grad(f)(np.ones(2)), np.full(2, (20 * DEPTH + 1) * 3 * 2 * 2 / 2))  # (Σx)² Σx
