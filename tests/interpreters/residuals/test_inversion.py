"""Steps of loops that are undone: what they compute has the types of the values before the step."""

from typing import Any

import numpy as np

import tapeless as tl
from tapeless.interpreters.residuals.inversion import step_backwards
from tapeless.tracer.check import check

SHIFT = tl.invertible(lambda x, by: x + by, lambda y, by: y - by)


def test_a_number_that_was_added_to_an_array_is_no_difference_of_arrays():
    def step(v: Any, n: Any, x: Any) -> Any:
        return v + n, n * 3, SHIFT(x, (v[0] * n).astype(x.dtype)), v, n, x

    program = tl.make_jaxpr(step)(np.ones(1, np.int32), np.int32(1), np.ones(3, np.float32)).jaxpr
    back = step_backwards(program, 0, 3, 3)
    assert back is not None
    assert (back.state, back.stacked) == ((2,), (0, 1))
    check(back.jaxpr)
