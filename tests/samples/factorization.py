"""Rows of factors of general matrices, and of what follows from them."""

from typing import Any

import numpy as np
import scipy.linalg

from tapeless.tracer.primitives.factorization import adjugate_p, det_p, geqrf_p, least_squares_p, lu_p, pinv_p, qr_p
from tests.samples.sample import Sample, f32

LAPACK = ("float32", "float64", "complex64", "complex128")
SQUARE = f32(3, 3) + np.diag(np.array([1.0, -2.0, 3.0], np.float32))
BATCH = np.stack([SQUARE, SQUARE @ SQUARE])
COMPLEX = (SQUARE + 1j * f32(3, 3, seed=5)).astype(np.complex64)
TALL, WIDE = f32(4, 3, seed=2), f32(2, 4, seed=3)
NO_MATRIX = ((f32(3),), (np.ones((2, 2), np.int32),), (np.ones((2, 2), np.float16),))
NO_SQUARE = ((f32(3, 2),), *NO_MATRIX)


def factors(x: Any) -> Any:
    """Gaussian elimination by the largest element of the column."""
    if x.ndim > 2:
        return tuple(np.stack(ys) for ys in zip(*map(factors, x)))
    x, (m, n) = np.array(x), x.shape
    rows, pivots = np.arange(m, dtype=np.int32), np.zeros(min(m, n), np.int32)
    for i in range(min(m, n)):
        # LAPACK's measure of a complex number
        pivots[i] = p = i + np.argmax(np.abs(x[i:, i].real) + np.abs(x[i:, i].imag))
        x[[i, p]], rows[[i, p]] = x[[p, i]], rows[[p, i]]
        x[i + 1 :, i] /= x[i, i]
        x[i + 1 :, i + 1 :] -= np.outer(x[i + 1 :, i], x[i, i + 1 :])
    return x, pivots, rows


def orthogonal(x: Any, full_matrices: bool, pivoting: bool) -> Any:
    if not pivoting:
        return tuple(np.linalg.qr(x, "complete" if full_matrices else "reduced"))
    if x.ndim > 2:
        return tuple(np.stack(ys) for ys in zip(*[orthogonal(y, full_matrices, pivoting) for y in x]))
    q, r, places = scipy.linalg.qr(x, mode="full" if full_matrices else "economic", pivoting=True)
    return q, r, places.astype(np.int32)


def qr(label: str, x: Any, full_matrices: bool = False, pivoting: bool = False, **options: Any) -> Sample:
    params = {"full_matrices": full_matrices, "pivoting": pivoting}
    return Sample(qr_p, (x,), orthogonal, params, label=label, rtol=1e-5, **options)


def reflections(x: Any) -> Any:
    packed, factors = np.linalg.qr(x, "raw")
    return np.swapaxes(packed, -1, -2), factors


def adjugate(x: Any) -> Any:
    return np.linalg.det(x)[..., None, None] * np.linalg.inv(x)


def least_squares(x: Any, b: Any, rtol: Any) -> Any:
    inverse = np.linalg.pinv(x, rtol[..., 0, 0])
    return inverse @ b, inverse


def pseudo_inverse(x: Any, rtol: Any, hermitian: bool) -> Any:
    return np.linalg.pinv(x, rtol[..., 0, 0], hermitian)


def bad(*cases: Any, **params: Any) -> Any:
    """Operands that are no matrices: of the wrong shape first, of the wrong dtype last."""
    return tuple(
        (args, params, TypeError if args[0].ndim == 2 and args[0].dtype != np.float32 else ValueError) for args in cases
    )


