"""Rows of eigenvalues and singular values."""

from typing import Any

import numpy as np

from tapeless.tracer.primitives.spectral import eig_p, eigh_p, svd_p
from tests.samples.sample import Sample, f32

LAPACK = ("float32", "float64", "complex64", "complex128")
SQUARE = f32(3, 3) + np.diag(np.array([0.0, 2.0, 4.0], np.float32))
BATCH = np.stack([SQUARE, SQUARE @ SQUARE])
COMPLEX = (SQUARE + 1j * f32(3, 3, seed=5)).astype(np.complex64)
ROTATING = np.array([[0.0, 1.0, 0.3], [-1.5, 0.2, 0.0], [0.1, 0.4, 2.0]], np.float32)  # two eigenvalues are conjugated
TALL, WIDE = f32(4, 3, seed=2), f32(2, 4, seed=3)
RTOL = 1e-5  # an iteration's, in another library's LAPACK


def eigenvalues(x: Any, lower: bool, compute_v: bool) -> Any:
    uplo = "L" if lower else "U"
    if not compute_v:
        return np.linalg.eigvalsh(x, uplo)
    w, v = np.linalg.eigh(x, uplo)
    ours, _ = eigh_p.bind(x, lower=lower, compute_v=True)
    return v * phases(v, ours), w


def singular_values(x: Any, full_matrices: bool, compute_uv: bool, routine: str) -> Any:
    if not compute_uv:
        return np.linalg.svd(x, compute_uv=False)
    u, s, vh = np.linalg.svd(x, full_matrices)
    ours, _, ours_h = svd_p.bind(x, full_matrices=full_matrices, compute_uv=True, routine=routine)
    v = np.conj(np.swapaxes(vh, -1, -2))
    v = v * phases(v, np.conj(np.swapaxes(ours_h, -1, -2)))
    return u * phases(u, ours), s, np.conj(np.swapaxes(v, -1, -2))


def phases(theirs: Any, ours: Any) -> Any:
    """What turns their vectors, the columns, into the direction of ours: nobody prescribes it."""
    overlap = np.sum(np.conj(theirs) * np.asarray(ours), -2, keepdims=True)
    return overlap / np.abs(overlap)


def eigenvalues_of_any(x: Any, left: bool, right: bool, vector_derivatives: bool) -> Any:
    """NumPy's eigenvalues in the order of ours, which nobody prescribes, and its vectors, turned as ours are."""
    ours, *vectors = eig_p.bind(x, left=left, right=right, vector_derivatives=True)
    w, v = np.linalg.eig(x)
    order = np.argmin(np.abs(np.asarray(ours)[..., :, None] - w[..., None, :]), -1)
    w, v = np.take_along_axis(w, order, -1), np.take_along_axis(v, order[..., None, :], -1)
    duals = np.conj(np.swapaxes(np.linalg.inv(v), -1, -2))
    duals = duals / np.linalg.norm(duals, axis=-2, keepdims=True)
    wanted = [duals] * left + [v] * right
    found = [w, *[theirs * phases(theirs, own) for theirs, own in zip(wanted, vectors, strict=True)]]
    return tuple(y.astype(np.asarray(ours).dtype) for y in found)


def eig(label: str, x: Any, left: bool = False, right: bool = True, derivatives: bool = True, **options: Any) -> Sample:
    params = {"left": left, "right": right, "vector_derivatives": derivatives}
    return Sample(eig_p, (x,), eigenvalues_of_any, params, label=label, rtol=RTOL, **options)


def eigh(label: str, x: Any, lower: bool = True, compute_v: bool = True, **options: Any) -> Sample:
    params = {"lower": lower, "compute_v": compute_v}
    return Sample(eigh_p, (x,), eigenvalues, params, label=label, rtol=RTOL, **options)


def svd(
    label: str,
    x: Any,
    full_matrices: bool = False,
    compute_uv: bool = True,
    routine: str = "gesdd",
    **options: Any,
) -> Sample:
    params = {"full_matrices": full_matrices, "compute_uv": compute_uv, "routine": routine}
    return Sample(svd_p, (x,), singular_values, params, label=label, rtol=RTOL, **options)


EIG = {"left": False, "right": False, "vector_derivatives": False}
EIGH = {"lower": True, "compute_v": True}
SVD = {"full_matrices": False, "compute_uv": True, "routine": "gesdd"}
ROWS = [
    eigh(
        "",
        SQUARE,
        bad=(
            ((f32(3, 2),), EIGH, ValueError),
            ((f32(3),), EIGH, ValueError),
            ((np.ones((2, 2), np.int32),), EIGH, TypeError),
            ((np.ones((2, 2), np.float16),), EIGH, TypeError),
        ),
    ),
    eigh("upper", SQUARE, lower=False),
    eigh("batch", BATCH),
    eigh("values", SQUARE, compute_v=False, dtypes=LAPACK),
    # Differences of complex vectors are those of LAPACK's phases; their derivatives are tested in
    # tests/interpreters/rules/test_spectral.py.
    eigh("complex", COMPLEX, differentiable=()),
    eigh("complex-values", COMPLEX, lower=False, compute_v=False),
    eig(
        "",
        SQUARE,
        bad=(
            ((f32(3, 2),), EIG, ValueError),
            ((f32(3),), EIG, ValueError),
            ((np.ones((2, 2), np.int32),), EIG, TypeError),
            ((np.ones((2, 2), np.float16),), EIG, TypeError),
        ),
    ),
    eig("values", SQUARE, right=False, derivatives=False, dtypes=LAPACK),
    eig("rotating", ROTATING, left=True),
    eig("batch", np.stack([SQUARE, ROTATING]), left=True, right=False),
    eig("complex", COMPLEX, left=True),
    svd(
        "",
        SQUARE,
        bad=(
            ((f32(3),), SVD, ValueError),
            ((np.ones((2, 2), np.int32),), SVD, TypeError),
            ((np.ones((2, 2), np.float16),), SVD, TypeError),
        ),
    ),
    svd("tall", TALL),
    svd("wide", WIDE),
    svd("gesvd", WIDE, routine="gesvd"),
    svd("batch", BATCH, full_matrices=True),
    svd("full", TALL, full_matrices=True, differentiable=()),
    svd("values", TALL, compute_uv=False, dtypes=LAPACK),
    svd("complex", COMPLEX[:2], differentiable=()),
    svd("complex-values", COMPLEX[:, :2], compute_uv=False),
]
