"""Derivatives of eigenvalues and singular values where these are equal or 0, in both modes."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp

pytestmark = pytest.mark.usefixtures("eager_by_steps")

linalg = tnp.linalg
RNG = np.random.default_rng(0)
ONE = np.eye(3)
ROTATION = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
TWICE = ROTATION @ np.diag([1.0, 1.0, 2.0]) @ ROTATION.T  # an eigenvalue that is double but for rounding
RANK_ONE = np.outer([1.0, 2.0, 3.0], [1.0, -1.0])
T = RNG.normal(size=(3, 3))


def both_modes(f, x):
    """The gradient of f at x, after comparing it with forward mode; both are finite."""
    gradient = np.asarray(tl.grad(f)(x))
    rng = np.random.default_rng(0)
    t = rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if np.iscomplexobj(x) else 0)
    pushed = np.asarray(tl.jvp(f, (x,), (t,))[1])
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(pushed, np.sum(np.real(gradient * t)), rtol=1e-9, atol=1e-12)
    return gradient


@pytest.mark.parametrize("x", [ONE, TWICE, np.zeros((3, 3))], ids=["identity", "rotated", "zero"])
def test_functions_symmetric_in_equal_eigenvalues_have_their_gradient(x):
    np.testing.assert_allclose(both_modes(lambda a: linalg.eigvalsh(a).sum(), x), ONE, atol=1e-12)
    np.testing.assert_allclose(both_modes(lambda a: (linalg.eigvalsh(a) ** 2).sum(), x), 2 * x, atol=1e-12)
    np.testing.assert_allclose(both_modes(lambda a: (linalg.eigh(a)[0] ** 2).sum(), x), 2 * x, atol=1e-12)


def test_invariant_subspaces_have_their_gradient_where_eigenvalues_within_are_equal():
    """The projection on the vectors of the double eigenvalue, against differences."""

    def projected(a):
        v = linalg.eigh(a)[1][:, :2]
        return (v @ v.T * T).sum()

    def by_numpy(a):
        v = np.linalg.eigh((a + a.T) / 2)[1][:, :2]
        return (v @ v.T * T).sum()

    gradient = both_modes(projected, TWICE)
    h = 1e-6
    difference = (by_numpy(TWICE + h * T) - by_numpy(TWICE - h * T)) / (2 * h)
    np.testing.assert_allclose(np.sum(gradient * T), difference, rtol=1e-7)


@pytest.mark.parametrize("x", [ONE, TWICE, np.zeros((3, 3)), ONE + 0j], ids=["identity", "rotated", "zero", "complex"])
def test_eigenvectors_of_equal_eigenvalues_have_finite_derivatives(x):
    both_modes(lambda a: tnp.real(linalg.eigh(a)[1] * (T + 1j * T.T if np.iscomplexobj(x) else T)).sum(), x)
    hessian = tl.hessian(lambda a: (linalg.eigvalsh(tnp.real(a)) ** 2).sum())(x.real)
    assert np.isfinite(np.asarray(hessian)).all()


def test_the_norm_of_singular_values_at_zero_and_at_lower_rank():
    def nuclear(a):
        return linalg.norm(a, "nuc")

    np.testing.assert_array_equal(both_modes(nuclear, np.zeros((3, 2))), np.zeros((3, 2)))
    u, _, vh = np.linalg.svd(RANK_ONE)
    np.testing.assert_allclose(both_modes(nuclear, RANK_ONE), np.outer(u[:, 0], vh[0]), atol=1e-12)
    np.testing.assert_allclose(both_modes(lambda a: linalg.norm(a, 2), RANK_ONE), np.outer(u[:, 0], vh[0]), atol=1e-12)
    np.testing.assert_allclose(both_modes(lambda a: (linalg.svdvals(a) ** 2).sum(), RANK_ONE), 2 * RANK_ONE, atol=1e-12)
    np.testing.assert_allclose(both_modes(lambda a: linalg.norm(a, 2), ONE), ONE / 3, atol=1e-12)


def polar(a):
    u, _, vh = linalg.svd(a, full_matrices=False)
    return u @ vh


@pytest.mark.parametrize(
    "x", [2 * ONE, TWICE, np.vstack([ONE, T]), np.hstack([ONE, ONE])], ids=["identity", "twice", "m", "n"]
)
def test_the_polar_factor_does_not_depend_on_gaps(x, rng: np.random.Generator):
    """Equal singular values are no kink of it: the derivative is that of differences."""
    t, h = rng.normal(size=x.shape), 1e-6
    ut = tl.jvp(polar, (x,), (t,))[1]
    difference = (np.asarray(polar(x + h * t)) - np.asarray(polar(x - h * t))) / (2 * h)
    np.testing.assert_allclose(ut, difference, atol=1e-8)
    both_modes(lambda a: (polar(a) * t).sum(), x)


@pytest.mark.parametrize("x", [ONE, np.zeros((3, 2)), RANK_ONE, RANK_ONE.T, RANK_ONE + 0j])
def test_singular_vectors_at_equal_and_zero_values_have_finite_derivatives(x):
    def f(a):
        u, s, vh = linalg.svd(a, full_matrices=False)
        return tnp.real(u.sum() + vh[0].sum()) + s.sum()

    both_modes(f, x)


def test_gradients_of_the_product_of_a_singular_matrix():
    """With one singular value 0, its vectors say which sign it goes on with."""
    x = T - np.linalg.svd(T)[0][:, 2:] @ (np.linalg.svd(T)[1][2] * np.linalg.svd(T)[2][2:])

    def product(a):
        u, s, vh = linalg.svd(a)
        return (u * s @ vh * T).sum()

    np.testing.assert_allclose(both_modes(product, x), T, atol=1e-10)


def test_derivatives_of_complex_vectors_do_not_depend_on_their_phases(rng: np.random.Generator):
    x = T + 1j * rng.normal(size=(3, 3))
    t, h = rng.normal(size=(3, 3)) + 1j * T, 1e-6

    def projections(a):
        v = linalg.eigh(a)[1]
        u, _, vh = linalg.svd(a[:, :2], full_matrices=False)
        return v[:, :1] @ tnp.conj(v[:, :1].T), u[:, :1] @ vh[:1], u[:, :1] @ tnp.conj(u[:, :1].T)

    pushed = tl.jvp(projections, (x,), (t,))[1]
    for p, ahead, behind in zip(pushed, projections(x + h * t), projections(x - h * t)):
        np.testing.assert_allclose(p, (np.asarray(ahead) - np.asarray(behind)) / (2 * h), atol=1e-8)


def test_bases_of_full_matrices_have_no_derivative():
    message = "svd: the vectors of full_matrices=True have no derivative unless the matrix is square: float64\\[3,2\\]."
    with pytest.raises(NotImplementedError, match=message):
        tl.grad(lambda a: linalg.svd(a)[1].sum())(RANK_ONE)
