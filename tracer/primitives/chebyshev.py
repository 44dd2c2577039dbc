"""Chebyshev series, which approximate smooth functions on intervals. Source: DLMF 3.11(ii); Clenshaw 1955."""

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes

from tapeless.tracer.primitives.elementwise import add, gt, lt, mul, select_n, sub
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.shape import full
from tapeless.tracer.types import aval_of


def chebyshev(t: Any, coefficients: Sequence[float]) -> Any:
    """Evaluate Σ c_k T_k(t) by Clenshaw's recurrence, without the coefficients below the dtype's precision."""
    tolerance = float(ml_dtypes.finfo(aval_of(t).dtype).eps) / 64
    kept = [c for c in coefficients if math.fabs(c) > tolerance]
    b, b_next = full(aval_of(t).shape, 0, aval_of(t).dtype), None
    twice = mul(2.0, t)
    for c in reversed(kept[1:]):
        b, b_next = add(mul(twice, b) if b_next is None else sub(mul(twice, b), b_next), c), b
    return add(mul(t, b) if b_next is None else sub(mul(t, b), b_next), kept[0])


def on_interval(x: Any, low: float, high: float, coefficients: Sequence[float]) -> Any:
    """Evaluate a Chebyshev series in x on the interval from `low` to `high`; beyond its ends the values at the ends."""
    inside = clipped(x, low, high)
    return chebyshev(mul(sub(inside, 0.5 * (low + high)), 2.0 / (high - low)), coefficients)


def clipped(x: Any, low: float, high: float) -> Any:
    """Clip x to an interval, so that values that are not used do not overflow; nan stays."""
    above = select_n(gt(x, high), x, constant(high, aval_of(x)))
    return select_n(lt(above, low), above, constant(low, aval_of(x)))
