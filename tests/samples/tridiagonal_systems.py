"""Rows of tridiagonal systems."""

from typing import Any

import numpy as np

from tapeless.tracer.primitives.linalg import tridiagonal_solve_p
from tests.samples.sample import Sample, f32

PARAMS = {"perturb_singular": False}
DIAGONALS = (f32(4), f32(4, seed=1) + 3, f32(4, seed=2))
B = f32(4, 2, seed=3)
BATCH = tuple(np.stack([x, x[::-1]]) for x in (*DIAGONALS, B))
COMPLEX = tuple((x + 1j * x[::-1] / 2).astype(np.complex64) for x in (*DIAGONALS, B))


def matrix(dl: Any, d: Any, du: Any) -> Any:
    """The matrix of three diagonals."""
    n = d.shape[-1]
    out = np.zeros((*d.shape, n), np.result_type(dl, d, du))
    i = np.arange(n)
    out[..., i, i] = d
    out[..., i[1:], i[:-1]], out[..., i[:-1], i[1:]] = dl[..., 1:], du[..., :-1]
    return out


def solved(dl: Any, d: Any, du: Any, b: Any, perturb_singular: bool) -> Any:
    return np.linalg.solve(matrix(dl, d, du), b)


def row(label: str, args: Any, perturb: bool = False, **options: Any) -> Sample:
    params = {"perturb_singular": perturb}
    return Sample(tridiagonal_solve_p, tuple(args), solved, params, linear_in=(3,), label=label, rtol=1e-5, **options)


ROWS = [
    row(
        "",
        (*DIAGONALS, B),
        dtypes=("float32", "float64", "complex64", "complex128"),
        bad=(
            ((*DIAGONALS, B[:3]), PARAMS, ValueError),
            ((*DIAGONALS, B[:, 0]), PARAMS, ValueError),
            ((DIAGONALS[0][1:], *DIAGONALS[1:], B), PARAMS, ValueError),
            ((*DIAGONALS, B.astype(np.float64)), PARAMS, TypeError),
            (tuple(np.ones(x.shape, np.float16) for x in (*DIAGONALS, B)), PARAMS, TypeError),
        ),
    ),
    row("batch", BATCH),
    row("complex", COMPLEX),
    row("one", [x[:1] for x in (*DIAGONALS, B)]),
    row("perturbed", (*DIAGONALS, B), perturb=True),
]
