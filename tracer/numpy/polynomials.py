"""Polynomials as vectors of coefficients, the highest power first: arithmetic, calculus, roots, fits."""

import operator
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy import arithmetic
from tapeless.tracer.numpy.calculus import convolve
from tapeless.tracer.numpy.contraction import outer
from tapeless.tracer.numpy.creation import array, ones
from tapeless.tracer.numpy.decompositions import eigvals
from tapeless.tracer.numpy.indexing import take
from tapeless.tracer.numpy.joining import concatenate
from tapeless.tracer.numpy.matrices import eye, vander
from tapeless.tracer.numpy.promotion import (
    Operand,
    array_operand,
    as_array,
    broadcast_to_shape,
    cast,
    common_shape,
    concrete,
    inexact,
    mixing_inside,
    promoted_dtypes,
    promoted_inexact_dtypes,
)
from tapeless.tracer.numpy.reductions import argmax
from tapeless.tracer.numpy.shaping import atleast_1d, broadcast_to, matrix_transpose
from tapeless.tracer.numpy.sorting import argsort
from tapeless.tracer.numpy.systems import inv, lstsq
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.contraction import full_matmul
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import broadcasted_iota, full, reshape, slice_in_dim
from tapeless.tracer.types import aval_of

# ---- values and arithmetic -----------------------------------------------------------------------------------


