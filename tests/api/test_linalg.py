"""Triangular factors and systems as functions of matrices."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
POSITIVE = A @ A.T
B = RNG.normal(size=(3, 2))


def solved(a, b):
    """A positive definite system, by its factor."""
    factor = lax.linalg.cholesky(a)
    half = lax.linalg.triangular_solve(factor, b, left_side=True, lower=True)
    return lax.linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)


def test_a_system_by_its_factor():
    np.testing.assert_allclose(solved(POSITIVE, B), np.linalg.solve(POSITIVE, B), rtol=1e-10)
    np.testing.assert_allclose(tl.jit(solved)(POSITIVE, B), np.linalg.solve(POSITIVE, B), rtol=1e-10)


def test_its_derivatives_are_those_of_the_inverse(rng: np.random.Generator):
    inverse = np.linalg.inv(POSITIVE)
    gradient = tl.grad(lambda a: solved(a, B).sum())(POSITIVE)
    wanted = -np.outer(inverse @ np.ones(3), inverse @ B.sum(1))
    np.testing.assert_allclose(gradient, (wanted + wanted.T) / 2, rtol=1e-9)
    t = rng.normal(size=(3, 3))
    t = t + t.T
    pushed = tl.jvp(lambda a: solved(a, B), (POSITIVE,), (t,))[1]
    np.testing.assert_allclose(pushed, -inverse @ t @ inverse @ B, rtol=1e-9)


def test_gradient_of_a_log_determinant():
    def log_det(a):
        return 2 * tnp.log(tnp.diagonal(lax.linalg.cholesky(a))).sum()

    np.testing.assert_allclose(tl.grad(log_det)(POSITIVE), np.linalg.inv(POSITIVE), rtol=1e-9)
    hessian = tl.hessian(log_det)(POSITIVE)
    inverse = np.linalg.inv(POSITIVE)
    wanted = -0.5 * (np.einsum("il,jk->ijkl", inverse, inverse) + np.einsum("ik,jl->ijkl", inverse, inverse))
    np.testing.assert_allclose(hessian, wanted, rtol=1e-8, atol=1e-12)


def test_complex_factor_and_its_derivative(rng: np.random.Generator):
    c = A + 1j * rng.normal(size=(3, 3))
    x, t = c @ c.conj().T, rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    t = t + t.conj().T
    np.testing.assert_allclose(lax.linalg.cholesky(x), np.linalg.cholesky(x), rtol=1e-10, atol=1e-12)
    central = (np.linalg.cholesky(x + 1e-6 * t) - np.linalg.cholesky(x - 1e-6 * t)) / 2e-6
    np.testing.assert_allclose(tl.jvp(lax.linalg.cholesky, (x,), (t,))[1], central, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("conjugate_a", [True, False])
@pytest.mark.parametrize("transpose_a", [True, False])
def test_complex_systems(left_side, transpose_a, conjugate_a, rng: np.random.Generator):
    c = np.triu(A + 1j * rng.normal(size=(3, 3)))
    b = (B if left_side else B.T) + 0j
    op = c.T if transpose_a else c
    op = op.conj() if conjugate_a else op
    found = lax.linalg.triangular_solve(c, b, left_side=left_side, transpose_a=transpose_a, conjugate_a=conjugate_a)
    np.testing.assert_allclose(op @ found if left_side else found @ op, b, rtol=1e-10, atol=1e-12)


def test_vmap_of_systems():
    batch = np.stack([POSITIVE, POSITIVE + np.eye(3)])
    found = tl.vmap(solved, (0, None))(batch, B)
    np.testing.assert_allclose(found, [np.linalg.solve(a, B) for a in batch], rtol=1e-10)


def test_as_solver_of_an_implicit_system():
    def f(b):
        return lax.custom_linear_solve(lambda x: POSITIVE @ x, b, lambda _, b: solved(POSITIVE, b), symmetric=True)

    np.testing.assert_allclose(tl.jacrev(lambda b: f(b[:, None])[:, 0])(B[:, 0]), np.linalg.inv(POSITIVE), rtol=1e-9)


def test_errors():
    with pytest.raises(ValueError, match=r"cholesky: the matrix must be square, \[.., n, n\]: float64\[3,2\]\."):
        lax.linalg.cholesky(B)
    with pytest.raises(ValueError, match="axis -2 of the right side must have 3 elements: "):
        lax.linalg.triangular_solve(A, B.T, left_side=True)
