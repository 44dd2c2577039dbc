"""Zeta and polygamma functions against SciPy, where sums need care: at negative, large and infinite operands."""

import numpy as np
import pytest
import scipy.special

import tapeless as tl
from tapeless.tracer.primitives import special

EXPONENTS = [1.0001, 1.1, 1.5, 2, 3, 4.5, 7, 10, 21, 50.5, 100]
PLACES = [0.1, 0.5, 1, 1.5, 2.5, 5, 9, 11, 40, 300, 1e4, 1e8, 1e15]


@pytest.mark.parametrize(("dtype", "ulps"), [(np.float64, 8), (np.float32, 4)])
def test_zeta(dtype, ulps):
    """What a dtype cannot hold is 0 or infinite."""
    x, q = (v.ravel().astype(dtype) for v in np.meshgrid(EXPONENTS, PLACES))
    exact = scipy.special.zeta(x.astype(float), q.astype(float))
    limits = np.finfo(dtype)
    held = (exact > limits.tiny) & (exact < limits.max)
    found = np.asarray(special.zeta(x, q))
    np.testing.assert_allclose(found[held], exact[held], rtol=ulps * limits.eps)
    assert np.all(found[exact < limits.tiny] < limits.tiny) and np.all(np.isinf(found[exact > limits.max]))


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 2e-13), (np.float32, 1e-5)])
def test_zeta_below_zero(dtype, rtol):
    """SciPy sums from q to 9; the series of XLA begins with ten terms, and is wrong below -9."""
    x = np.array([2, 4, 2, 3, 3, 7, 2, 20, 6], dtype)
    q = np.array([-10.5, -2.25, -0.125, -0.25, -1e-5, -3.0009765625, -1000.5, -50.25, -0.9375], dtype)
    np.testing.assert_allclose(special.zeta(x, q), scipy.special.zeta(x.astype(float), q.astype(float)), rtol=rtol)
    odd = dtype(3), np.array([-10.5, -2.5], dtype)  # the sums of both sides cancel at half-integers
    np.testing.assert_allclose(special.zeta(*odd), scipy.special.zeta(3.0, [-10.5, -2.5]), rtol=rtol)


def test_limits_of_zeta():
    inf, nan = np.inf, np.nan
    rows = [
        (inf, 0.5, inf), (inf, 1, 1), (inf, 2, 0), (inf, inf, 0), (2, inf, 0), (1, 2, inf), (1, inf, inf),
        (0.5, 2, nan), (2, 0, inf), (2, -3, inf), (2.5, -0.5, nan), (2.5, -1, inf), (nan, 1, nan), (2, nan, nan),
        (2, -inf, nan), (1e30, 0.9, inf), (1e30, 1e30, 0), (1e30, 1, 1),
    ]  # fmt: skip
    x, q, expected = np.array(rows).T
    for dtype in (np.float64, np.float32, np.float16):
        with np.errstate(over="ignore"):
            x_, q_ = x.astype(dtype), q.astype(dtype)
        np.testing.assert_array_equal(special.zeta(x_, q_), expected.astype(dtype))


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-13), (np.float32, 6e-6)])
def test_polygamma(dtype, rtol):
    """Of half-integers below zero SciPy's functions of even order have no digits: these are mpmath's."""
    orders, places = [0, 1, 2, 3, 5, 10, 20, 21, 30], [0.1, 0.5, 1, 3, 9.5, 30, 1e3, 1e6, -0.25, -1.5, -10.5]
    n, x = (v.ravel().astype(dtype) for v in np.meshgrid(orders, places))
    expected = scipy.special.polygamma(n.astype(int), x.astype(float))
    held = (abs(expected) > np.finfo(dtype).tiny) & (abs(expected) < 1e30)
    held &= (n % 2 == 1) | (x > -1)
    np.testing.assert_allclose(np.asarray(special.polygamma(n, x))[held], expected[held], rtol=rtol)
    n, x = np.array([[10, -1.5], [20, -1.5], [20, -10.5]], dtype).T
    expected = [-156.229596593232995, -10709198259.1241325, -0.000157492176490495206]
    np.testing.assert_allclose(special.polygamma(n.copy(), x.copy()), expected, rtol=rtol)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 2e-14), (np.float32, 1e-5)])
def test_polygamma_of_large_orders(dtype, rtol):
    """The factorial, or the power of x, is no number, though their product is. These values are mpmath's."""
    n, x = np.array([[35, 3], [40, 100], [100, 20], [150, 50]], dtype).T
    expected = [6.88464079953532466e22, -2.47553943861773081e-34, -3.70797541633782713e26, -1717510.4520846583]
    np.testing.assert_allclose(special.polygamma(n.copy(), x.copy()), expected, rtol=rtol)


def test_limits_of_polygamma():
    n, x = np.array([[0, 0], [1, 0], [2, 0], [3, -4], [2, np.inf], [0, np.inf], [-1, 2], [1.5, 2], [np.inf, 2]]).T
    found = special.polygamma(n.copy(), x.copy())
    np.testing.assert_array_equal(found, [-np.inf, np.inf, -np.inf, np.inf, 0, np.inf, np.nan, np.nan, np.nan])
    assert special.polygamma(np.ones((0, 2)), np.ones((0, 2))).shape == (0, 2)


def test_derivatives_of_gammaln_below_zero():
    """They are zeta functions there: the second and third derivative at -10.5 and 1e30, in both modes."""
    x = np.array([-10.5, 1e30, 2.5])
    second, third = tl.grad(tl.grad(special.lgamma)), tl.jvp
    np.testing.assert_allclose(tl.vmap(second)(x), scipy.special.polygamma(1, x), rtol=1e-13)
    found = third(tl.vmap(second), (x,), (np.ones(3),))[1]
    np.testing.assert_allclose(found, scipy.special.polygamma(2, x), rtol=1e-12)
