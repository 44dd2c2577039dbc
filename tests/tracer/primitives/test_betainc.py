"""The incomplete beta function against SciPy: small and large parameters, tails, ends, and what is no probability."""

import numpy as np
import pytest
import scipy.special

import tapeless as tl
from tapeless import lax
from tapeless.scipy import special
from tapeless.tracer.primitives import special as primitives

RNG = np.random.default_rng(0)
A, B = np.exp(RNG.uniform(-3, 8, (2, 1000)))
# Half of the arguments anywhere, half where the function rises.
X = np.where(RNG.random(1000) < 0.5, RNG.random(1000), np.clip(A / (A + B) * (1 + 0.1 * RNG.normal(size=1000)), 0, 1))


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-11), ("float32", 1.2e-7), ("float16", 1e-3)])
def test_values(dtype: str, rtol: float):
    """In float64 the error grows with the exponents, up to a hundred; others are computed in float64, and rounded."""
    chosen = slice(None) if dtype != "float16" else (A < 100) & (B < 100)
    args = [v[chosen].astype(dtype) for v in (A, B, X)]
    exact = scipy.special.betainc(*[v.astype(float) for v in args])
    found = np.asarray(lax.betainc(*args)).astype(float)
    there = exact > 1e-4 if dtype == "float16" else exact > 1e-30
    np.testing.assert_allclose(found[there], exact[there], rtol=rtol)
    assert np.all(found[~there] < 1.1e-4)


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 1.2e-7)])
def test_far_parameters(dtype: str, rtol: float):
    """1 - x rounds to 1, or x is the least number."""
    least = float(np.finfo(dtype).tiny)
    a = np.array([3, 3, 3, 0.5, 3e15, 0.0096796, 2e-9, 2e-9], dtype)
    b = np.array([3e13, 3e13, 3e17, 3e15, 3, 0.411929, 3e-9, 0.5], dtype)
    x = np.array([4e-13, 4e-14, 4e-17, 1e-15, 1 - 2.0**-20, least, 2 * least, 1e8 * least], dtype)
    exact = scipy.special.betainc(*[v.astype(np.float64) for v in (a, b, x)])
    np.testing.assert_allclose(np.asarray(lax.betainc(a, b, x)), exact, rtol=rtol)


def test_large_parameters():
    """Near the mean, where rounding of x alone changes the value by up to 1e-16 sqrt(a + b)."""
    a, b = np.exp(np.random.default_rng(1).uniform(17, 33, (2, 300)))
    spread = np.sqrt(a * b / (a + b)) / (a + b)
    x = np.clip(a / (a + b) + np.random.default_rng(2).normal(size=300) * 3 * spread, 0, 1)
    found, exact = np.asarray(lax.betainc(a, b, x)), scipy.special.betainc(a, b, x)
    np.testing.assert_array_less(np.abs(found - exact), 1e-13 + 4e-16 * np.sqrt(a + b))
    np.testing.assert_allclose(lax.betainc(1e13, 1e13, np.array([0.25, 0.5, 0.75])), [0, 0.5, 1], rtol=1e-15)
    np.testing.assert_allclose(lax.betainc(*np.float32([1e13, 1e13, 0.5])), 0.5, rtol=1e-7)


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 2e-12), ("float32", 1.2e-7)])
def test_small_parameters(dtype: str, rtol: float):
    """Where the lower tail is small by b, or the upper one by a, and 1 less the other would have no digits."""
    rng = np.random.default_rng(3)
    a, b = 10 ** rng.uniform([[-12], [-12]], [[4], [-0.3]], (2, 1000))
    x = 1 - np.where(rng.random(1000) < 0.5, rng.random(1000), 10 ** rng.uniform(-9, 0, 1000))
    rows = [
        (0.1, 1e-8, 1 - 2**-20),
        (0.5, 1e-30, 0.75),
        (1, 0.25, 0.75),
        (1e10, 1e-3, 1 - 2**-24),
        (1e-30, 0.375, 0.25),
    ]
    a, b, x = (np.append(v, w).astype(dtype) for v, w in zip((a, b, x), np.transpose(rows), strict=True))
    wide = [v.astype(float) for v in (a, b, x)]
    exact = scipy.special.betainc(*wide)
    there = exact > 1e-30
    np.testing.assert_allclose(np.asarray(lax.betainc(a, b, x))[there], exact[there], rtol=rtol)
    np.testing.assert_allclose(primitives.betaincc(a, b, x), scipy.special.betaincc(*wide), rtol=rtol, atol=1e-30)
    mirrored = b, a, (1 - x).astype(dtype)
    exact = scipy.special.betaincc(*[v.astype(float) for v in mirrored])
    np.testing.assert_allclose(primitives.betaincc(*mirrored), exact, rtol=rtol, atol=1e-30)


