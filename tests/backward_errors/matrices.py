"""Ill-conditioned matrices of n rows, by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as sl

Matrix = Any


def _random(n: int, seed: int) -> Matrix:
    return np.random.default_rng(seed).standard_normal((n, n))


def _turned(values: Any, seed: int, other: int | None = None) -> Matrix:
    """U diag(values) V^T, for random orthogonal U, and V = U if `other` is None."""
    n = len(values)
    u = np.linalg.qr(_random(n, seed))[0]
    v = u if other is None else np.linalg.qr(_random(n, other))[0]
    return (u * values) @ v.T


def _kahan(n: int, angle: float = 1.2) -> Matrix:
    """Kahan's matrix, triangular and graded, which QR with column pivots does not show to be singular."""
    s, c = np.sin(angle), np.cos(angle)
    return (np.triu(np.full((n, n), -c), 1) + np.eye(n)) * (s ** np.arange(n))[:, None]


def _graded(n: int) -> Matrix:
    steps = 10.0 ** np.linspace(0, -12, n)
    return steps[:, None] * _random(n, 1) * steps[::-1]


GENERAL: dict[str, Callable[[int], Matrix]] = {
    "random": lambda n: _random(n, 0),
    "Vandermonde": lambda n: np.vander(np.linspace(0.1, 1, n)),
    "Hilbert": sl.hilbert,
    "Kahan": _kahan,
    "Kahan transposed": lambda n: _kahan(n).T,
    "graded": _graded,
    "nearly singular": lambda n: _turned([1.0] * (n - 1) + [1e-15], 2, 3),
    "geometric values": lambda n: _turned(10.0 ** np.linspace(0, -14, n), 4, 5),
    "Jordan": lambda n: np.eye(n) * 0.5 + np.diag(np.ones(n - 1), 1),
    "large and small": lambda n: _turned(np.geomspace(1e8, 1e-8, n), 6, 7),
}
HERMITIAN: dict[str, Callable[[int], Matrix]] = {
    "random": lambda n: _random(n, 0) + _random(n, 0).T,
    "Hilbert": sl.hilbert,
    "clustered": lambda n: _turned([1.0] * (n // 2) + [-1e-9] * (n - n // 2), 1),
    "indefinite": lambda n: _turned(np.geomspace(1, 1e-14, n) * (-1.0) ** np.arange(n), 2),
    "graded": lambda n: _symmetric(np.geomspace(1, 1e-10, n)),
}
# Definite also after rounding to 32 bits: eigenvalues of 1e-5 and more, relative to the largest.
POSITIVE: dict[str, Callable[[int], Matrix]] = {
    "random": lambda n: _random(n, 0) @ _random(n, 0).T + np.eye(n),
    "geometric values": lambda n: _turned(np.geomspace(1, 1e-4, n), 3),
    "Kahan": lambda n: _kahan(n, 1.5).T @ _kahan(n, 1.5) + 1e-4 * np.eye(n),
    "Hilbert": lambda n: sl.hilbert(n) + 1e-4 * np.eye(n),
}
# Of norms up to 5, for functions whose values overflow elsewhere.
SMALL: dict[str, Callable[[int], Matrix]] = {
    "random": lambda n: _random(n, 0) / n**0.5,
    "antisymmetric": lambda n: 3 * (_random(n, 1) - _random(n, 1).T) / n**0.5,
    "Hilbert": sl.hilbert,
    "Jordan": lambda n: np.eye(n) * 0.5 + np.diag(np.ones(n - 1), 1),
    "positive": lambda n: _turned(np.geomspace(4, 1e-6, n), 2),
}


def _symmetric(scales: Any) -> Matrix:
    n = len(scales)
    return np.sqrt(scales)[:, None] * (_random(n, 5) + _random(n, 5).T + 2 * n * np.eye(n)) * np.sqrt(scales)


KINDS = {
    "general": GENERAL,
    "hermitian": HERMITIAN,
    "positive": POSITIVE,
    "small": SMALL,
    "triangular": {name: lambda n, f=f: _triangle(f(n)) for name, f in GENERAL.items()},
}


def _triangle(x: Matrix) -> Matrix:
    """The upper triangle; 0 on the diagonal, as where elements underflow, becomes 1."""
    x = np.triu(x)
    return x + np.diag(np.diag(x) == 0)


def matrices(kind: str, n: int, dtype: str) -> dict[str, Matrix]:
    """All matrices of a kind, rounded to a dtype; complex ones with phases, which leave their condition."""
    found = {name: make(n) for name, make in KINDS[kind].items()}
    if dtype.startswith("complex"):
        left, right = np.exp(2j * np.pi * np.random.default_rng(9).random((2, n)))
        right = right if kind == "general" else left.conj()
        found = {name: left[:, None] * x * right for name, x in found.items()}
    rounded = {name: x.astype(dtype) for name, x in found.items()}
    return {name: (x + x.conj().T) / 2 if kind in ("hermitian", "positive") else x for name, x in rounded.items()}
