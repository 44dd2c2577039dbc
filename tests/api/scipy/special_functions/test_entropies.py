"""Entropies and the Box-Cox transformation, against SciPy: values, ends of the domain, derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import tapeless as tl
from tapeless.scipy import special
from tests.api.scipy.special_functions.scipy_agreement import EDGES, check, check_derivatives, pairs, uniform

PAIRS = pairs()
P, Q = uniform(0, 10), uniform(0, 10, 1)
# Distances in ulp; of Box and Cox's as large as the exponents.
CASES: list[tuple[str, Any, float]] = [
    ("xlogy", PAIRS, 3),
    ("xlog1py", PAIRS, 3),
    ("entr", (np.concatenate([EDGES, P]),), 4),
    ("rel_entr", PAIRS, 4),
    ("rel_entr", (P, Q), 8),
    ("kl_div", PAIRS, 30),
    ("boxcox", (P, uniform(-3, 3)), 30),
    ("boxcox1p", (P, uniform(-3, 3)), 30),
]


@pytest.mark.parametrize(("name", "args", "ulps"), CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values(name: str, args: Any, ulps: float, dtype: str):
    check(name, args, dtype, ulps)


def test_divergence_of_what_is_close():
    """SciPy's cancels: the series in the difference is exact."""
    p, q = np.float64(0.5) + np.array([1e-4, -1e-6, 1e-9]), np.full(3, 0.5)
    d = p - q
    exact = d**2 / (2 * q) - d**3 / (6 * q**2) + d**4 / (12 * q**3)
    np.testing.assert_allclose(special.kl_div(p, q), exact, rtol=1e-11)
    np.testing.assert_allclose(
        special.kl_div(p.astype(np.float32), np.float32(0.5)),
        scipy.special.kl_div(p.astype(np.float32).astype(float), 0.5),
        rtol=1e-6,
        atol=1e-16,
    )
    slopes = tl.vmap(tl.grad(special.kl_div))(p, q)
    np.testing.assert_allclose(slopes, np.log1p(d / q), rtol=1e-13)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div", "boxcox", "boxcox1p"])
def test_derivatives(name: str):
    check_derivatives(getattr(special, name), (uniform(0.5, 3)[:20], uniform(0.5, 3, 1)[:20]), step=1e-3)


def test_derivatives_of_an_entropy():
    check_derivatives(special.entr, (uniform(0.5, 3)[:20],), step=1e-3)


def test_derivatives_at_zero():
    """Nothing is nan where the function tends to something."""
    inf = np.inf
    for f, args, slopes in [
        (special.xlogy, (0, 0), (-inf, 0)), (special.xlogy, (0, 2), (np.log(2), 0)),
        (special.xlogy, (0, inf), (inf, 0)),
        (special.xlog1py, (0, -1), (-inf, 0)), (special.xlog1py, (0, 1), (np.log(2), 0)),
        (special.rel_entr, (0, 2), (-inf, 0)), (special.kl_div, (0, 2), (-inf, 1)),
        (special.boxcox, (2, 0), (0.5, np.log(2) ** 2 / 2)), (special.boxcox1p, (1, 0), (0.5, np.log(2) ** 2 / 2)),
        (special.boxcox, (0, 2), (0, 0.25)), (special.boxcox, (0, 1), (1, 1)), (special.boxcox1p, (-1, 3), (0, 1 / 9)),
    ]:  # fmt: skip
        for k, slope in enumerate(slopes):
            for run in (f, tl.jit(f)):
                np.testing.assert_allclose(tl.grad(run, k)(*map(np.float64, args)), slope, rtol=1e-14)
    assert float(tl.grad(special.entr)(0.0)) == inf
    np.testing.assert_allclose(
        tl.grad(tl.grad(special.boxcox, 1), 1)(2.0, np.float64(0)), np.log(2) ** 3 / 3, rtol=1e-13
    )
    np.testing.assert_allclose(tl.grad(tl.grad(special.xlogy, 1), 0)(np.float64(0), 4.0), 0.25)


def test_ends_of_the_transformation():
    found = special.boxcox(np.float64([0, 0, 0, np.inf, -1, np.nan]), np.float64([2, 0, -1, -2, 1, 1]))
    np.testing.assert_array_equal(found, [-0.5, -np.inf, -np.inf, 0.5, np.nan, np.nan])


def test_powers_that_overflow():
    x, lmbda = np.float32([0.001, 0.1, 1.5, 5]), np.float32([1e5, 1000, 100, 50])
    exact = scipy.special.boxcox1p(x.astype(float), lmbda.astype(float))
    np.testing.assert_allclose(special.boxcox1p(x, lmbda), exact, rtol=2e-5)


def test_dtypes_and_bad_input():
    half = np.ones(2, np.float16)
    for name in ("xlogy", "xlog1py", "rel_entr", "kl_div", "boxcox", "boxcox1p"):
        f = getattr(special, name)
        assert f(half, half).dtype == np.float16 and f(np.int32([1, 2]), np.int32(3)).dtype == np.float32
        with pytest.raises(TypeError, match=name):
            f(np.ones(2, np.complex64), 1.0)
        with pytest.raises(ValueError, match=f"{name}: shapes"):
            f(np.ones(2), np.ones(3))
    with pytest.raises(TypeError, match="entr: takes real numbers"):
        special.entr(np.complex64(1))
