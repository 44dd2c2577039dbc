"""Relatives of the error function and integrals that have names, against SciPy: anywhere, at edges, and derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import tapeless as tl
from tapeless.scipy import special
from tests.api.scipy.special_functions.scipy_agreement import EDGES, check, check_derivatives, uniform

TINY = 10 ** uniform(-10, 1, 2)
# Each with the distance in float64, most of which is SciPy's; in float32, computed in float64, it is 1/2.
CASES: list[tuple[str, Any, float]] = [
    ("erfcx", np.concatenate([EDGES, uniform(-5, 26), TINY]), 16),
    ("dawsn", np.concatenate([EDGES, uniform(-12, 12), TINY]), 150),
    ("ndtr", np.concatenate([EDGES, uniform(-11, 5)]), 16),
    ("log_ndtr", np.concatenate([EDGES, uniform(-40, 4), -(10 ** uniform(0, 6))]), 40),
    ("ndtri", np.concatenate([EDGES, uniform(0, 1), 10 ** uniform(-37, 0), 1 - 10 ** uniform(-7, 0)]), 10),
    ("exp1", np.concatenate([EDGES, uniform(0, 50), TINY]), 20),
    ("expi", np.concatenate([EDGES, uniform(-50, 0.3), uniform(0.4, 80), TINY]), 400),
    ("spence", np.concatenate([EDGES[np.isfinite(EDGES)], uniform(0, 20), TINY]), 40),
]
OSCILLATING = np.concatenate([EDGES, uniform(-30, 30), TINY, [4.0, 1.6]])


@pytest.mark.parametrize(("name", "x", "ulps"), CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values(name: str, x: Any, ulps: float, dtype: str):
    check(name, (x,), dtype, ulps if dtype == "float64" else 0.6)


@pytest.mark.parametrize("name", ["sici", "fresnel"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_pairs(name: str, dtype: str):
    """Near their zeros, and where they oscillate about a limit, they are right to rounding of 1."""
    x = OSCILLATING.astype(dtype)
    for found, exact in zip(getattr(special, name)(x), getattr(scipy.special, name)(x.astype(float)), strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, exact, rtol=2 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)


def test_by_the_zero_of_the_exponential_integral():
    """Ei(r + h) = h exp(r) / r + ... at its zero r, which is a float64 and 1.3140183414386028e-17."""
    r = 0.3725074107813666
    for step in (-4, 0, 4):
        x = r + step * np.spacing(r)
        h = (x - r) - 1.3140183414386028e-17
        np.testing.assert_allclose(float(special.expi(np.float64(x))), np.exp(r) / r * h, rtol=1e-14)


def test_infinite_dilogarithm():
    assert float(special.spence(np.inf)) == -np.inf


RANGES = {"erfcx": (-2, 5), "dawsn": (-5, 5), "ndtr": (-3, 3), "log_ndtr": (-9, 4), "ndtri": (0.05, 0.95),
          "exp1": (0.5, 5), "expi": (0.5, 5), "spence": (0.3, 3)}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_derivatives(name: str):
    check_derivatives(getattr(special, name), (uniform(*RANGES[name])[:20],), step=1e-3, rtol=1e-6)


@pytest.mark.parametrize("name", ["sici", "fresnel"])
@pytest.mark.parametrize("k", [0, 1])
def test_derivatives_of_pairs(name: str, k: int):
    check_derivatives(lambda x: getattr(special, name)(x)[k], (uniform(0.5, 3)[:20],), step=1e-3, rtol=1e-6)


def test_derivatives_in_the_tails():
    """Without cancellation: by asymptotic series, DLMF 7.12.1, 7.12.2."""

    def slopes(f: Any, x: Any) -> Any:
        return np.array([float(tl.grad(f)(v)) for v in x]), np.array([float(tl.grad(tl.grad(f))(v)) for v in x])

    for dtype, rtol in ((np.float64, 1e-13), (np.float32, 1e-6)):
        x = np.array([1e3, 1e4], dtype)
        z = x.astype(float)
        first, second = slopes(special.erfcx, x)
        np.testing.assert_allclose(first, -(1 / z**2 - 1.5 / z**4) / np.sqrt(np.pi), rtol=rtol + 4 / z[0] ** 4)
        np.testing.assert_allclose(second, (2 / z**3 - 6 / z**5) / np.sqrt(np.pi), rtol=5 * rtol + 1e-10)
        first, second = slopes(special.dawsn, x)
        np.testing.assert_allclose(first, -0.5 / z**2 - 0.75 / z**4, rtol=rtol + 4 / z[0] ** 4)
        np.testing.assert_allclose(second, 1 / z**3 + 3 / z**5, rtol=5 * rtol + 1e-10)
        first, second = slopes(special.log_ndtr, -x)
        np.testing.assert_allclose(first, z + 1 / z - 2 / z**3, rtol=rtol)
        np.testing.assert_allclose(second, -1 + 1 / z**2 - 6 / z**4, rtol=10 * rtol)
    assert [float(tl.grad(special.log_ndtr)(v)) for v in (40.0, np.inf, -np.inf)] == [0, 0, np.inf]


def test_derivatives_at_points_of_quotients():
    for order, value in ((1, 1.0), (3, -1 / 3)):
        f: Any = lambda x: special.sici(x)[0]  # noqa: E731
        for _ in range(order):
            f = tl.grad(f)
        np.testing.assert_allclose(f(np.float64(0)), value, rtol=1e-15)
    np.testing.assert_allclose(tl.grad(special.spence)(1.0), -1)
    np.testing.assert_allclose(tl.grad(tl.grad(special.spence))(np.float64(1)), 0.5, rtol=1e-15)


def test_large_arguments_in_float32():
    """A square of float32 has no room for the angle: it is made in float64."""
    x = np.float32(1000.3)
    exact = np.cos(np.pi / 2 * np.fmod(float(x) ** 2, 4))
    np.testing.assert_allclose(tl.grad(lambda v: special.fresnel(v)[1])(x), exact, rtol=1e-6)


def test_numbers_of_bernoulli():
    np.testing.assert_allclose(
        special.bernoulli(60), np.concatenate([[1, -0.5], scipy.special.bernoulli(60)[2:]]), rtol=1e-6
    )
    assert special.bernoulli(0).shape == (1,) and special.bernoulli(1).dtype == np.float32
    with pytest.raises(ValueError, match="bernoulli: n must not be negative, but is -1"):
        special.bernoulli(-1)
    with pytest.raises(TypeError):
        special.bernoulli(1.5)  # pyright: ignore[reportArgumentType]


def test_dtypes_and_bad_input():
    for name in (*RANGES, "sici", "fresnel"):
        f = getattr(special, name)
        for given, dtype in (
            (np.float16, "float16"),
            ("bfloat16", "bfloat16"),
            (np.int32, "float32"),
            (np.int64, "float"),
        ):
            found = f(tl.numpy.ones(2, given))
            for y in found if isinstance(found, tuple) else (found,):
                assert str(y.dtype).startswith(dtype)
        with pytest.raises(TypeError):
            f(np.complex64(1))
        with pytest.raises(TypeError, match="must be an array or a number"):
            f("1")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bessel_functions_near_zero_and_infinity(dtype: Any):
    """I1' = 1/2 + 3 x²/16 + ..., so that I1'' = 3 x/8: differences of I0 and I1/x would have no digits left."""
    eps = float(np.finfo(dtype).eps)
    for x in (0.0, 1e-6, -1e-4):
        np.testing.assert_allclose(tl.grad(special.i0)(dtype(x)), scipy.special.i1(x), rtol=8 * eps)
        np.testing.assert_allclose(tl.grad(special.i1)(dtype(x)), 0.5 + 3 * x * x / 16, rtol=8 * eps)
        np.testing.assert_allclose(tl.grad(tl.grad(special.i1))(dtype(x)), 3 * x / 8, rtol=1e-5)
    check_derivatives(special.i1, (uniform(-3, 3)[:20],), step=1e-3)
    ends = np.array([np.inf, -np.inf], dtype)
    np.testing.assert_array_equal(special.i0(ends), [np.inf, np.inf])
    np.testing.assert_array_equal(special.i1(ends), ends)
