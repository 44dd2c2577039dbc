"""Densities of large parameters, against mpmath's with 60 digits: logarithms of gamma functions would cancel."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.scipy import stats

LOG_DENSITIES = {  # of arguments that float32 has
    "binom": [
        ((500300, 1e6, 0.5), -7.3135467124269536),
        ((4800, 1e10, 2**-21), -5.2618051630409398),
        ((3, 10, 0.25), -1.3851658477400924),
    ],
    "nbinom": [
        ((1e6, 1e6, 0.5), -8.1732675274667824),
        ((20000, 2**-10, 2**-13), -19.275080098588337),
        ((1000500, 3e6, 0.75), -8.0645778461417343),
    ],
    "betabinom": [
        ((600000, 1e6, 3e8, 2e8), -7.1141348995880158),
        ((7, 100, 1e9, 1e10), -2.1527866350212031),
        ((3, 64, 0.5, 1e7), -37.088307367816514),
    ],
    "poisson": [((1e6, 1e6), -7.8266938955201431), ((10003000, 1e7), -9.4280913512679509)],
    "gamma": [
        ((1e6, 1e6), -7.8266938955201431),
        ((1001000, 1e6), -8.3273603123200599),
        ((0.5, 2**-10), -6.7384386234030322),
    ],
    "chi2": [((1e6, 1e6), -8.1732675691334491), ((1001500, 1e6), -8.736704577311258)],
    "beta": [
        ((0.5, 1e10, 1e10), 11.633707702592974),
        ((2**-10, 0.5, 1e3), 5.3710609911925171),
        ((0.75, 6, 2), 0.91296489490457305),
    ],
}
# Derivatives by the last parameters, and the second one by the last.
SLOPES = {
    "nbinom": ((1000500, 3e6, 0.75), (0.00012503387044474665, -2000.0), -21341333.3333333),
    "gamma": ((1001000, 1e6), (-0.001, 0.0010000003331668665), -1.0000005e-6),
    "beta": ((0.25, 1e6, 3001000), (-1336, 0.00025034378652767402, -8.3267392537153956e-5), -8.328476791e-8),
}


def of(name: str) -> Any:
    module = getattr(stats, name)
    return getattr(module, "logpmf" if hasattr(module, "logpmf") else "logpdf")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*[(name, "f4") for name in LOG_DENSITIES], *[(name, "f8") for name in ("binom", "gamma", "beta")]],
)
def test_densities_of_large_parameters(name: str, dtype: str):
    args, expected = zip(*LOG_DENSITIES[name], strict=True)
    found = of(name)(*np.array(args, dtype).T)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 if dtype == "f4" else 3e-14)


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_of_densities_of_large_parameters(name: str):
    args, expected, second = SLOPES[name]
    last = range(len(args) - len(expected), len(args))

    @tl.jit
    def slopes(*args: Any) -> Any:
        first = tl.grad(of(name), last)
        tangents = [float(k == last[-1]) for k in range(len(args))]
        return *first(*args), tl.jvp(lambda *args: first(*args)[-1], args, tangents)[1]

    np.testing.assert_allclose(slopes(*map(np.float64, args)), [*expected, second], rtol=1e-10)


def test_densities_of_several_large_counts():
    """Also of arguments that sum to 1 up to rounding only; derivatives are those of the product of powers."""
    p, alpha = np.array([0.25, 0.25, 0.5]), np.array([1e8, 1e8, 2e8])
    k = np.array([250400, 249800, 499800])
    both = tl.jit(lambda p, a: (stats.dirichlet.logpdf(p, a), stats.multinomial.logpmf(k, 1000000, p)))
    found = both(p, alpha)
    np.testing.assert_allclose(found, [19.701965988187774, -14.360575729367398], rtol=1e-14)
    np.testing.assert_allclose(tl.jacrev(both)(p, alpha), [(alpha - 1) / p, k / p], rtol=1e-13)
    np.testing.assert_allclose(both(p * 0.999, alpha)[1], found[1] + 1e6 * np.log(0.999), rtol=1e-6)
    thirds = np.full(3, np.float32(1 / 3))  # their sum is 1 + 3e-8
    near = stats.multinomial.logpmf(np.array([333334, 333333, 333333]), 1000000, thirds)
    np.testing.assert_allclose(near, -14.005470858, rtol=1e-6)
