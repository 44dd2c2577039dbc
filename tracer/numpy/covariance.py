"""Covariances and correlations of variables, which are the rows or columns of matrices."""

from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.arithmetic import absolute, real, select
from tapeless.tracer.numpy.matrices import diagonal
from tapeless.tracer.numpy.promotion import array_operand, broadcast_to_shape, cast, inexact, promoted_inexact_dtypes
from tapeless.tracer.numpy.reductions import wide
from tapeless.tracer.numpy.statistics import mean, quotient
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.contraction import dot_general
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, concatenate, full, reshape, transpose
from tapeless.tracer.types import aval_of


@one_program
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Estimate the covariance matrix of variables, the rows of m and y (columns if not `rowvar`), over n - 1.

    Args:
      m, y: [variables, n observations], or [n] for one variable; those of y are added to those of m.
      bias: divide by n instead; ddof: by n - ddof.
      fweights: how often each observation was made, integers; aweights: how much each counts. Both not negative.
      dtype: floating point or complex, in which the result is computed.
    Returns: [variables, variables], a scalar for one variable.
    Raises: ValueError if m or y has more than two axes, or weights are not one for each observation; TypeError if
      `dtype` is not floating point or complex, or `fweights` are not integers.
    """
    less = (0 if bias else 1) if ddof is None else ddof
    return cast(*_covariance("cov", m, y, rowvar, less, fweights, aweights, dtype))


def _covariance(
    name: str, m: Any, y: Any, rowvar: bool, less: float, fweights: Any, aweights: Any, dtype: Any
) -> tuple[Array, np.dtype[Any]]:
    """`cov` for the function `name`, in messages; `less` is subtracted from n. Half precision is computed in float32.

    Returns: the covariances; the dtype of the result.
    """
    x = _variables(name, m, rowvar, first=True)
    if y is not None and x.shape[0]:
        x, other = promoted_inexact_dtypes(name, x, _variables(name, y, rowvar, first=False))
        if x.shape[1] != other.shape[1]:
            given = f"{aval_of(m)} has {x.shape[1]}, {aval_of(y)} has {other.shape[1]}"
            raise ValueError(f"{name}: the numbers of observations differ: {given}.")
        x = concatenate([x, other], 0)
    if dtype is not None:
        x = cast(x, _checked_inexact(name, dtype))
    elif aweights is not None:
        x, aweights = promoted_inexact_dtypes(name, x, array_operand(name, aweights))
    result, x = x.dtype, wide(x)
    if fweights is None and aweights is None:
        found = _cov(x, ddof=less)
    else:
        weights = [_observations(name, x, which, w) for which, w in (("fweights", fweights), ("aweights", aweights))]
        found = _weighted_cov(x, *weights, ddof=less)
    return reshape(found, ()) if found.shape == (1, 1) else found, result


def _variables(name: str, m: ArrayLike, rowvar: bool, first: bool) -> Array:
    """Return variables as rows. As in NumPy, a second operand of one row is always one variable."""
    x = inexact(name, array_operand(name, m))
    if x.ndim > 2:
        raise ValueError(f"{name}: variables are the rows of a matrix, not {x.aval}.")
    as_rows = x.ndim < 2 or rowvar or (not first and x.shape[0] == 1)
    x = reshape(x, (1, x.size)) if x.ndim < 2 else x
    return x if as_rows else transpose(x, (1, 0))


def _checked_inexact(name: str, dtype: Any) -> np.dtype[Any]:
    wanted = dtypes.canonical(dtype)
    if not dtypes.is_inexact(wanted):
        raise TypeError(f"{name}: dtype must be floating point or complex, not {wanted}.")
    return wanted


def _observations(name: str, x: Array, which: str, weights: ArrayLike | None) -> Array:
    """Return weights of the observations of x [variables, observations], as real numbers; ones if there are none."""
    real = dtypes.real_part_dtype(x.dtype)
    if weights is None:
        return full((x.shape[1],), 1, real)
    w = array_operand(name, weights)
    if w.shape != (x.shape[1],):
        raise ValueError(f"{name}: {which} must be one for each of the {x.shape[1]} observations, not {w.aval}.")
    if which == "fweights" and not dtypes.is_integer(w.dtype):
        raise TypeError(f"{name}: fweights must be integers, not {w.aval}.")
    return cast(absolute(w), real)


@core.compound
def _cov(x: Array, *, ddof: float) -> Array:
    centred = lax.sub(x, broadcast_to_shape(mean(x, 1, keepdims=True), x.shape))
    return quotient(_products(centred, centred), x.shape[1] - ddof)


@core.compound
def _weighted_cov(x: Array, fweights: Array, aweights: Array, *, ddof: float) -> Array:
    weights = lax.mul(fweights, aweights)
    total = reduce_sum(weights, (0,))
    shares = broadcast_in_dim(lax.convert_element_type(weights, x.dtype), x.shape, (1,))
    sums = reduce_sum(lax.mul(x, shares), (1,))
    centre = lax.div(sums, lax.convert_element_type(total, x.dtype))
    centred = lax.sub(x, broadcast_in_dim(centre, x.shape, (0,)))
    less = lax.div(lax.mul(reduce_sum(lax.mul(weights, aweights), (0,)), float(ddof)), total)
    count = lax.sub(total, less)
    count = select(lax.gt(count, 0), count, float("nan"))
    return lax.div(_products(lax.mul(centred, shares), centred), lax.convert_element_type(count, x.dtype))


def _products(x: Array, y: Array) -> Array:
    """Multiply x by the conjugate transpose of y."""
    conjugate = lax.conj(y) if dtypes.is_complex(y.dtype) else y
    return dot_general(x, conjugate, (((1,), (1,)), ((), ())))


@one_program
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: DTypeLike | None = None) -> Array:
    """Estimate the correlation matrix of variables: covariances over standard deviations, clipped to [-1, 1].

    Args, Returns, Raises: as for `cov`.
    """
    c, result = _covariance("corrcoef", x, y, rowvar, 1, None, None, dtype)
    return cast(lax.div(c, c) if not c.ndim else _correlations(c), result)


@core.compound
def _correlations(c: Array) -> Array:
    deviation = lax.sqrt(diagonal(real(c)))
    rows, columns = (lax.convert_element_type(broadcast_in_dim(deviation, c.shape, (d,)), c.dtype) for d in (0, 1))
    found = lax.div(lax.div(c, rows), columns)
    if not dtypes.is_complex(c.dtype):
        return lax.clamp(-1.0, found, 1.0)
    return lax.complex(*(lax.clamp(-1.0, part, 1.0) for part in (lax.real(found), lax.imag(found))))