def test_upper_tails():
    """Of small x, where 1 - x rounds; near the mean of large parameters; at the ends; and its derivative."""
    a = np.array([0.3, 2, 2, 1e-10, 1e-3, 1e13, 1e10, 3, 3, 0, 2, np.inf, -1])
    b = np.array([1e10, 1e10, 1e10, 1, 10, 1e13, 1e9, 2, 2, 2, 0, 2, 1])
    x = np.array([1e-9, 1e-9, 1e-8, 1e-10, 1e-10, 0.5, 10 / 11, 0, 1, 0.5, 0.5, 0.5, 0.5])
    exact = scipy.special.betaincc(a, b, x)
    np.testing.assert_allclose(primitives.betaincc(a, b, x), exact, rtol=1e-11)
    assert tl.grad(primitives.betaincc, 2)(2.0, 3.0, 0.25) == -tl.grad(primitives.betainc, 2)(2.0, 3.0, 0.25)


def test_ends_and_outside():
    nan, inf = np.nan, np.inf
    for a, b, x, value, slope in [
        (1, 1, 0, 0, 1), (1, 3, 0, 0, 3), (0.5, 1, 0, 0, inf), (2, 3, 0, 0, 0), (2, 3, 1, 1, 0), (2, 1, 1, 1, 2),
        (2, 0.5, 1, 1, inf), (0, 1, 0.5, 1, None), (1, -1, 0.5, nan, None), (1, 1, 1.5, nan, nan),
        (1, 1, -0.1, nan, nan), (nan, 1, 0.5, nan, nan), (inf, 1, 0.5, 0, None), (inf, inf, 0.5, nan, None),
    ]:  # fmt: skip
        args = [np.float64(v) for v in (a, b, x)]
        np.testing.assert_array_equal(lax.betainc(*args), value)
        if slope is not None:
            np.testing.assert_allclose(tl.grad(lax.betainc, 2)(*args), slope, rtol=1e-13)


def test_derivative():
    a, b, x = (v[(X > 0) & (X < 1)][:200] for v in (A, B, X))
    density = np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - scipy.special.betaln(a, b))
    found = tl.jit(tl.vmap(tl.grad(lax.betainc, 2)))(a, b, x)
    np.testing.assert_allclose(found, density, rtol=1e-10, atol=1e-300)
    with pytest.raises(NotImplementedError, match="betainc: the derivative by its first parameter is not implemented"):
        tl.grad(lax.betainc)(1.0, 2.0, 0.5)
    second = tl.grad(tl.grad(lax.betainc, 2), 2)(3.0, 2.0, 0.25)
    np.testing.assert_allclose(second, 12 * (2 * 0.25 - 3 * 0.25**2), rtol=1e-5)


def test_operands_are_promoted():
    found = special.betainc(2, np.array([[1], [3]]), np.float32([0.25, 0.5]))
    np.testing.assert_allclose(found, scipy.special.betainc(2, [[1], [3]], [0.25, 0.5]), rtol=1e-6)
    assert str(found.dtype) == "float32" and tl.vmap(lax.betainc, (0, None, None))(A[:3], 1.0, 0.5).shape == (3,)


def test_agreement_with_jax():
    jax = pytest.importorskip("jax")
    args = [v[:50].astype(np.float32) for v in (A, B, X)]
    np.testing.assert_allclose(lax.betainc(*args), jax.lax.betainc(*args), rtol=1e-2, atol=1e-6)