PINV, RTOL = {"hermitian": False}, np.full((1, 1), 1e-5, np.float32)
SINGULAR_VALUES_1_2_4 = np.broadcast_to(np.linalg.qr(SQUARE)[0] * np.array([1, 2, 4], np.float32), (2, 3, 3))
ROWS = [
    # Sums of products, in another order.
    Sample(lu_p, (SQUARE,), factors, dtypes=LAPACK, bad=bad(*NO_MATRIX), rtol=1e-5),
    Sample(lu_p, (TALL,), factors, label="tall", rtol=1e-5),
    Sample(lu_p, (WIDE,), factors, label="wide", rtol=1e-5),
    Sample(lu_p, (BATCH,), factors, label="batch", rtol=1e-5),
    Sample(lu_p, (COMPLEX,), factors, label="complex", rtol=1e-5),
    qr("", SQUARE, full_matrices=True, dtypes=LAPACK, bad=bad(*NO_MATRIX, full_matrices=True, pivoting=False)),
    qr("tall", TALL),
    qr("wide", WIDE),
    qr("full", TALL, full_matrices=True),
    qr("full-complex", COMPLEX[:, :1], full_matrices=True),
    qr("complex", COMPLEX),
    qr("pivoting", TALL, pivoting=True, dtypes=LAPACK),
    qr("pivoting-full", TALL, full_matrices=True, pivoting=True),
    qr("pivoting-wide", WIDE, pivoting=True),
    qr("pivoting-batch", BATCH, pivoting=True),
    qr("pivoting-complex", COMPLEX, pivoting=True),
    *[
        Sample(geqrf_p, (x,), reflections, differentiable=(), label=label, rtol=1e-5, **more)  # type: ignore
        for label, x, more in (
            ("square", SQUARE, {"dtypes": LAPACK, "bad": bad(*NO_MATRIX)}),
            ("tall", TALL, {}),
            ("wide", WIDE, {}),
            ("batch", BATCH, {}),
            ("complex", COMPLEX, {}),
        )
    ],
    Sample(det_p, (SQUARE,), np.linalg.det, dtypes=LAPACK, bad=bad(*NO_SQUARE), rtol=1e-5),
    Sample(det_p, (BATCH,), np.linalg.det, label="batch", rtol=1e-5),
    Sample(det_p, (COMPLEX,), np.linalg.det, label="complex", rtol=1e-5),
    Sample(adjugate_p, (SQUARE,), adjugate, dtypes=LAPACK, bad=bad(*NO_SQUARE), rtol=1e-5),
    Sample(adjugate_p, (COMPLEX,), adjugate, label="complex", rtol=1e-5),
    Sample(
        pinv_p,
        (TALL, RTOL),
        pseudo_inverse,
        PINV,
        differentiable=(0,),
        dtypes=("float32", "float64"),
        bad=(
            *bad(*[(x, RTOL) for (x,) in NO_MATRIX], **PINV),
            ((TALL, RTOL[0]), PINV, TypeError),
            ((TALL, np.float64(RTOL)), PINV, TypeError),
        ),
        rtol=1e-5,
    ),
    Sample(pinv_p, (WIDE, RTOL), pseudo_inverse, PINV, differentiable=(0,), label="wide", rtol=1e-5),
    Sample(pinv_p, (COMPLEX, RTOL), pseudo_inverse, PINV, differentiable=(0,), label="complex", rtol=1e-5),
    Sample(
        pinv_p,
        (SINGULAR_VALUES_1_2_4, np.array([0.1, 0.3], np.float32)[:, None, None]),
        pseudo_inverse,
        PINV,
        differentiable=(),  # differences leave the matrices of the same rank
        label="batch",
        rtol=1e-5,
    ),
    Sample(
        pinv_p,
        (SQUARE + SQUARE.T, RTOL),
        pseudo_inverse,
        {"hermitian": True},
        differentiable=(),  # differences leave the Hermitian matrices
        label="hermitian",
        rtol=1e-5,
    ),
    Sample(
        least_squares_p,
        (TALL, f32(4, 2, seed=7), RTOL),
        least_squares,
        differentiable=(0, 1),
        dtypes=("float32", "float64"),
        bad=(((TALL, f32(3, 2), RTOL), {}, TypeError), ((TALL, np.ones((4, 2)), RTOL), {}, TypeError)),
        rtol=1e-5,
    ),
    *[
        Sample(least_squares_p, (x, b, RTOL), least_squares, differentiable=(0, 1), label=label, rtol=1e-5)
        for label, x, b in (
            ("wide", WIDE, f32(2, 3, seed=7)),
            ("complex", COMPLEX, COMPLEX[:, :2]),
        )
    ],
    Sample(
        least_squares_p,
        (SINGULAR_VALUES_1_2_4, SINGULAR_VALUES_1_2_4[..., :1], np.array([0.1, 0.3], np.float32)[:, None, None]),
        least_squares,
        differentiable=(),  # differences leave the matrices of the same rank
        label="batch",
        rtol=1e-5,
    ),
]
