"""The multinomial distribution: counts of several outcomes with probabilities p in n trials."""

from typing import Any

import numpy as np

from tapeless.scipy.stats.saddle_point import log_multinomial
from tapeless.tracer import core, dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.promotion import array_operand, inexact, promoted_dtypes

__all__ = ["logpmf", "pmf"]


def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Compute the logarithm of the multinomial probability of x.

    Args:
      x: [.., k], integers: the count of each outcome; -inf results if one is negative, or they do not sum to n.
      n: [..], integers.
      p: [.., k], floating point.
    Returns: [..], of the dtype of p.
    Raises: TypeError if x or n are no integers, ValueError if shapes do not broadcast.
    """
    counts, total = (array_operand("multinomial.logpmf", v) for v in promoted_dtypes("multinomial.logpmf", x, n))
    if dtypes.kind(counts.dtype) not in "iu":
        raise TypeError(f"multinomial.logpmf: x and n must be integers, not {counts.aval} and {total.aval}.")
    return _logpmf(counts, total, array_operand("multinomial.logpmf", inexact("multinomial.logpmf", p)))


def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Compute the multinomial probability of x. Args, Returns, Raises: as for `logpmf`."""
    return tnp.exp(logpmf(x, n, p))


@core.compound
def _logpmf(x: Any, n: Any, p: Any) -> Any:
    possible = tnp.all(x >= 0, axis=-1) & (tnp.sum(x, axis=-1) == n)
    counts, total = tnp.where(x >= 0, x, 0).astype(p.dtype), n.astype(p.dtype)
    counts, p = (tnp.moveaxis(v, -1, 0) for v in tnp.broadcast_arrays(counts, p))
    found = log_multinomial(counts, p, total, counts + 1, total + 1)
    return tnp.where(possible, found, -np.inf)


_complete_namespace(globals())
