"""The Dirichlet distribution of n numbers that sum to 1: density proportional to the product of x_i^(alpha_i - 1)."""

from typing import Any

import numpy as np

from tapeless.scipy.special_functions.gamma_relatives import check_real
from tapeless.scipy.stats.evaluation import only
from tapeless.scipy.stats.saddle_point import is_large, log_multinomial
from tapeless.tracer import core
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.promotion import as_array, promoted_inexact_dtypes

__all__ = ["logpdf", "pdf"]


def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Compute the logarithm of the Dirichlet density at x.

    Args:
      x: [n, ..], or [n - 1, ..] without the last numbers, which are then the difference to 1. The density is 0 unless
        they are positive and sum to 1, up to 1e-6.
      alpha: [n], positive; else the result is nan.
    Returns: [..].
    Raises: ValueError if shapes do not fit, TypeError for complex numbers; both operands are named.
    """
    x, alpha = map(as_array, promoted_inexact_dtypes("dirichlet.logpdf", x, alpha))
    check_real("dirichlet.logpdf", x)
    if alpha.ndim != 1 or x.ndim < 1 or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError(f"dirichlet.logpdf: alpha [n] and x [n, ..] or [n - 1, ..], not {alpha.aval} and {x.aval}.")
    return _logpdf(x, alpha)


def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Compute the Dirichlet density at x. Args, Returns, Raises: as for `logpdf`."""
    return tnp.exp(logpdf(x, alpha))


@core.compound
def _logpdf(x: Any, alpha: Any) -> Any:
    if x.shape[0] < alpha.shape[0]:
        x = tnp.concatenate([x, 1 - tnp.sum(x, axis=0, keepdims=True)])
    inside = tnp.all(x > 0, axis=0) & (tnp.abs(tnp.sum(x, axis=0) - 1) < 1e-6)
    shapes, shape = alpha.reshape(alpha.shape + (1,) * (x.ndim - 1)), tnp.sum(alpha)
    n = shape - 1
    powers = log_multinomial(shapes - 1, tnp.where(x <= 0, 1, x), n, shapes, shape)
    total = powers + (len(alpha) - 1) * tnp.log(tnp.where(is_large(n), n, 1))
    return only(tnp.all(alpha > 0), tnp.where(inside | tnp.isnan(tnp.sum(x, axis=0)), total, -np.inf))


_complete_namespace(globals())
