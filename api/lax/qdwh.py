"""Polar decomposition by Halley's iteration with dynamic weights, which needs products and factorizations only.

Source: Nakatsukasa, Bai and Gygi 2010, "Optimizing Halley's iteration for computing the matrix polar decomposition";
for the pivots Nakatsukasa and Higham 2012, "Backward stability of iterations for computing the polar decomposition";
for the derivative Kenney and Laub 1991, "Polar decomposition and matrix sign function condition estimates".
"""

import operator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tapeless.control_flow.branches_and_loops import while_loop
from tapeless.custom.jvp import custom_jvp
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.norms import norm
from tapeless.tracer.primitives.contraction import full_matmul
from tapeless.tracer.primitives.factorization import qr
from tapeless.tracer.primitives.linalg import adjoint, check_dtype, cholesky, triangular_solve
from tapeless.tracer.primitives.shape import broadcasted_iota
from tapeless.tracer.primitives.spectral import eigh
from tapeless.tracer.types import aval_of

_STABLE_BY_CHOLESKY = 100  # weights up to which the step without a QR factorization is as accurate


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[Any, Any] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Decompose a matrix of full rank into x = u @ h, with orthonormal columns u and a positive semidefinite h.

    Args:
      x: [m, n], m not less than n, floating point of 32 or 64 bits, or complex.
      is_hermitian: that x is; nothing is made of it, as in JAX.
      max_iterations: steps at most, 10 if None.
      eps: the least singular value that is told from 0, relative to the largest; the dtype's if None. Steps end where u
        changes by less than (5 eps)^(1/3).
      dynamic_shape: numbers of rows and columns that count, traced or not; the others of x are taken for 0, and are 0
        in the results. None for all.
    Returns: (u [m, n], h [n, n], number of steps int32[], whether they ended before max_iterations, and with
      orthonormal columns: not so where a singular value is lost in rounding errors). Derivatives, in both modes, are
      those of the decomposition, and not of the steps.
    Raises: TypeError if x has another dtype, ValueError if it is no matrix or has more columns than rows.
    """
    aval = aval_of(x)
    if aval.ndim != 2 or aval.shape[0] < aval.shape[1]:
        raise ValueError(f"qdwh: a matrix [m, n] with m not less than n, not {aval}.")
    check_dtype("qdwh", aval, f"{aval}")
    operator.index(is_hermitian)
    steps = 10 if max_iterations is None else operator.index(max_iterations)
    noise = float(dtypes.finfo(aval.dtype).eps) if eps is None else float(eps)
    return _polar(tnp.asarray(x) if dynamic_shape is None else _masked(x, dynamic_shape), noise, steps)


def _masked(x: ArrayLike, sizes: tuple[Any, Any]) -> Array:
    shape = aval_of(x).shape
    inside = [broadcasted_iota(np.int32, shape, i) < n for i, n in enumerate(sizes)]
    return tnp.where(inside[0] & inside[1], x, 0)


@partial(custom_jvp, nondiff_argnums=(1, 2))
def _polar(x: Array, eps: float, steps: int) -> tuple[Array, Array, Array, Array]:
    if not x.size:
        return x, tnp.zeros((x.shape[1],) * 2, x.dtype), tnp.zeros((), np.int32), tnp.ones((), bool)
    bound = tnp.sqrt(norm(x, 1)) * tnp.sqrt(norm(x, np.inf))  # of the largest singular value
    u = x / tnp.where(bound == 0, 1, bound).astype(x.dtype)
    weights, least = _weights(eps, steps)
    going = tnp.ones((), bool)
    for w in weights:
        before, u = u, _step(u, w)
        going = ~(norm(u - before) <= least)

    def step(state: Any) -> Any:
        k, u, _ = state
        after = _step(u, _HALLEY)
        return k + 1, after, ~(norm(after - u) <= least)

    begin = (np.int32(len(weights)), u, going)
    k, u, going = while_loop(lambda state: state[2] & (state[0] < steps), step, begin)
    cubed = full_matmul(u, full_matmul(adjoint(u), u))
    # No singular value is still small, though steps do not change it much; columns of zeros do not count.
    size = norm(u)
    columns = tnp.sum(tnp.any(x != 0, 0), dtype=size.dtype)
    is_isometry = (norm(cubed - u) <= least) & (tnp.abs(size * size - columns) < 0.5)
    u = 1.5 * u - 0.5 * cubed  # a step of Newton and Schulz
    h = full_matmul(adjoint(u), x)
    return u, (h + adjoint(h)) / 2, k, is_isometry & ~going


class _Weights(NamedTuple):
    """Weights of one step, u (a + b u^H u) (1 + c u^H u)^-1."""

    a: float
    b: float
    c: float


_HALLEY = _Weights(3.0, 1.0, 3.0)


def _weights(eps: float, steps: int) -> tuple[list[_Weights], float]:
    """Choose the best weights while a singular value of eps grows to 1; and what a step changes when it is the last."""
    found: list[_Weights] = []
    low, tolerance = eps, 5 * eps
    while low + tolerance < 1 and len(found) < steps:
        square = low * low
        d = (4 * (1 / square - 1) / square) ** (1 / 3)
        root = (1 + d) ** 0.5
        a = root + (2 - d + 2 * (2 - square) / (square * root)) ** 0.5
        b = (a - 1) ** 2 / 4
        found.append(_Weights(a, b, a + b - 1))
        low = low * (a + b * square) / (1 + (a + b - 1) * square)
    return found, tolerance ** (1 / 3)


def _step(u: Array, weights: _Weights) -> Array:
    """Make one step, writing the inverse by a pivoted QR factorization, or by Cholesky's of a matrix close to 1."""
    a, b, c = weights
    rest, n = a - b / c, u.shape[1]
    identity = tnp.eye(n, dtype=u.dtype)
    if c > _STABLE_BY_CHOLESKY:
        # Pivoted, as else the error of small rows, of the identity, is that of large ones, and the step is not stable.
        q = qr(tnp.concatenate([c**0.5 * u, identity]), pivoting=True, full_matrices=False)[0]
        return b / c * u + rest / c**0.5 * full_matmul(q[:-n], adjoint(q[-n:]))
    factor = cholesky(c * full_matmul(adjoint(u), u) + identity, symmetrize_input=False)
    half = triangular_solve(factor, u, lower=True, transpose_a=True, conjugate_a=True)
    return b / c * u + rest * triangular_solve(factor, half, lower=True)