@one_program
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Evaluate the polynomial with coefficients p, the highest power first, at x (Horner's rule).

    Args:
      p: [n, ...], numeric: the n coefficients along the first axis; the others hold several polynomials.
      x: numeric, of any shape that broadcasts with p[0].
      unroll: has no effect; JAX has this parameter.
    Returns: the broadcast shape, of the common dtype.
    Raises: ValueError if p has no axes, or the shapes do not broadcast.
    """
    coefficients, at = promoted_dtypes("polyval", array_operand("polyval", p), x)
    if coefficients.ndim == 0:
        raise ValueError(f"polyval: coefficients must be in an axis, the first, but they are {aval_of(coefficients)}.")
    return _polyval(coefficients, at)


@core.compound
def _polyval(p: Any, x: Any) -> Array:
    shape = common_shape("polyval", p.shape[1:], x.shape)
    at, found = broadcast_to_shape(x, shape), full(shape, 0, x.dtype)
    for k in range(p.shape[0]):
        found = lax.add(lax.mul(found, at), broadcast_to_shape(reshape(slice_in_dim(p, k, k + 1), p.shape[1:]), shape))
    return found


@one_program
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Add two polynomials: coefficients along the first axis, with the highest power first.

    Polynomials of one degree are added elementwise; else the one of lower degree broadcasts to the other axes of the
    other, as in JAX (NumPy adds a padded vector along the last axis).

    Raises: ValueError if they do not broadcast.
    """
    x, y = (atleast_1d(v) for v in promoted_dtypes("polyadd", a1, a2))
    if x.shape[0] == y.shape[0]:
        return arithmetic.add(x, y)
    short, long = sorted((x, y), key=lambda v: v.shape[0])
    short = broadcast_to(short, (short.shape[0], *long.shape[1:]))
    missing = full((long.shape[0] - short.shape[0], *long.shape[1:]), 0, long.dtype)
    return arithmetic.add(long, concatenate([missing, short]))


@one_program
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Subtract a2 from a1, polynomials: coefficients with the highest power first. Raises: as `polyadd`."""
    x, y = promoted_dtypes("polysub", a1, a2)
    return polyadd(x, arithmetic.negative(y))


@one_program
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Multiply two polynomials, vectors of coefficients with the highest power first.

    Args:
      a1: [m]. a2: [n].
      trim_leading_zeros: whether coefficients 0 of the highest powers are dropped first; both must be known.
    Returns: [m + n - 1].
    Raises: ValueError if they are no vectors with elements; ConcretizationTypeError if one to be trimmed is traced.
    """
    if trim_leading_zeros:
        a1, a2 = (_trimmed("polymul", v, 0.0) for v in (a1, a2))
    return convolve(a1, a2)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Divide two polynomials into quotient and remainder: coefficients with the highest power first.

    Args:
      u: [m]. v: [n], its first coefficient not 0.
      trim_leading_zeros: whether leading coefficients that are about 0 are dropped from the remainder, as in NumPy; it
        must be known.
    Returns: (quotient [m - n + 1], or a single 0 if v has more coefficients; remainder [m]), floating point.
    Raises: ValueError if they are no vectors with elements; ConcretizationTypeError if a trimmed remainder is traced.
    """
    x, y = (atleast_1d(w) for w in promoted_inexact_dtypes("polydiv", u, v))
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise ValueError(f"polydiv: polynomials are vectors with elements, not {x.aval} and {y.aval}.")
    quotient, rest = _polydiv(x, y)
    if trim_leading_zeros:
        rest = _trimmed("polydiv", rest, float(dtypes.finfo(rest.dtype).eps) ** 0.5)
    return quotient, rest


@core.compound
def _polydiv(u: Array, v: Array) -> tuple[Array, Array]:
    """Divide by long division, one coefficient of the quotient after the other."""
    n, found = v.shape[0], list[Array]()
    first = slice_in_dim(v, 0, 1)
    for k in range(u.shape[0] - n + 1):
        found.append(lax.div(slice_in_dim(u, k, k + 1), first))
        part = lax.sub(slice_in_dim(u, k, k + n), lax.mul(reshape(found[-1], ()), v))
        u = concatenate([slice_in_dim(u, 0, k), part, slice_in_dim(u, k + n, None)])
    return concatenate(found) if found else full((1,), 0, u.dtype), u


def _trimmed(name: str, p: ArrayLike, least: float) -> Array:
    """Drop leading coefficients that are at most `least`, but keep the last one."""
    known = concrete(name, p, "Leave out trim_leading_zeros.")
    first = int(np.argmax(np.abs(known) > least)) if np.any(np.abs(known) > least) else max(known.size - 1, 0)
    return slice_in_dim(array_operand(name, p), first, None)


@one_program
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Differentiate a polynomial m times: coefficients with the highest power first; floating point.

    Raises: ValueError if m is negative.
    """
    x, times = _vector("polyder", inexact("polyder", array_operand("polyder", p))), operator.index(m)
    if times < 0:
        raise ValueError(f"polyder: m must be at least 0, not {m}; polyint integrates.")
    for _ in range(times):
        n = x.shape[0]
        powers = np.arange(n - 1, 0, -1)
        x = lax.mul(slice_in_dim(x, 0, max(n - 1, 0)), cast(powers, x.dtype)) if n > 1 else full((0,), 0, x.dtype)
    return x


def _vector(name: str, p: Operand) -> Array:
    """Convert coefficients to a vector, a scalar to one element. Raises: ValueError for more axes."""
    x = atleast_1d(p)
    if x.ndim != 1:
        raise ValueError(f"{name}: coefficients must be a vector, not {x.aval}.")
    return x


@one_program
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """Integrate a polynomial m times: coefficients with the highest power first.

    Args:
      p: [n].
      k: constants of integration, m of them, that of the first integral first, or one for all; 0 if None.
    Returns: [n + m], floating point.
    Raises: ValueError if m is negative, p no vector, or for another number of constants.
    """
    order = operator.index(m)
    x, constants = promoted_inexact_dtypes("polyint", array_operand("polyint", p), 0 if k is None else array(k))
    x, constants = _vector("polyint", x), atleast_1d(constants)
    if order < 0 or constants.shape not in ((order,), (1,)):
        raise ValueError(f"polyint: {constants.aval} are not the constants of {order} integrals: 1, or as many.")
    for i in range(order):
        powers = np.arange(x.shape[0], 0, -1)
        at = i if constants.shape[0] > 1 else 0
        x = concatenate([lax.div(x, cast(powers, x.dtype)), slice_in_dim(constants, at, at + 1)])
    return as_array(x)


# ---- roots ---------------------------------------------------------------------------------------------------


def poly(seq_of_zeros: ArrayLike) -> Array:
    """Compute the polynomial with given roots and leading coefficient 1, or the characteristic polynomial of a matrix.

    Args:
      seq_of_zeros: [n] roots, or [n, n], a matrix, whose eigenvalues are the roots.
    Returns: [n + 1] coefficients, the highest power first, floating point; complex for a matrix. 1 if there is no root.
    Raises: ValueError for other shapes.
    """
    x = atleast_1d(inexact("poly", array_operand("poly", seq_of_zeros)))
    if x.ndim == 2 and x.shape[0] == x.shape[1]:
        x = eigvals(x)
    if x.ndim != 1:
        raise ValueError(f"poly: roots are a vector, or the eigenvalues of a square matrix: {x.aval}.")
    return _poly(x) if x.size else full((), 1, x.dtype)


@core.compound
def _poly(x: Array) -> Array:
    found = full((1,), 1, x.dtype)
    for k in range(x.shape[0]):
        zero = full((1,), 0, x.dtype)  # not multiplied by the root: 0 times infinity is nan
        product = lax.mul(found, reshape(slice_in_dim(x, k, k + 1), ()))
        found = lax.sub(concatenate([found, zero]), concatenate([zero, product]))
    return found


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Find the roots of a polynomial, a vector of coefficients with the highest power first.

    They are the eigenvalues of its companion matrix (Horn and Johnson 1999, pp. 146-7), as in NumPy.

    Args:
      p: [n].
      strip_zeros: whether coefficients 0 of the highest powers are dropped, in which case p must be known; else there
        are n - 1 roots, nan for the missing ones.
    Returns: [n - 1], less one for each dropped coefficient; complex, in no order.
    Raises: ValueError if p is no vector; ConcretizationTypeError if it is traced and `strip_zeros`.
    """
    x = _vector("roots", inexact("roots", array_operand("roots", p)))
    if not strip_zeros:
        return _padded_roots(x) if x.size > 1 else full((0,), 0, dtypes.complex_of(x.dtype))
    known = concrete("roots", p, "Pass strip_zeros=False, which gives nan for missing roots.").ravel()
    first = np.flatnonzero(known)
    return _roots(slice_in_dim(x, int(first[0]) if first.size else x.size, None))


@core.compound
def _roots(p: Array) -> Array:
    """Compute the roots as eigenvalues of the companion matrix; the first coefficient is not 0."""
    n = p.shape[0] - 1
    if n < 1:
        return full((0,), 0, dtypes.complex_of(p.dtype))
    row = lax.neg(lax.div(slice_in_dim(p, 1, None), reshape(slice_in_dim(p, 0, 1), ())))
    return eigvals(concatenate([reshape(row, (1, n)), eye(n - 1, n, dtype=p.dtype)]))


@core.compound
def _padded_roots(p: Array) -> Array:
    """Compute the roots, nan for missing ones: leading zeros, moved to the end, make roots 0, the least ones."""
    n = p.shape[0]
    some = lax.ne(p, 0)
    missing = lax.convert_element_type(argmax(some), np.int32)
    none = lax.eq(reduce_sum(lax.convert_element_type(some, np.int32), (0,)), 0)
    p = arithmetic.select(none, full((n,), 1, p.dtype), p)
    order = arithmetic.remainder(lax.add(broadcasted_iota(np.int32, (n,), 0), missing), n)
    found = _roots(take(p, order, mode="clip"))
    found = take(found, argsort(lax.abs(found), descending=True), mode="clip")
    missing = arithmetic.select(none, n, missing)
    there = lax.lt(broadcasted_iota(np.int32, (n - 1,), 0), lax.sub(n - 1, missing))
    return arithmetic.select(there, found, complex(np.nan, np.nan))


# ---- fitting -------------------------------------------------------------------------------------------------


@mixing_inside
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """Fit a polynomial of degree `deg` to the points (x, y), by least squares.

    Args:
      x: [m]. y: [m], or [m, k] for k polynomials.
      rcond: singular values up to `rcond` times the largest count as 0; m times the dtype's eps if None.
      full: whether to return the other results of `lstsq`, too.
      w: [m], weights of the residuals, not squared.
      cov: whether to return the covariances of the coefficients, too: scaled by the sum of squares over m - deg - 1, or
        "unscaled", for weights that are inverse standard deviations.
    Returns: the coefficients [deg + 1] or [deg + 1, k], the highest power first; with `full` also the sums of squares
      of residuals, the rank, the singular values of the scaled Vandermonde matrix, and rcond; else with `cov` also
      [deg + 1, deg + 1], or [deg + 1, deg + 1, k].
    Raises: ValueError if deg is negative or shapes do not fit, or there are too few points for a scaled covariance.
    """
    at, values = (array_operand("polyfit", v) for v in promoted_inexact_dtypes("polyfit", x, y))
    order = operator.index(deg) + 1
    if order < 1 or at.ndim != 1 or not at.size or values.ndim not in (1, 2) or at.shape[0] != values.shape[0]:
        raise ValueError(f"polyfit: deg={deg} must not be negative, and {at.aval} and {values.aval} be points.")
    left, right = _weighed(vander(at, order), values, w)
    least = at.shape[0] * float(dtypes.finfo(at.dtype).eps) if rcond is None else rcond
    scale = lax.root_of_squares(reduce_sum(lax.square(lax.abs(left)), (0,)))
    left = arithmetic.divide(left, scale)
    found, squares, rank, sizes = lstsq(left, right, least)
    found = arithmetic.divide(found, scale if values.ndim == 1 else reshape(scale, (order, 1)))
    if full:
        return found, squares, rank, sizes, array(least)
    if not cov:
        return found
    inverse = arithmetic.divide(inv(full_matmul(matrix_transpose(left), left)), outer(scale, scale))
    if cov == "unscaled":
        factor = ones(squares.shape, squares.dtype)
    elif at.shape[0] <= order:
        raise ValueError(f"polyfit: {at.shape[0]} points do not scale a covariance of {order} coefficients.")
    else:
        factor = lax.div(squares, float(at.shape[0] - order))
    if values.ndim == 1:
        return found, lax.mul(inverse, reshape(factor, ()))
    return found, arithmetic.multiply(reshape(inverse, (order, order, 1)), factor)


def _weighed(left: Array, right: Array, w: ArrayLike | None) -> tuple[Array, Array]:
    if w is None:
        return left, right
    weights = cast(array_operand("polyfit", w), left.dtype)
    if weights.shape != (left.shape[0],):
        raise ValueError(f"polyfit: weights must be a vector [{left.shape[0]}], not {weights.aval}.")
    column = reshape(weights, (weights.shape[0], 1))
    return arithmetic.multiply(left, column), arithmetic.multiply(right, column if right.ndim == 2 else weights)
