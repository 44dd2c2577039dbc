"""Norms against NumPy, and their derivatives at kinks, in both modes."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

linalg = tnp.linalg
RNG = np.random.default_rng(0)
ORDERS = [None, 0, 1, 2, 3, 2.5, 0.5, -1, -2, np.inf, -np.inf]
MATRIX_ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]
ROWS = np.array([[3.0, 4.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    "x", [RNG.normal(size=5), RNG.normal(size=4) + 1j, np.arange(4.0)], ids=["real", "complex", "0"]
)
def test_vectors(x):
    for ord in ORDERS:
        with np.errstate(divide="ignore"):
            wanted = np.linalg.norm(x, ord)
        np.testing.assert_allclose(linalg.norm(x, ord), wanted, rtol=1e-12)
        np.testing.assert_allclose(linalg.vector_norm(x, ord=2 if ord is None else ord), wanted, rtol=1e-12)


@pytest.mark.parametrize("axis", [(0, 1), (2, 0), (-1, -2)])
def test_matrices(axis, rng: np.random.Generator):
    x = rng.normal(size=(2, 3, 4))
    for ord in MATRIX_ORDERS:
        for keepdims in (False, True):
            wanted = np.linalg.norm(x, ord, axis, keepdims)
            np.testing.assert_allclose(linalg.norm(x, ord, axis, keepdims), wanted, rtol=1e-12)
    np.testing.assert_allclose(linalg.matrix_norm(x, keepdims=True), np.linalg.matrix_norm(x, keepdims=True))


def test_axes(rng: np.random.Generator):
    x = rng.normal(size=(2, 3, 4))
    np.testing.assert_allclose(linalg.norm(x), np.linalg.norm(x))
    np.testing.assert_allclose(linalg.norm(x, keepdims=True), np.linalg.norm(x, keepdims=True))
    np.testing.assert_allclose(linalg.norm(x, 1, -2), np.linalg.norm(x, 1, -2))
    np.testing.assert_allclose(linalg.norm(x, axis=np.array([0, 1])), np.linalg.norm(x, axis=(0, 1)))
    np.testing.assert_allclose(linalg.vector_norm(x, axis=(0, 2)), np.linalg.vector_norm(x, axis=(0, 2)))


def test_dtypes():
    found = linalg.norm(tnp.full(3, 300, tnp.float16))  # the squares are no half precision numbers
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, 519.6, rtol=1e-3)
    assert linalg.norm(np.ones(2, np.complex64)).dtype == np.float32
    assert linalg.norm(tnp.arange(3)).dtype == np.float32


def test_no_elements():
    assert [float(linalg.norm(np.zeros(0), ord)) for ord in (None, 1, 3, np.inf, 0)] == [0, 0, 0, 0, 0]
    assert [float(linalg.norm(np.zeros((0, 2)), ord)) for ord in ("fro", "nuc", 1, 2, np.inf)] == [0, 0, 0, 0, 0]
    assert linalg.norm(np.zeros((0, 2)), -np.inf, -1).shape == (0,)
    message = "norm: there is no least of the sizes float64[2,0] over axes (1,), which have no elements."
    with raises(ValueError, message):
        linalg.norm(np.zeros((2, 0)), -np.inf, -1)
    for ord, shape in ((-1, (2, 0)), (-2, (2, 0)), (-np.inf, (0, 2))):
        with pytest.raises(ValueError, match="norm: there is no least"):
            linalg.matrix_norm(np.zeros(shape), ord=ord)


@pytest.mark.parametrize("ord", ORDERS)
def test_vectors_of_zeros_have_finite_derivatives(ord):
    """In both modes, which agree; those of a norm at 0 are 0."""

    def f(x):
        return linalg.norm(x, ord, axis=1)

    for x in (ROWS, ROWS + 0j):
        gradient = np.asarray(tl.grad(lambda x: f(x).sum())(x))
        pushed = np.asarray(tl.jvp(f, (x,), (np.ones_like(x),))[1])
        np.testing.assert_allclose(gradient.real.sum(1), pushed, atol=1e-12)
        np.testing.assert_array_equal(gradient[1], 0)
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("ord", MATRIX_ORDERS)
def test_matrices_of_zeros_have_gradient_zero(ord):
    gradient = tl.grad(lambda x: linalg.norm(x, ord))(np.zeros((2, 3)))
    np.testing.assert_array_equal(gradient, 0)
    assert tl.jvp(lambda x: linalg.norm(x, ord), (np.zeros((2, 3)),), (np.ones((2, 3)),))[1] == 0


def test_second_derivatives():
    x = np.array([3.0, 4.0])
    wanted = (np.eye(2) - np.outer(x, x) / 25) / 5
    np.testing.assert_allclose(tl.hessian(linalg.norm)(x), wanted, rtol=1e-12)
    np.testing.assert_array_equal(tl.hessian(linalg.norm)(np.zeros(2)), np.zeros((2, 2)))


def test_other_roots_of_squares():
    for f in (tnp.std, tnp.nanstd):
        np.testing.assert_array_equal(tl.grad(f)(np.ones(3)), 0)
    np.testing.assert_array_equal(tl.grad(lambda x: tnp.hypot(x, x).sum())(np.zeros(2)), 0)
    np.testing.assert_array_equal(tl.grad(lambda x: tnp.abs(x).sum())(np.zeros(2, complex)), 0)


def test_errors():
    with raises(ValueError, "vector_norm: vectors have no norm ord='fro': it is a number, or None for 2."):
        linalg.vector_norm(np.ones(3), ord="fro")
    with raises(
        ValueError,
        "matrix_norm: matrices have no norm ord='two': it is 'fro', 'nuc', 1, -1, 2, -2, inf, -inf or None.",
    ):
        linalg.matrix_norm(np.ones((3, 3)), ord="two")
    with raises(ValueError, "norm: vectors have no norm ord='fro': it is a number, or None for 2."):
        linalg.norm(np.ones(3), "fro")
    message = "norm: matrices have no norm ord=3: it is 'fro', 'nuc', 1, -1, 2, -2, inf, -inf or None."
    with raises(ValueError, message):
        linalg.norm(np.eye(3), 3)
    with raises(ValueError, "norm: of float64[2,2,2] ord=1 is not defined: pass axis, one of it or two."):
        linalg.norm(np.ones((2, 2, 2)), 1)
    with raises(ValueError, "norm: axis=(0, 1, 2) has 3 axes: vectors have one and matrices two."):
        linalg.norm(np.ones((2, 2, 2)), None, (0, 1, 2))
    with raises(ValueError, "norm: axis (0, 0) names an axis twice. The array is float64[3,3]."):
        linalg.norm(np.eye(3), None, (0, 0))
    with raises(ValueError, "matrix_norm: a matrix has at least two axes, [.., m, n]: float64[3]."):
        linalg.matrix_norm(np.ones(3))