@_polar.defjvp
def _polar_jvp(eps: float, steps: int, primals: Any, tangents: Any) -> Any:
    """Differentiate x = u h: dx = du h + u dh, so that u^H du, antihermitian, solves a Sylvester equation with h."""
    (x,), (t,) = primals, tangents
    u, h, k, converged = _polar(x, eps, steps)
    v, s = eigh(h)
    least = 10 * float(dtypes.finfo(x.dtype).eps) * tnp.max(s, initial=0)
    inner = full_matmul(adjoint(u), t)
    sums = _inverse(s[:, None] + s, least).astype(x.dtype)
    between = full_matmul(full_matmul(adjoint(v), inner - adjoint(inner)), v) * sums
    turned = full_matmul(full_matmul(v, between), adjoint(v))
    inverse = full_matmul(v * _inverse(s, least).astype(x.dtype), adjoint(v))
    du = full_matmul(u, turned) + full_matmul(t - full_matmul(u, inner), inverse)
    dh = inner - full_matmul(turned, h)
    return (u, h, k, converged), (du, (dh + adjoint(dh)) / 2, k, converged)  # integers have no tangents


def _inverse(values: Any, least: Any) -> Array:
    """Invert values, to 0 those that are rounding errors."""
    some = values > least
    return tnp.where(some, 1 / tnp.where(some, values, 1), 0)
