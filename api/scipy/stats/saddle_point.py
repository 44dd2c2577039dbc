"""Saddle-point form of log-densities: powers over gamma functions of large parameters, without cancellation.

log(x^n e^-x / gamma(n + 1)) = -D(n, x) - log(2 pi n) / 2 - r(n), with the deviance D(n, x) = n log(n/x) + x - n >= 0,
which is `kl_div`, and the remainder r of Stirling's series; for a small n it is computed as it stands. Densities of
several such factors are scaled so that the exponentials cancel.
Error: that of rounding operands; relative to a density, a few ulp times its condition number.
Source: Loader 2000, "Fast and accurate computation of binomial probabilities"; DLMF 5.11.1.
"""

import math
from typing import Any

from tapeless.scipy.special_functions.entropies import xlog1py, xlogy
from tapeless.scipy.special_functions.from_lax import gammaln
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.gamma_functions import kl_div

_SERIES = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360,
    1 / 156, -3617 / 122400, 43867 / 244188, -174611 / 125400, 77683 / 5796,
)  # fmt: skip


def is_large(n: Any) -> Any:
    """Tell where the error of Stirling's series is below the rounding of numbers near 1."""
    return n >= (6.0 if n.dtype.itemsize > 4 else 3.0)


def log_poisson(n: Any, x: Any, shape: Any) -> Any:
    """Compute log(x^n e^-x / gamma(shape)), where shape = n + 1 > 0; if it is small, n has fewer digits."""
    return log_kernel(n, x) - log_gamma(n, shape)


def log_binomial(k: Any, m: Any, p: Any, q: Any) -> Any:
    """Compute log(gamma(k + m + 1) / (gamma(k + 1) gamma(m + 1)) p^k q^m), where p + q = 1."""
    n = k + m
    return log_powers(n, (k, p, q), (m, q, p)) - log_gamma(k, k + 1) - log_gamma(m, m + 1) + log_gamma(n, n + 1)


def log_negative_binomial(k: Any, n: Any, p: Any, q: Any) -> Any:
    """Compute log(gamma(n + k) / (gamma(n) gamma(k + 1)) p^n q^k), where p + q = 1."""
    return log_binomial(k, n, q, p) - tnp.log1p(k / n)


def log_powers(n: Any, *factors: tuple[Any, Any, Any]) -> Any:
    """Compute the sum of k log(p) over factors (k, p, 1 - p); for a large n of the `log_kernel` of (k, n p) instead."""
    large = is_large(n)
    scale = tnp.where(large, n, 1)
    scaled, direct = 0, 0
    for k, p, rest in factors:
        scaled = scaled + log_kernel(k, scale * p)
        k, near_1 = tnp.where(large, 0, k), p > 0.5
        by_rest = xlog1py(k, -tnp.where(near_1, rest, 0))
        direct = direct + tnp.where(near_1, by_rest, xlogy(k, tnp.where(near_1 | large, 1, p)))
    return tnp.where(large, scaled, direct)


def log_kernel(n: Any, x: Any) -> Any:
    """Compute n log(x) - x; for a large n less its maximum, n log(n) - n."""
    large = is_large(n)
    small = xlogy(tnp.where(large, 0, n), tnp.where(large, 1, x)) - x
    return tnp.where(large, -kl_div(tnp.where(large, n, 1), tnp.where(large, x, 1)), small)


def log_gamma(n: Any, shape: Any) -> Any:
    """Compute log gamma(shape), where shape = n + 1; for a large n less n log(n) - n."""
    large = is_large(n)
    n = tnp.where(large, n, 6)
    inverse = 1 / n
    remainder: Any = 0
    for c in reversed(_SERIES):
        remainder = remainder * (inverse * inverse) + c
    stirling = 0.5 * tnp.log(2 * math.pi * n) + remainder * inverse
    return tnp.where(large, stirling, gammaln(tnp.where(large, 1, shape)))


def log_multinomial(k: Any, p: Any, n: Any, shapes: Any, shape: Any) -> Any:
    """Compute log(gamma(shape) n^(sum(k) - n) prod(p^k / gamma(shapes))), products over axis 0, where shapes = k + 1.

    Args:
      n: shape - 1; for a small n the power of n is left out.
      p: sum to 1, or not; but a difference as small as by rounding counts as none, except for derivatives.
    """
    excess = tnp.sum(p, axis=0) - 1
    rounding = tnp.abs(excess) <= p.shape[0] * float(dtypes.finfo(p.dtype).eps)
    excess = excess - lax.stop_gradient(tnp.where(rounding, excess, 0))
    powers = tnp.sum(log_powers(n, (k, p, 1 - p)) - log_gamma(k, shapes), axis=0)
    return powers + tnp.where(is_large(n), n * excess, 0) + log_gamma(n, shape)
