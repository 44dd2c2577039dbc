"""Factorizations on the GPU: products of the factors give the matrix again, whatever signs a library chooses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless.numpy as tnp
from tapeless import lax
from tests.gpu.comparing import TF32, on

linalg = lax.linalg
RNG = np.random.default_rng(0)
DTYPES = ["float32", "float64", "complex64", "complex128"]
TALL, WIDE, SQUARE, LARGE = (2, 5, 3), (2, 3, 5), (2, 5, 5), (1, 60, 40)


def adjoint(x: Any) -> Any:
    return tnp.conj(tnp.swapaxes(x, -1, -2))


def by_lu(x: Any) -> Any:
    factors, _, permutation = linalg.lu(x)
    k = min(x.shape[-2:])
    lower = tnp.tril(factors[..., :k], -1) + tnp.eye(x.shape[-2], k, dtype=x.dtype)
    return tnp.take_along_axis(x, permutation[..., None], -2), lower @ tnp.triu(factors[..., :k, :])


def by_qr(x: Any) -> Any:
    q, r = linalg.qr(x, full_matrices=False)
    return x, q @ r


def by_qr_with_pivots(x: Any) -> Any:
    q, r, places = linalg.qr(x, full_matrices=False, pivoting=True)
    return tnp.take_along_axis(x, places[..., None, :], -1), q @ r


def by_eigh(x: Any) -> Any:
    x = x + adjoint(x)
    v, w = linalg.eigh(x)
    return x, (v * w[..., None, :]) @ adjoint(v)


def by_eig(x: Any) -> Any:
    w, left, right = linalg.eig(x)
    return x @ right, right * w[..., None, :], adjoint(left) @ x, w[..., :, None] * adjoint(left)


def by_svd(x: Any) -> Any:
    u, s, vh = linalg.svd(x, full_matrices=False)
    return x, (u * s[..., None, :]) @ vh


def by_qr_iteration(x: Any) -> Any:
    u, s, vh = linalg.svd(x, full_matrices=True, algorithm=linalg.SvdAlgorithm.QR)
    k = s.shape[-1]
    return (
        x,
        (u[..., :k] * s[..., None, :]) @ vh[..., :k, :],
        adjoint(vh) @ vh,
        tnp.eye(vh.shape[-1]) + 0 * x[..., :1, :1],
    )


def by_tridiagonal_solve(x: Any) -> Any:
    d = x[..., 1] + 8
    y = linalg.tridiagonal_solve(x[..., 0], d, x[..., 2], x)
    above, below = x[..., :-1, 2, None] * y[..., 1:, :], x[..., 1:, 0, None] * y[..., :-1, :]
    rows = [(0, 0)] * (x.ndim - 2)
    return x, d[..., None] * y + tnp.pad(above, [*rows, (0, 1), (0, 0)]) + tnp.pad(below, [*rows, (1, 0), (0, 0)])


CASES: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
    *((f, shape) for f in (by_lu, by_qr, by_svd, by_qr_iteration) for shape in (TALL, WIDE, SQUARE, LARGE)),
    *((f, SQUARE) for f in (by_qr_with_pivots, by_eigh, by_eig)),
    *((by_tridiagonal_solve, (2, n, 3)) for n in (1, 2, 3, 9)),
]


@pytest.mark.parametrize(("f", "shape"), CASES, ids=lambda x: x.__name__ if callable(x) else str(x))
def test_factors_give_the_matrix(f: Callable[..., Any], shape: tuple[int, ...], device: Any):
    for dtype in DTYPES:
        x = (RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if "complex" in dtype else 0)).astype(dtype)
        found = on(device, f, x)
        tolerance = TF32 if dtype in ("float32", "complex64") else 1e-11  # the products are by matrix units
        for y, z in zip(found[::2], found[1::2], strict=True):
            np.testing.assert_allclose(z, y, rtol=tolerance, atol=tolerance * np.abs(y).max())
