"""The choices of docs/guarantees.md at points without a derivative: one in both modes, step by step and compiled.

Programs are compiled as users compile them; operations by themselves have nothing that they could be fused with.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

pytestmark = pytest.mark.usefixtures("eager_by_steps")

NAN, INF = np.nan, np.inf


class Point(NamedTuple):
    """Where a function of an array, of the same shape or a scalar, has no derivative; and the gradient of its sum."""

    f: Callable[[Any], Any]
    x: Any
    gradient: Any


POINTS = {
    "abs": Point(tnp.abs, [0, -0.0, 2], [0, 0, 1]),
    "copysign": Point(lambda x: tnp.copysign(x, -1), [0, -0.0, 2, -2], [0, 0, -1, 1]),
    "copysign of either sign": Point(lambda x: tnp.copysign(2, x), [0, -0.0, 3], [0, 0, 0]),
    "sign, round and floor": Point(lambda x: tnp.sign(x) + tnp.round(x + 0.5) + tnp.floor(x), [0, 1, 2], [0, 0, 0]),
    "maximum": Point(lambda x: tnp.maximum(x, x[::-1]), [1, 1, 3], [0, 1, 2]),
    "maximum with nan": Point(lambda x: tnp.maximum(x, x[::-1]), [1, NAN, 3], [0, 0, 2]),
    "minimum with one nan": Point(lambda x: tnp.minimum(x, np.array([NAN, 1])), [1, NAN], [0, 0]),
    "clip": Point(lambda x: tnp.clip(x, 0, 1), [-1, 0.5, NAN], [0, 1, 0]),
    "max": Point(tnp.max, [1, 3, 3], [0, 0.5, 0.5]),
    "max with nan": Point(tnp.max, [1, NAN, 3], [0, 0, 0]),
    "min of complex numbers with nan": Point(lambda x: tnp.min(x + 0j).real, [1, NAN, 3], [0, 0, 0]),
    "max of nothing but infinity": Point(tnp.max, [-INF, -INF], [0.5, 0.5]),
    "logaddexp": Point(lambda x: tnp.logaddexp(x[0], x[1]), [INF, INF], [0.5, 0.5]),
    "logaddexp of minus infinity": Point(lambda x: tnp.logaddexp2(x[0], x[1]), [-INF, -INF], [0.5, 0.5]),
    "logsumexp": Point(tl.nn.logsumexp, [-INF, -INF], [0.5, 0.5]),
    "logsumexp beside minus infinity": Point(tl.nn.logsumexp, [INF, -INF, INF, 2], [0.5, 0, 0.5, 0]),
    "logsumexp of some": Point(lambda x: tl.nn.logsumexp(x, where=np.array([True, False])), [-INF, 1], [1, 0]),
    "logsumexp of none": Point(lambda x: tl.nn.logsumexp(x, where=np.zeros(2, bool)), [-INF, 1], [0, 0]),
    "logsumexp without weights": Point(lambda x: tl.nn.logsumexp(x, b=np.zeros(2)), [2, 1], [0, 0]),
    "means of nothing": Point(
        lambda x: tnp.nanmean(x) + tnp.mean(x, where=np.zeros(2, bool)) + tnp.nanmedian(x), [NAN, NAN], [0, 0]
    ),
    "variances of nothing": Point(
        lambda x: tnp.nanvar(x) + tnp.nanstd(x) + tnp.var(x, where=x > 0) + tnp.std(x, where=x > 0), [NAN, NAN], [0, 0]
    ),
    "std": Point(tnp.std, [2, 2, 2], [0, 0, 0]),
    "sort": Point(lambda x: tnp.sort(x) * np.arange(3), [2, 1, 1], [2, 0, 1]),
    "cummax": Point(lax.cummax, [1, 1, 3, 3], [2, 0, 2, 0]),
    "cummax with nan": Point(lax.cummax, [1, NAN, 3, NAN], [1, 3, 0, 0]),
    "cummin with nan, backwards": Point(lambda x: lax.cummin(x, reverse=True), [1, NAN, 3, 2], [0, 2, 0, 2]),
    "where": Point(lambda x: tnp.where(x > 0, x, 0), [0, 1, NAN], [0, 1, 0]),
    "sqrt": Point(tnp.sqrt, [0, 4], [INF, 0.25]),
    "sqrt behind a choice": Point(lambda x: tnp.where(x > 0, tnp.sqrt(x), 0), [0, 4], [0, 0.25]),
    "sqrt times a mask": Point(lambda x: tnp.sqrt(x) * (x > 0), [0, 4], [NAN, 0.25]),
    "sqrt times a number": Point(lambda x: tnp.sqrt(x) * np.array([0.0, 1.0]), [0, 4], [NAN, 0.25]),
    "pow": Point(lambda x: lax.pow(x, np.array([0, 1, 2], np.uint32)), [0, 0, 0], [0, 1, 0]),
    "norm": Point(tnp.linalg.norm, [0, 0], [0, 0]),
    "hypot": Point(lambda x: tnp.hypot(x, 2 * x), [0, 0], [0, 0]),
}


def check_choice(name, compute):
    f, x, expected = POINTS[name]
    x, expected = np.asarray(x, float), np.asarray(expected, float)

    def total(x):
        return tnp.sum(f(x))

    def forwards(x):
        return tl.vmap(lambda t: tl.jvp(total, (x,), (t,))[1])(np.eye(len(x)))

    for gradient in (tl.grad(total), forwards) if np.isfinite(expected).all() else (tl.grad(total),):
        np.testing.assert_allclose(compute(gradient)(tnp.asarray(x)), expected, rtol=1e-6)


@pytest.mark.parametrize("name", POINTS)
def test_one_choice_step_by_step(name):
    check_choice(name, lambda gradient: gradient)


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.usefixtures("optimized")
def test_one_choice_compiled(name):
    check_choice(name, tl.jit)


@pytest.mark.parametrize("mask", [np.array([False, False, True, False]), np.array(False)])
@pytest.mark.usefixtures("optimized")
def test_a_product_with_a_mask_is_a_product(mask):
    """XLA would make it a choice (docs/xla_defects.md)."""
    x = np.array([INF, NAN, 1, -2.0])
    with np.errstate(invalid="ignore"):
        expected = x * mask
    for dtype in (np.float32, np.float64):
        for multiply in (tnp.multiply, tl.jit(lambda x, m: m * x)):
            np.testing.assert_array_equal(multiply(tnp.asarray(x, dtype), tnp.asarray(mask)), expected)
