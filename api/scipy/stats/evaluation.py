"""Evaluation of a distribution's formulas: operand promotion, location and scale, supports.

As in SciPy the result is nan where a parameter is out of its domain or an operand is nan, and outside of the support
a density is 0. Where the value of a formula is not used, it is evaluated at an inner point instead, so that its
derivatives are not nan there ("double where").
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.scipy.special_functions.gamma_relatives import check_real
from tapeless.tracer import core
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.promotion import as_array, broadcast, mixing_inside, promoted_inexact_dtypes


@mixing_inside
def evaluated(name: str, formula: Callable[..., Any], *operands: ArrayLike) -> Array:
    """Evaluate a formula elementwise on real operands, promoted to one floating-point dtype and broadcast.

    Raises: TypeError for complex operands or others than numbers, ValueError if shapes do not broadcast.
    """
    xs = promoted_inexact_dtypes(name, *operands)
    check_real(name, xs[0])
    return core.compound(formula)(*map(as_array, broadcast(name, *xs)))


def exponential(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Compose exp with a formula: a density from its logarithm."""

    def of_logarithm(*operands: Any) -> Any:
        return tnp.exp(formula(*operands))

    return of_logarithm


def standardized(x: Any, loc: Any, scale: Any, valid: Any = True) -> Any:
    """Compute (x - loc) / scale; nan where the scale is not positive, or where other parameters are not `valid`."""
    return only(valid & (scale > 0), (x - loc) / tnp.where(scale > 0, scale, 1))


def only(valid: Any, y: Any) -> Any:
    """Return y where `valid` is true, else nan."""
    return tnp.where(valid, y, np.nan)


def on_support(y: Any, inside: Any, value: Any, inner: float, formula: Callable[[Any], Any]) -> Any:
    """Evaluate a formula where `inside` is true; elsewhere return `value`, and nan where y is nan.

    Args:
      inner: a number at which the formula and its derivatives are finite.
    """
    outside = ~inside & (y == y)
    return tnp.where(outside, value, formula(tnp.where(outside, inner, y)))


def between(y: Any, low: float, high: float, outside: tuple[float, float], formula: Callable[[Any], Any]) -> Any:
    """Evaluate a formula on an interval, ends included; below and above it return the two numbers `outside`."""
    values = tnp.where(y < low, *outside)
    return on_support(y, (y >= low) & (y <= high), values, 0.5, formula)


def clipped(y: Any, low: Any, high: Any) -> Any:
    """Clip y to an interval, on which the derivative is 1, ends included; nan stays."""
    return tnp.where(y < low, low, tnp.where(y > high, high, y))


def quantile(q: Any, formula: Callable[[Any], Any]) -> Any:
    """Evaluate a formula at probabilities q; nan unless q is from 0 to 1."""
    inside = (q >= 0) & (q <= 1)
    return only(inside, formula(tnp.where(inside, q, 0.5)))


def log_probability(p: Any, complement: Any) -> Any:
    """Compute log(p), from the complement 1 - p where that is smaller and so more precise."""
    high = p > 0.5
    return tnp.where(high, tnp.log1p(-tnp.where(high, complement, 0)), tnp.log(tnp.where(high, 1, p)))


def log1p_square(y: Any) -> Any:
    """Compute log(1 + y²), without overflow."""
    far = tnp.abs(y) > 1e9 if y.dtype.itemsize > 4 else tnp.abs(y) > 1e5 if y.dtype.itemsize > 2 else tnp.abs(y) > 200
    near = tnp.where(far, 0, y)
    return tnp.where(far, 2 * tnp.log(tnp.abs(tnp.where(far, y, 1))), tnp.log1p(near * near))


def log1m_exp(t: Any) -> Any:
    """Compute log(1 - exp(-t)) for t >= 0, without cancellation.

    Source: Mächler 2012, "Accurately computing log(1 - exp(-|a|))".
    """
    small = t < math.log(2)
    by_difference = tnp.log(-tnp.expm1(-tnp.where(small, t, 1)))
    return tnp.where(small, by_difference, tnp.log1p(-tnp.exp(-tnp.where(small, 1, t))))


def is_integer(x: Any) -> Any:
    """Tell where numbers are integers."""
    return tnp.floor(x) == x
