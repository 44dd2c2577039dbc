"""Backward errors of solvers and factorizations are at most ten times SciPy's, on ill-conditioned matrices.

`python -m tests.backward_errors` tries sizes from 5 to 200, and all dtypes.
"""

import numpy as np
import pytest

import tapeless as tl
from tests.backward_errors.judge import excess
from tests.backward_errors.matrices import KINDS, matrices
from tests.backward_errors.measures import residual


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_those_of_lapack(kind: str, dtype: str):
    assert excess(kind, 20, dtype) == []


@pytest.mark.parametrize("n", [10, 20])
def test_a_vandermonde_system(n: int):
    a, b = np.vander(np.linspace(0.1, 1, n)), np.ones((n, 1))
    for solve in (tl.numpy.linalg.solve, tl.jit(tl.numpy.linalg.solve)):
        assert residual(a, solve(a, b), b) < 1e-15  # inverses of blocks: 2e-5 at n = 20


def test_a_polar_factor_is_that_of_its_matrix():
    a = matrices("positive", 50, "complex64")["Hilbert"]
    inner = np.conj(tl.lax.linalg.qdwh(a)[0]).T @ a
    turned = np.linalg.norm(inner - np.conj(inner).T) / np.linalg.norm(inner)
    assert turned < 10 * np.finfo(np.float32).eps  # 3 eps; 27 without pivots, and 230 for 200 rows


def test_a_polar_factor_of_a_matrix_without_full_rank_has_not_converged():
    for kind, n, name in (("triangular", 20, "nearly singular"), ("general", 100, "Kahan")):
        assert not tl.lax.linalg.qdwh(matrices(kind, n, "float32")[name])[3]
