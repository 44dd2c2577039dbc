"""Rows of Hessenberg, tridiagonal and Schur forms."""

from typing import Any

import numpy as np
import scipy.linalg

from tapeless.tracer.primitives.spectral import hessenberg_p, schur_p, tridiagonal_p
from tests.samples.sample import Sample, f32

LAPACK = ("float32", "float64", "complex64", "complex128")
SQUARE = f32(4, 4) + np.diag(np.array([1.0, -2.0, 3.0, 0.0], np.float32))
BATCH = np.stack([SQUARE, SQUARE @ SQUARE])
COMPLEX = (SQUARE + 1j * f32(4, 4, seed=5)).astype(np.complex64)
RTOL = 1e-5  # products of reflections, and an iteration's, in another order


def each(x: Any, f: Any) -> tuple[Any, ...]:
    """f of every matrix."""
    if x.ndim == 2:
        return f(x)
    return tuple(np.stack(ys) for ys in zip(*[each(y, f) for y in x]))


def routine(name: str, x: Any) -> Any:
    return scipy.linalg.get_lapack_funcs(name, (x,))


def hessenberg(x: Any) -> tuple[Any, ...]:
    return each(x, lambda y: routine("gehrd", y)(y)[:-1])


def tridiagonal(x: Any, lower: bool) -> tuple[Any, ...]:
    name = "hetrd" if x.dtype.kind == "c" else "sytrd"
    return each(x, lambda y: routine(name, y)(y, lower=lower)[:-1])


def schur(x: Any, compute_schur_vectors: bool) -> tuple[Any, ...]:
    return each(x, lambda y: scipy.linalg.schur(y)[: 1 + compute_schur_vectors])


def bad(**params: Any) -> Any:
    return (
        ((f32(3, 2),), params, ValueError),
        ((f32(3),), params, ValueError),
        ((np.ones((2, 2), np.int32),), params, TypeError),
        ((np.ones((2, 2), np.float16),), params, TypeError),
    )


def rows(primitive: Any, reference: Any, **params: Any) -> list[Sample]:
    """A row for a matrix, for a batch, for a complex matrix, for one element."""
    operands = {"": SQUARE, "batch": BATCH, "complex": COMPLEX, "one": SQUARE[:1, :1]}
    given = "-".join(f"{name}={value}" for name, value in params.items())
    found: list[Sample] = []
    for label, x in operands.items():
        more = {"dtypes": LAPACK, "bad": bad(**params)} if not label else {}
        name = "-".join(filter(None, (given, label)))
        found.append(
            Sample(primitive, (x,), reference, params, differentiable=(), label=name, rtol=RTOL, **more)  # type: ignore
        )
    return found


EMPTY: Any = (((np.zeros((0, 0), np.float32),), {}, ValueError),)
ROWS = [
    *rows(hessenberg_p, hessenberg),
    Sample(hessenberg_p, (SQUARE[:2, :2],), hessenberg, differentiable=(), label="two", bad=EMPTY, rtol=RTOL),
    *rows(tridiagonal_p, tridiagonal, lower=True),
    *rows(tridiagonal_p, tridiagonal, lower=False),
    *rows(schur_p, schur, compute_schur_vectors=True),
    *rows(schur_p, schur, compute_schur_vectors=False),
]
