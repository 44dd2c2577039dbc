"""Bessel functions, exponential integrals, spherical harmonics, Owen's T and Faddeeva's w against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import tapeless as tl
from tapeless.scipy import special
from tests.close import close
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")


def test_bessel_functions():
    ss = pytest.importorskip("scipy.special")
    z = np.concatenate([np.linspace(-25, 25, 51), [1e-8, -1e-300, 0, np.nan]])
    close(tl.jit(lambda z: special.bessel_jn(z, v=10))(z), np.stack([ss.jv(k, z) for k in range(11)]), 1e-11, 1e-13)
    narrow = z[:51].astype(np.float32)
    found = special.bessel_jn(narrow, v=2)
    assert found.dtype == np.float32
    close(found[1], ss.jv(1, narrow.astype(float)), 1e-5, 1e-6)
    assert special.bessel_jn(0.5, v=0, n_iter=0).shape == (1,)
    with pytest.raises(ValueError, match="orders up to v=51 want"):
        special.bessel_jn(z, v=51)


@pytest.mark.parametrize("n_iter", [1, 7, 50, 300])
def test_bessel_functions_of_too_few_orders_are_nan(n_iter: int):
    """Orders above `n_iter` count as 0: where they may be above 0.01, no digit is sure. They count twice in the sum."""
    ss = pytest.importorskip("scipy.special")
    z = np.linspace(-2.5, 2.5, 101) * n_iter
    found = np.asarray(tl.jit(lambda z: special.bessel_jn(z, v=0, n_iter=n_iter)[0])(z))
    there = ~np.isnan(found)
    assert not there[0] and not there[-1] and there[50]
    np.testing.assert_allclose(found[there], ss.jv(0, z[there]), rtol=0, atol=0.02)


def test_exponential_integrals():
    ss = pytest.importorskip("scipy.special")
    values = [0, 1e-300, 1e-10, 0.1, 0.5, 1, 1 + 1e-9, 2, 10, 100, 700, np.inf, -1, np.nan, *np.linspace(0.01, 5, 20)]
    n, x = np.meshgrid(np.array([-1.0, 0, 1, 2, 3, 5, 10, 49]), values)
    close(tl.jit(special.expn)(n, x), ss.expn(n, x), 1e-11, 1e-290)
    # SciPy's series for large orders is short: here is one term more.
    close(special.expn(200, np.float64(100)), np.exp(-100) / 300 * (1 + 200 / 300**2 - 1.2e7 / 300**6), 1e-10)
    assert special.expn(2, np.ones(2, np.float32)).dtype == np.float32


def test_owens_t():
    ss = pytest.importorskip("scipy.special")
    h, a = np.meshgrid(
        np.concatenate([np.linspace(-9, 9, 19), [0, 30, np.inf, np.nan]]),
        np.array([0, 1e-8, 0.1, 0.5, 0.99, 1, 1.01, 2, 10, 1e5, np.inf, -0.3, -3, np.nan]),
    )
    close(tl.jit(special.owens_t)(h, a), ss.owens_t(h, a), 1e-8, 1e-300)  # SciPy's has 9 digits
    close(special.owens_t(-9.0, np.float64(1e-8)), np.exp(-40.5) * 1e-8 / (2 * np.pi), 1e-12)


def test_faddeevas_function(rng: np.random.Generator):
    ss = pytest.importorskip("scipy.special")
    upper = rng.normal(size=200) * 4 + 1j * np.abs(rng.normal(size=200)) * 4
    lower = rng.normal(size=50) - 1j * rng.uniform(0, 3, 50)
    z = np.concatenate([upper, lower, rng.normal(size=20) * 100, [0, 1j, 1e6 + 1j, 1e-9j]])
    found, right = np.asarray(tl.jit(special.wofz)(z)), ss.wofz(z)
    assert (np.abs(found - right) <= 1e-12 * np.abs(right)).all()
    assert special.wofz(np.float32([1])).dtype == np.complex64
    infinite = np.array([complex(-np.inf, -2), complex(np.inf, 0), complex(3, np.inf), complex(np.nan, 1)])
    np.testing.assert_array_equal(special.wofz(infinite), [0, 0, 0, complex(np.nan, np.nan)])
    slopes = tl.jvp(special.wofz, (infinite[:3],), (np.ones(3, complex),))[1]
    np.testing.assert_array_equal(slopes, np.zeros(3))


def test_spherical_harmonics(rng: np.random.Generator):
    ss = pytest.importorskip("scipy.special")
    n, m = np.meshgrid(np.arange(8), np.arange(-8, 9))
    theta, phi = rng.uniform(0, np.pi, n.shape), rng.uniform(-4, 8, n.shape)
    close(special.sph_harm_y(n, m, theta, phi), ss.sph_harm_y(n, m, theta, phi), 1e-11, 1e-13)
    traced = tl.jit(lambda n: special.sph_harm_y(n, 1, 0.3, 0.4, n_max=3))(np.array([2, 3, 4]))
    close(np.asarray(traced)[:2], ss.sph_harm_y(np.array([2, 3]), 1, 0.3, 0.4), 1e-5)
    assert np.isnan(traced[2]) and traced.dtype == np.complex64
    with pytest.raises(tl.errors.ConcretizationTypeError, match="Give n_max"):
        tl.jit(lambda n: special.sph_harm_y(n, 1, 0.3, 0.4))(2)
    with pytest.raises(NotImplementedError, match="diff_n=None"):
        special.sph_harm_y(1, 1, 0.3, 0.4, 1)  # pyright: ignore[reportArgumentType]


def test_associated_legendre_functions():
    ss = pytest.importorskip("scipy.special")
    z, orders = np.array([-1, -0.7, 0, 0.3, 1]), np.arange(7)
    m, n = np.meshgrid(orders, orders, indexing="ij")
    close(special.lpmn_values(6, 6, z, False), ss.lpmv(m[..., None], n[..., None], z), 1e-11, 1e-12)
    harmonics = ss.sph_harm_y(n[..., None], m[..., None], np.arccos(z), 0).real
    close(special.lpmn_values(6, 6, z, True), harmonics, 1e-11, 1e-12)
    assert special.lpmn_values(0, 0, np.float32([0.5]), False).dtype == np.float32
    with raises(ValueError, "lpmn_values: the highest order, m=1, and degree, n=2, must be the same, and at least 0."):
        special.lpmn_values(1, 2, z, False)
    with raises(ValueError, "lpmn_values: z must have one axis, not 0."):
        special.lpmn_values(1, 1, 0.5, False)


def test_derivatives():
    x, y = np.array([0.3, 2]), np.array([0.4, -0.4])
    cases: list[tuple[Any, Any]] = [
        (lambda z: special.bessel_jn(z, v=2), (np.array([0.3, 0]),)),
        (lambda x: special.expn(np.array([[0], [1], [3]]), x), (x,)),
        (special.owens_t, (x, np.array([0.5, 3]))),
        (lambda x, y: special.wofz(x + 1j * y).real, (x, y)),
        (lambda t, p: special.sph_harm_y(np.array([2, 3]), np.array([1, -2]), t, p).imag, (x, y)),
    ]
    for f, args in cases:
        tl.testing.check_grads(tl.jit(f), args, 1, rtol=1e-5, eps=1e-5)


def test_complex_numbers_are_refused():
    for f in (lambda z: special.bessel_jn(z, v=1), lambda z: special.expn(1, z), lambda z: special.owens_t(z, z)):
        with pytest.raises(TypeError, match="takes real numbers"):
            f(np.ones(2, np.complex64))


def test_spherical_harmonics_beyond_the_poles():
    """Beyond 0 to pi the polar angle is that of its cosine, as in SciPy; at 0 the derivative is that from within."""
    theta = np.array([-3.0, -0.5, 0.0, 1.0, 4.0, 7.0])
    for n, m in ((1, 1), (2, -1), (3, 2), (3, 3)):
        found = special.sph_harm_y(n, m, theta, 0.3)
        np.testing.assert_allclose(found, scipy.special.sph_harm_y(n, m, theta, 0.3), rtol=1e-12, atol=1e-15)
    slope = tl.jvp(lambda t: special.sph_harm_y(1, 1, t, 0.0).real, (0.0,), (1.0,))[1]
    np.testing.assert_allclose(slope, -np.sqrt(3 / (8 * np.pi)), rtol=1e-6)
