"""x log(y), entropies and Kullback-Leibler divergences, and the Box-Cox transformation, elementwise, for real numbers.

At 0, values and derivatives are their limits: nan results only from nan. Complex numbers raise a TypeError.
Source: scipy.special, "information theory"; Box & Cox 1964.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.scipy.special_functions.gamma_relatives import check_real
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.numpy.promotion import apply2_inexact, array_operand, inexact, promoted_inexact
from tapeless.tracer.primitives import gamma_functions as g


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute x log(y), elementwise; 0 where x is 0, unless y is nan.

    The derivatives are log(y) and x/y, where 0/0 counts as 0.
    Raises: TypeError for complex numbers.
    """
    return apply2_inexact("xlogy", g.xlogy_p, x, y)


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute x log(1 + y), elementwise, precise for small y; 0 where x is 0, unless y is nan.

    The derivatives are log(1 + y) and x / (1 + y), where 0/0 counts as 0.
    Raises: TypeError for complex numbers.
    """
    return apply2_inexact("xlog1py", g.xlog1py_p, x, y)


def entr(x: ArrayLike) -> Array:
    """Compute the entropy -x log(x), elementwise; 0 at 0, where the derivative is infinite, and -inf for negative x.

    Raises: TypeError for complex numbers.
    """
    x = inexact("entr", array_operand("entr", x))
    check_real("entr", x)
    return _entr(x)


@compound
def _entr(x: Any) -> Array:
    inside = tnp.where(x < 0, 1, x)
    return tnp.where(x < 0, -np.inf, -g.xlogy(inside, inside))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute the relative entropy p log(p/q), elementwise; 0 where p is 0 and q >= 0, inf outside of p, q >= 0.

    Where p is close to q it is computed from their difference, without cancellation.
    Raises: TypeError for complex numbers.
    """
    p, q = promoted_inexact("rel_entr", p, q)
    check_real("rel_entr", p)
    return _rel_entr(p, q)


@compound
def _rel_entr(p: Any, q: Any) -> Array:
    outside = _outside(p, q)
    p, q = tnp.where(outside, 1, p), tnp.where(outside | (p == 0) & (q == 0), 1, q)
    ratio = p / q
    near, s, tail = _difference(p, q, ratio)
    slope = ratio / q  # by which the derivative of the ratio is taken
    small = max(_SMALL, float(dtypes.finfo(ratio.dtype).tiny))
    unusual = (ratio < small) | (ratio == np.inf) | (slope < small) | (slope == np.inf)
    extreme = (p > 0) & (q > 0) & unusual
    by_logarithms = p * (tnp.log(tnp.where(extreme, p, 1)) - tnp.log(tnp.where(extreme, q, 1)))
    by_ratio = tnp.where(extreme, by_logarithms, g.xlogy(p, tnp.where(extreme, 1, ratio)))
    return tnp.where(outside, np.inf, tnp.where(near, 2 * p * s * (1 + s * s * tail), by_ratio))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute the Kullback-Leibler divergence p log(p/q) - p + q, elementwise, without cancellation.

    It is inf where p or q is negative, or q is 0 and p is not. Raises: TypeError for complex numbers.
    """
    p, q = promoted_inexact("kl_div", p, q)
    check_real("kl_div", p)
    return _kl_div(p, q)


@compound
def _kl_div(p: Any, q: Any) -> Array:
    outside = _outside(p, q)
    p, q = tnp.where(outside, 1, p), tnp.where(outside, 1, q)
    return tnp.where(outside, np.inf, g.kl_div(p, q))


_SMALL = float(np.finfo(np.float32).tiny)  # smaller quotients may be subnormal, with less precision


def _outside(p: Any, q: Any) -> Any:
    return ((p < 0) | (q < 0) | (q == 0) & (p > 0)) & (p == p) & (q == q)


def _difference(p: Any, q: Any, ratio: Any) -> tuple[Any, Any, Any]:
    """Return where to use log(p/q) = 2 s (1 + s² tail), with s = (p - q) / (p + q); s and tail. Source: A&S 4.1.27."""
    near = (ratio > 0.5) & (ratio < 2)
    s = tnp.where(near, p - q, 0) / tnp.where(near, p + q, 1)
    square, tail = s * s, 1 / 35 + 0 * s
    for k in range(33, 1, -2):
        tail = 1 / k + square * tail
    return near, s, tail


# ---- the Box-Cox transformation ------------------------------------------------------------------------------


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute the Box-Cox transformation (x^lmbda - 1) / lmbda, elementwise; log(x) where lmbda is 0; nan for x < 0.

    It is smooth in x and lmbda. Raises: TypeError for complex numbers.
    """
    x, lmbda = promoted_inexact("boxcox", x, lmbda)
    check_real("boxcox", x)
    return _boxcox(x, lmbda)


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute ((1 + x)^lmbda - 1) / lmbda, elementwise; log(1 + x) where lmbda is 0; nan where x < -1.

    It is smooth in x and lmbda. Raises: TypeError for complex numbers.
    """
    x, lmbda = promoted_inexact("boxcox1p", x, lmbda)
    check_real("boxcox1p", x)
    return _boxcox1p(x, lmbda)


@compound
def _boxcox(x: Any, lmbda: Any) -> Array:
    return _with_zero(x, x, lmbda, lambda x: _transformed(tnp.log, g.xlogy, x, lmbda))


@compound
def _boxcox1p(x: Any, lmbda: Any) -> Array:
    return _with_zero(1 + x, x, lmbda, lambda x: _transformed(tnp.log1p, g.xlog1py, x, lmbda))


def _with_zero(base: Any, x: Any, lmbda: Any, transformed: Callable[[Any], Any]) -> Array:
    """Return `transformed(x)`; where the base of the power is 0 and lmbda > 0 the power itself, for its derivatives."""
    zero = (base == 0) & (lmbda > 0)
    lmbda = tnp.where(zero, lmbda, 1)
    return tnp.where(zero, (tnp.power(tnp.where(zero, base, 1), lmbda) - 1) / lmbda, transformed(tnp.where(zero, 1, x)))


def _transformed(logarithm: Callable[[Any], Any], product: Callable[..., Any], x: Any, lmbda: Any) -> Array:
    """Compute log (1 + u/2 + u²/6 + ...) with u = lmbda log, up to |u| = 1; beyond (exp(u) - 1) / lmbda."""
    u = product(lmbda, x)
    near = tnp.abs(u) < 1
    z = tnp.where(near, u, 0)
    series = 1 + z / 19
    for k in range(18, 1, -1):
        series = 1 + z / k * series
    by_series = tnp.where(near, logarithm(tnp.where(near, x, 1)), 0) * series
    u, lmbda = tnp.where(near, 1, u), tnp.where(near, 1, lmbda)
    large = u > 1 - math.log(dtypes.finfo(u.dtype).eps)  # there 1 is nothing beside exp(u), which may overflow
    root = tnp.exp(0.5 * tnp.where(large, u, 0))
    far = tnp.where(large, root * (root / lmbda), tnp.expm1(tnp.where(large, 0, u)) / lmbda)
    return tnp.where(near, by_series, far)
