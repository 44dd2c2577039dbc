"""Accuracy of the compositions, over ranges that the rows in tests/samples do not reach, and the ends of domains."""

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import tapeless as tl
from tapeless.tracer.primitives import integrals, special

# As documented in lowering/rules/special.py: far in the tails, or where 1 - P cancels, digits are lost.
_INCOMPLETE = {np.float64: 1e-9, np.float32: 5e-4}


def near_the_peak(dtype: Any) -> tuple[Any, Any]:
    """a from 0.1 to 1e5, and x within some standard deviations."""
    rng = np.random.default_rng(0)
    a = 10 ** rng.uniform(-1, 5, 400)
    return a.astype(dtype), np.abs(a + 2 * np.sqrt(a) * rng.normal(size=400)).astype(dtype)


@pytest.mark.parametrize("dtype", _INCOMPLETE)
@pytest.mark.parametrize(
    ("f", "reference"),
    [(special.igamma, scipy.special.gammainc), (special.igammac, scipy.special.gammaincc)],
    ids=["igamma", "igammac"],
)
def test_incomplete_gamma(f: Any, reference: Any, dtype: Any):
    a, x = near_the_peak(dtype)
    np.testing.assert_allclose(f(a, x), reference(a.astype(float), x.astype(float)), rtol=_INCOMPLETE[dtype])


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_upper_incomplete_gamma_of_small_orders(dtype: Any, rtol: float):
    """Where both the order and the result are small, 1 - P would have no digits."""
    rng = np.random.default_rng(0)
    a, x = 10 ** rng.uniform(-12, 0.5, 2000), 10 ** rng.uniform(-12, 1.2, 2000)
    a, x = (
        np.append(a, [0.5, 0.49999, 1e-8, 0.3, 0.3]).astype(dtype),
        np.append(x, [1, 1, 1, 1, 1 - 1e-6]).astype(dtype),
    )
    np.testing.assert_allclose(
        special.igammac(a, x), scipy.special.gammaincc(a.astype(float), x.astype(float)), rtol=rtol
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_digamma_at_its_pole_at_zero(dtype: Any):
    x = np.array([0.0, -0.0, -1.0, 1.0], dtype)
    expected = scipy.special.digamma(x.astype(float))
    np.testing.assert_allclose(special.digamma(x), expected, rtol=1e-3 if dtype is np.float16 else 1e-6)
    assert special.digamma(dtype(0.0)) == -np.inf


LARGE = [1e6, 2e6, 1e7, 1e8, 1e12]


@pytest.mark.parametrize("a", LARGE)
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 5e-6)])
def test_incomplete_gamma_of_large_orders(a: float, dtype: Any, rtol: float):
    """Both tails, across the middle: series and fraction would need a million terms, as SciPy's beyond 4.5 do."""
    x = (a + np.sqrt(a) * np.linspace(-4, 4, 17)).astype(dtype)
    orders = np.full_like(x, a)
    wide = orders.astype(float), x.astype(float)
    np.testing.assert_allclose(special.igamma(orders, x), scipy.special.gammainc(*wide), rtol=rtol)
    np.testing.assert_allclose(special.igammac(orders, x), scipy.special.gammaincc(*wide), rtol=rtol)


@pytest.mark.parametrize("a", LARGE[2:4])
def test_slopes_of_incomplete_gamma_of_large_orders(a: float):
    """Central differences, whose own error is 2e-6 of the slope."""
    x, h = a + np.sqrt(a) * np.linspace(-3, 3, 7), 1e-3 * np.sqrt(a)
    expected = (scipy.special.gammainc(a + h, x) - scipy.special.gammainc(a - h, x)) / (2 * h)
    np.testing.assert_allclose(special.igamma_grad_a(np.full_like(x, a), x), expected, rtol=1e-5)
    quantile_slope = -expected / scipy.stats.gamma.pdf(x, a)
    np.testing.assert_allclose(special.random_gamma_grad(np.full_like(x, a), x), quantile_slope, rtol=1e-5)


@pytest.mark.parametrize("ratio", [0.98, 0.99, 1.01, 1.02])
def test_regions_of_incomplete_gamma_of_large_orders_meet(ratio: float):
    """Where another method begins nothing jumps: the smaller tail, by its logarithm."""
    a = np.full(2, 1.0e6) + np.array([0.0, 1e-6])
    for f in (special.igamma, special.igammac):
        before, after = np.asarray(f(a, a * ratio))
        np.testing.assert_allclose(after, before, rtol=1e-9)


