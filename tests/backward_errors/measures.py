"""Backward errors, computed in extended precision."""

from typing import Any

import numpy as np


def wide(x: Any) -> Any:
    x = np.asarray(x)
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def times(x: Any, y: Any) -> Any:
    """x @ y in extended precision, by products in 64 bits, of which the first is exact and the others are small.

    Source: Ozaki, Ogita, Oishi and Rump 2012, "Error-free transformations of matrix multiplication".
    """
    (a, b), (c, d) = _parts(wide(x), -1), _parts(wide(y), 0)
    with np.errstate(invalid="ignore", over="ignore"):
        return wide(a @ c) + wide(a @ d + (b @ c + b @ d))


def _parts(x: Any, axis: int) -> tuple[Any, Any]:
    """Split x into numbers of few digits, of which sums of products along an axis are exact, and the rest."""
    if x.dtype.kind == "c":
        (a, b), (c, d) = _parts(x.real, axis), _parts(x.imag, axis)
        return a + 1j * c, b + 1j * d
    digits = (52 - int(np.ceil(np.log2(2 * max(x.shape[axis], 1))))) // 2  # twice as many terms for complex numbers
    with np.errstate(invalid="ignore"):
        step = np.ldexp(np.longdouble(1), np.frexp(np.abs(x).max(axis, keepdims=True, initial=0))[1] - digits)
        first = np.rint(x / step) * step
        return first.astype(np.float64), (x - first).astype(np.float64)


def size(x: Any) -> float:
    """The Frobenius norm; infinite for what is not finite, so that it is no small error."""
    found = float(np.sqrt((np.abs(wide(x)) ** 2).sum()))
    return found if np.isfinite(found) else np.inf


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(np.asarray(x), -1, -2))


def relative(difference: Any, scale: float) -> float:
    return size(difference) / scale if scale else size(difference)


def residual(a: Any, x: Any, b: Any) -> float:
    """The largest of the columns' |a x - b| / (|a| |x| + |b|). Source: Rigal and Gaches 1967."""
    a, x, b = map(wide, (a, x, b))
    columns = times(a, x) - b
    return max(relative(columns[:, i], size(a) * size(x[:, i]) + size(b[:, i])) for i in range(columns.shape[1]))


def product(a: Any, *factors: Any) -> float:
    """|a - factors' product| / |a|."""
    found = wide(factors[0])
    for x in factors[1:]:
        found = times(found, x)
    return relative(found - wide(a), size(a))


def orthonormal(q: Any) -> float:
    """How far columns are from orthonormal, for each."""
    q = wide(q)
    return size(times(adjoint(q), q) - np.eye(q.shape[1])) / q.shape[1] ** 0.5


def eigenpairs(a: Any, values: Any, vectors: Any, b: Any | None = None) -> float:
    """The largest |a v - l b v| / (|a| + |l| |b|) for v of length 1."""
    a, values, vectors = map(wide, (a, values, vectors))
    b = np.eye(len(a)) if b is None else wide(b)
    left, right = times(a, vectors), times(b, vectors) * values
    return max(
        relative(left[:, i] - right[:, i], (size(a) + abs(values[i]) * size(b)) * size(vectors[:, i]))
        for i in range(len(values))
    )


def least_squares(a: Any, x: Any, b: Any) -> float:
    """An estimate, within a factor of 2, of the least change of a of which x solves the problem, for the worst column.

    Source: Grcar, Saunders and Su 2007, "Estimates of optimal backward perturbations for linear least squares
    problems".
    """
    u, s, _ = np.linalg.svd(a.astype(np.complex128 if a.dtype.kind == "c" else np.float64), full_matrices=False)
    a, x, b = map(wide, (a, x, b))
    rest, lengths = b - times(a, x), [size(x[:, i]) for i in range(x.shape[1])]
    shifts = [relative(rest[:, i], length) for i, length in enumerate(lengths)]
    parts = [s / np.hypot(s, shift) * times(adjoint(u), rest[:, i]) for i, shift in enumerate(shifts)]
    return max(relative(part, length * size(a)) for part, length in zip(parts, lengths, strict=True))
