"""The line search of `scipy.optimize.minimize` and `optimizers.lbfgs`: what it finds, alone and in a batch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.scipy.iterative.line_search import LinePoint, SearchLimits, line_search

FIRST_STEPS = np.array([1e-6, 0.03, 1.0, 7.0, 1e3])


@pytest.mark.parametrize(
    "f",
    [
        lambda a: (a - 2) ** 2,
        lambda a: -tnp.sin(a / 3),
        lambda a: -2 * a - tnp.log(1 - a),  # nan from 1 on
        lambda a: tnp.where(a > 0.5, 1e6 * (a - 0.5), 0) + (a - 0.6) ** 2,
        lambda a: 1e10 + (a - 2) ** 2,  # values hide the decrease, slopes do not
    ],
)
def test_conditions_hold_alone_and_in_a_batch(f: Callable[[Any], Any]):
    traced: list[None] = []

    def evaluate(step: Any) -> tuple[Any, Any, Any]:
        traced.append(None)
        value, slope = tl.value_and_grad(f)(step + 1e-3)
        return value, slope, slope

    value, slope, _ = evaluate(tnp.zeros((), "float64"))
    limits = SearchLimits(60, 60, approx_dec_rtol=2e-14)
    traced.clear()

    def search(first: Any) -> Any:
        start = LinePoint(tnp.zeros_like(value), value, slope)
        return line_search(evaluate, start, slope, first, limits)

    found = tl.jit(tl.vmap(search))(FIRST_STEPS)
    assert len(traced) <= 2  # the body of the loop has one evaluation: a second trace finds the types of the carry
    assert np.all(found.done)
    point = found.trial.point
    assert np.all(np.abs(point.slope) <= 0.9 * abs(slope))
    assert np.all(point.value <= value + 2e-14 * abs(value))
    alone = tl.jit(search)(FIRST_STEPS[3])
    np.testing.assert_allclose(alone.trial.point.step, point.step[3], rtol=1e-12)
    assert int(alone.count) == int(found.count[3])
