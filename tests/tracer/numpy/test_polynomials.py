"""Roots and fits of polynomials that are traced, and their derivatives. Values are in tests/numpy_agreement."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp

pytestmark = pytest.mark.usefixtures("eager_by_steps")


@pytest.mark.parametrize("p", [[1, -6, 11, -6], [0, 0, 2, -8], [0, 1, 0, 0], [0, 0, 0, 3], [0, 0, 0, 0]])
def test_roots_of_what_is_traced(p):
    p = np.array(p, np.float64)
    found = np.asarray(tl.jit(lambda p: tnp.roots(p, strip_zeros=False))(p))
    wanted = np.roots(p)
    assert found.shape == (3,) and np.isnan(found.real).sum() == np.isnan(found.imag).sum() == 3 - len(wanted)
    np.testing.assert_allclose(np.sort_complex(found[~np.isnan(found)]), np.sort_complex(wanted), atol=1e-9)


def test_derivatives_of_roots_follow_the_coefficients():
    """Of p(z) = 0: dz = -(sum of dp_k z^k) / p'(z)."""
    p, t = np.array([1.0, -6.0, 11.0, -6.0]), np.array([0.3, -1.0, 0.2, 0.5])
    z, dz = tl.jvp(tnp.roots, (p,), (t,))
    np.testing.assert_allclose(dz, -np.polyval(t, z) / np.polyval(np.polyder(p), z), atol=1e-12)
    gradient = tl.grad(lambda p: tnp.real(tnp.roots(p, strip_zeros=False)).sum())(p)
    np.testing.assert_allclose(gradient, [-6.0, -1.0, 0.0, 0.0], atol=1e-8)  # of -p1 / p0
    again = tl.jacfwd(lambda z: tnp.poly(z))(np.array([1.0, 2.0]))
    np.testing.assert_allclose(again, [[0, 0], [-1, -1], [2, 1]])


def test_fits_are_differentiable():
    x, y = np.arange(6.0), np.random.default_rng(0).normal(size=6)
    t = np.ones(6) + y

    def f(y):
        return tnp.polyfit(x, y, 2)

    np.testing.assert_allclose(tl.jvp(f, (y,), (t,))[1], np.polyfit(x, t, 2), atol=1e-9)
    gradient = tl.grad(lambda y: f(y).sum())(y)
    np.testing.assert_allclose((np.asarray(gradient) * t).sum(), np.polyfit(x, t, 2).sum(), rtol=1e-9)


def test_leading_zeros():
    quotient, rest = tnp.polydiv(np.array([1.0, 2.0, 1.0]), np.array([1.0, 1.0]), trim_leading_zeros=True)
    assert quotient.tolist() == [1.0, 1.0] and rest.tolist() == [0.0]
    assert tnp.polymul(np.array([0.0, 1.0]), np.array([0.0, 0.0, 2.0]), trim_leading_zeros=True).tolist() == [2.0]
    assert tnp.polymul(np.array([0.0, 1.0]), np.array([2.0])).tolist() == [0.0, 2.0]
    with pytest.raises(TypeError, match="Leave out trim_leading_zeros"):
        tl.jit(lambda p: tnp.polymul(p, p, trim_leading_zeros=True))(np.ones(2))
    with pytest.raises(TypeError, match="strip_zeros=False"):
        tl.jit(tnp.roots)(np.ones(2))


def test_roots_that_are_infinite_or_nan():
    for zeros in ([np.inf, 1.0], [1.0, np.nan], [np.nan]):
        np.testing.assert_array_equal(tnp.poly(np.array(zeros)), np.poly(zeros))


def test_sums_of_stacks_of_one_degree():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(2.0).reshape(2, 1)
    np.testing.assert_array_equal(tnp.polyadd(x, y), np.polyadd(x, y))
    np.testing.assert_array_equal(tnp.polysub(y, x), np.polysub(y, x))


@pytest.mark.parametrize("f", [tnp.roots, tnp.polyder, tnp.polyint])
def test_coefficients_are_a_vector(f):
    with pytest.raises(ValueError, match=rf"{f.__name__}: coefficients must be a vector, not float32\[2,3\]\."):
        f(np.ones((2, 3), np.float32))
