"""The multivariate normal distribution."""

import math
from typing import Any

from tapeless.scipy.special_functions.gamma_relatives import check_real
from tapeless.tracer import core
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.promotion import as_array, broadcast_to_shape, common_shape, promoted_inexact_dtypes
from tapeless.tracer.primitives.linalg import cholesky, triangular_solve

__all__ = ["logpdf", "pdf"]


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """Compute the logarithm of the multivariate normal density at x.

    Args:
      x: [.., n], or [..] if the mean is a number.
      mean: [.., n], or a number.
      cov: covariances [.., n, n], positive definite, or a number, the variance of every component.
      allow_singular: must be None. A singular covariance matrix gives nan.
    Returns: [..], the broadcast leading axes of x, mean and cov.
    Raises: ValueError if shapes do not fit; TypeError for complex numbers, and for matrices of half precision;
      NotImplementedError for `allow_singular`.
    """
    if allow_singular is not None:
        raise NotImplementedError("multivariate_normal.logpdf: singular covariances are not there.")
    x, mean, cov = map(as_array, promoted_inexact_dtypes("multivariate_normal.logpdf", x, mean, cov))
    check_real("multivariate_normal.logpdf", x)
    if not mean.ndim or not cov.ndim:
        return _of_equal_variances(x, mean, cov)
    if cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise ValueError(
            f"multivariate_normal.logpdf: mean [.., n] and cov [.., n, n], or a number, not {mean.aval} and {cov.aval}."
        )
    return _logpdf(x, mean, cov)


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Compute the multivariate normal density at x. Args, Returns, Raises: as for `logpdf`."""
    return tnp.exp(logpdf(x, mean, cov))


@core.compound
def _of_equal_variances(x: Any, mean: Any, variance: Any) -> Any:
    y, n = x - mean, mean.shape[-1] if mean.ndim else 1
    squares = tnp.sum(y * y, axis=-1) if mean.ndim else y * y
    return -0.5 * squares / variance - 0.5 * n * (math.log(2 * math.pi) + tnp.log(variance))


@core.compound
def _logpdf(x: Any, mean: Any, cov: Any) -> Any:
    y, factor = x - mean, cholesky(cov)
    batch, n = common_shape("multivariate_normal.logpdf", y.shape[:-1], cov.shape[:-2]), y.shape[-1]
    if cov.ndim == 2:  # one matrix: all vectors are columns
        columns = y.reshape(math.prod(batch), n).T
        white = triangular_solve(factor, columns, left_side=True, lower=True)
        squares = tnp.sum(white * white, axis=0).reshape(batch)
    else:
        factors = broadcast_to_shape(factor, (*batch, n, n))
        white = triangular_solve(factors, broadcast_to_shape(y, (*batch, n))[..., None], left_side=True, lower=True)
        squares = tnp.sum(white * white, axis=(-2, -1))
    logarithm = tnp.sum(tnp.log(tnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * squares - 0.5 * n * math.log(2 * math.pi) - logarithm


_complete_namespace(globals())
