"""Rows of triangular factors and systems."""

from typing import Any

import numpy as np

from tapeless.tracer.primitives.linalg import cholesky_p, triangular_solve_p
from tests.samples.sample import Sample, f32

FACTOR = np.tril(f32(3, 3)) + 2 * np.eye(3, dtype=np.float32)
POSITIVE = FACTOR @ FACTOR.T
BATCH = np.stack([POSITIVE, POSITIVE + np.eye(3, dtype=np.float32)])
MATRIX = f32(3, 3) + 3 * np.eye(3, dtype=np.float32)
COMPLEX = (MATRIX + 1j * f32(3, 3, seed=5)).astype(np.complex64)
PARAMS = {"left_side": True, "lower": True, "transpose_a": False, "unit_diagonal": False}


def lower_factor(x: Any) -> Any:
    """Cholesky's factor of the Hermitian matrix whose lower triangle x has."""
    return np.linalg.cholesky(np.tril(x) + np.conj(np.swapaxes(np.tril(x, -1), -1, -2)))


def solved(a: Any, b: Any, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool) -> Any:
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    return (
        np.linalg.solve(a, b)
        if left_side
        else np.swapaxes(np.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)), -1, -2)
    )


def system(label: str, **flags: bool) -> Sample:
    b = f32(3, 2, seed=3) if flags.get("left_side", True) else f32(2, 3, seed=3)
    return Sample(triangular_solve_p, (MATRIX, b), solved, {**PARAMS, **flags}, linear_in=(1,), label=label, rtol=1e-5)


ROWS = [
    Sample(
        cholesky_p,
        (POSITIVE,),
        lower_factor,
        dtypes=("float32", "float64"),
        bad=(
            ((f32(3, 2),), {}, ValueError),
            ((f32(3),), {}, ValueError),
            ((np.ones((2, 2), np.int32),), {}, TypeError),
        ),
        rtol=1e-5,  # sums of products, in another order
    ),
    Sample(cholesky_p, (BATCH,), lower_factor, label="batch", rtol=1e-5),
    # Differences would leave the Hermitian matrices; tests/api/test_linalg.py has the derivative.
    Sample(cholesky_p, (COMPLEX @ COMPLEX.conj().T,), lower_factor, differentiable=(), label="complex", rtol=1e-5),
    Sample(
        triangular_solve_p,
        (MATRIX, f32(3, 2, seed=3)),
        solved,
        PARAMS,
        linear_in=(1,),
        dtypes=("float32", "float64", "complex64", "complex128"),
        bad=(
            ((f32(3, 2), f32(3, 2)), PARAMS, ValueError),
            ((MATRIX, f32(2, 3)), PARAMS, ValueError),
            ((MATRIX, f32(2, 3, 2)), PARAMS, ValueError),
            ((MATRIX, f32(3, 2).astype(np.float64)), PARAMS, TypeError),
            ((np.ones((2, 2), np.int32), np.ones((2, 2), np.int32)), PARAMS, TypeError),
        ),
        rtol=1e-5,
    ),
    system("upper", lower=False),
    system("transposed", transpose_a=True),
    system("right", left_side=False),
    system("right-transposed", left_side=False, transpose_a=True, lower=False),
    system("unit", unit_diagonal=True),
    Sample(triangular_solve_p, (COMPLEX, COMPLEX[:, :2]), solved, PARAMS, linear_in=(1,), label="complex", rtol=1e-5),
]