def test_ends_of_the_domain_of_incomplete_gamma():
    a = np.array([1, 1, 0, 0, -1, 1, np.nan, 1, np.inf, np.inf])
    x = np.array([0, np.inf, 1, 0, 1, -1, 1, np.nan, 1, np.inf])
    nan = np.nan
    np.testing.assert_array_equal(special.igamma(a, x), [0, 1, 1, nan, nan, nan, nan, nan, 0, nan])
    np.testing.assert_array_equal(special.igammac(a, x), [1, 0, 0, nan, nan, nan, nan, nan, 1, nan])
    np.testing.assert_array_equal(special.igamma_grad_a(a, x), [0, 0, nan, nan, nan, nan, nan, nan, nan, nan])


def test_limits_of_incomplete_beta():
    ends, inside = [0.0, 0.1, 2.5, 1e5, np.inf, -1.0, np.nan], [0.0, 0.3, 1.0, -0.1, 1.5, np.nan]
    a, b, x = (v.ravel() for v in np.meshgrid(ends, ends, inside))
    np.testing.assert_allclose(special.betainc(a, b, x), scipy.special.betainc(a, b, x), rtol=1e-12)


def test_samples_of_gamma_move_with_its_shape():
    """d/da of the quantile, by differences of SciPy's."""
    a = np.array([0.1, 0.5, 1.0, 3.0, 30.0, 1000.0])
    for quantile in (0.05, 0.5, 0.95):
        x = scipy.special.gammaincinv(a, quantile)
        h = 1e-5 * a
        moved = scipy.special.gammaincinv(a + h, quantile) - scipy.special.gammaincinv(a - h, quantile)
        np.testing.assert_allclose(special.random_gamma_grad(a, x), moved / (2 * h), rtol=1e-6)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 2e-15), (np.float32, 4e-7), (np.float16, 1e-3)])
def test_bessel_i0e(dtype: Any, rtol: float):
    x = np.concatenate([np.linspace(-30, 30, 601), [0, 8, -8, 60000]]).astype(dtype)
    np.testing.assert_allclose(np.asarray(special.bessel_i0e(x), float), scipy.special.i0e(x.astype(float)), rtol=rtol)


def test_bessel_i0e_of_infinity_and_nan():
    np.testing.assert_array_equal(special.bessel_i0e(np.array([np.inf, -np.inf, np.nan])), [0, 0, np.nan])


def test_elements_do_not_depend_on_one_another():
    """What has converged is left alone, while the fraction of another element goes on for thousands of levels."""
    a, x = np.array([1.0, 0.5, 1.5], np.float32), np.array([2.0, 2.5, 3.0], np.float32)
    beside = np.float32(3e6), np.float32(3.002e6)  # far from both ends
    for f in (special.igamma, special.igammac, special.igamma_grad_a, special.random_gamma_grad):
        together = f(np.append(a, beside[0]), np.append(x, beside[1]))
        np.testing.assert_array_equal(together[:3], f(a, x))


def test_slopes_of_incomplete_gamma_at_the_ends():
    """In both modes: those of the power x^a at 0."""
    a, x = np.array([2.5, 1.0, 0.5, 2.5, 0.5]), np.array([0, 0, 0, np.inf, np.inf])
    expected = np.array([0, 1, np.inf, 0, 0])
    for f, sign in ((special.igamma, 1), (special.igammac, -1)):
        slopes = tl.vmap(tl.grad(f, 1))(a, x)
        np.testing.assert_array_equal(slopes, sign * expected)
        np.testing.assert_array_equal(tl.jvp(lambda x, f=f: f(a, x), (x,), (np.ones(5),))[1], slopes)


def test_inverse_of_erf():
    """From 0 to the ends; chlo's has an error of 1e-10 near 1, and of 4e-6 in float32."""
    x = np.concatenate(
        [[0, -0.0, 1e-300, 1e-9, 1e-5, 0.3, -0.5, 0.5, 1, -1, 1.5, np.nan], 1 - 2.0 ** -np.arange(1, 54)]
    )
    for dtype in (np.float64, np.float32):
        exact = scipy.special.erfinv(x.astype(dtype).astype(float))
        with np.errstate(under="ignore"):
            np.testing.assert_allclose(
                integrals.erfinv(x.astype(dtype)), exact.astype(dtype), rtol=2.5 * np.finfo(dtype).eps, atol=1e-38
            )
