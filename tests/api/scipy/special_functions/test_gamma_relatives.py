"""The gamma function and what is made of it, against SciPy: anywhere, at edges, and derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import tapeless as tl
from tapeless.scipy import special
from tests.api.scipy.special_functions.scipy_agreement import EDGES, check, check_derivatives, uniform

ANY = np.concatenate([uniform(-30, 35), uniform(0, 171.6), 10 ** uniform(-30, 2), [171.5, -170.5, -200.5]])
COUNTS = np.floor(uniform(0, 60))
CHOSEN = np.floor(COUNTS * uniform(0, 1.2, 1))

# Each with the distance in float64; in float32, where they are computed in float64, it is 1/2. Beyond arguments of 140
# it grows with the logarithm of the result, in SciPy, too.
CASES: list[tuple[str, Any, float, dict[str, Any]]] = [
    ("gamma", (np.concatenate([ANY, EDGES]),), 16, {}),
    ("gammasgn", (np.concatenate([ANY, EDGES]),), 0, {}),
    ("beta", (uniform(0, 30), uniform(0, 30, 1)), 100, {}),
    ("beta", (uniform(-10, 10), uniform(-10, 10, 1)), 100, {}),
    ("betaln", (np.array([709.7, 200.0, 1e30]), np.array([2.3e-308, 1e-30, 1e-25])), 16, {}),
    ("poch", (uniform(0, 10), uniform(0, 10, 1)), 100, {}),
    ("poch", (np.floor(uniform(-10, 10)), np.floor(uniform(-10, 10, 1))), 100, {}),
    ("factorial", (np.concatenate([np.arange(25.0), [-1, -0.5, 0.5, 3.5, np.inf, np.nan]]),), 16, {}),
    ("comb", (COUNTS, CHOSEN), 30, {}),
    ("comb", (COUNTS, CHOSEN), 30, {"repetition": True}),
]


@pytest.mark.parametrize(("name", "args", "ulps", "more"), CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values(name: str, args: Any, ulps: float, more: Any, dtype: str):
    if dtype == "float32":
        args = [x.astype(np.float32) for x in args]
    check(name, args, dtype, ulps if dtype == "float64" else 0.6, **more)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_logarithms(dtype: str):
    """Near their zeros they are right to rounding of 1. SciPy's betaln cancels where one argument is large."""
    rtol = 5e-12 if dtype == "float64" else 3e-6
    for name, *args in (
        ("betaln", uniform(0, 20), uniform(0, 1000, 1)),
        ("loggamma", uniform(0, 1000)),
        ("multigammaln", uniform(2, 100), 3),
    ):
        args = [x if isinstance(x, int) else x.astype(dtype) for x in args]
        exact = getattr(scipy.special, name)(*[x if isinstance(x, int) else x.astype(float) for x in args])
        np.testing.assert_allclose(getattr(special, name)(*args), exact, rtol=rtol, atol=rtol)
    np.testing.assert_array_equal(
        special.loggamma(np.float32([-1.5, -np.inf, 0, np.inf, np.nan])), [np.nan, np.nan, np.inf, np.inf, np.nan]
    )
    np.testing.assert_array_equal(special.multigammaln(np.float32([1, 0.9, np.nan]), 3), [np.nan] * 3)


def test_large_arguments_beside_negative_ones():
    found = special.beta(np.float64(1e30), np.float64(-1.5))
    np.testing.assert_allclose(found, scipy.special.beta(1e30, -1.5), rtol=1e-13)
    np.testing.assert_allclose(special.beta(300.0, np.float64(400)), scipy.special.beta(300.0, 400.0), rtol=1e-12)
    np.testing.assert_allclose(special.betaln(1e6, np.float64(2e6)), scipy.special.betaln(1e6, 2e6), rtol=1e-14)
    np.testing.assert_array_equal(special.beta(np.inf, np.float32([1, 0.5, np.nan])), [0, 0, np.nan])


def test_integers_are_exact():
    assert np.asarray(special.factorial(np.arange(11))).tolist() == [
        scipy.special.factorial(n, exact=True) for n in range(11)
    ]
    assert float(special.comb(5, 2)) == 10 and float(special.comb(np.float64(40), 20)) == scipy.special.comb(
        40, 20, exact=True
    )


@pytest.mark.parametrize("name", ["beta", "betaln", "poch", "comb"])
def test_derivatives_of_two(name: str):
    args = uniform(3, 5)[:20], uniform(0.5, 2.5)[:20]
    check_derivatives(getattr(special, name), args, step=1e-3)


@pytest.mark.parametrize("name", ["gamma", "factorial", "loggamma"])
def test_derivatives(name: str):
    check_derivatives(getattr(special, name), (uniform(0.5, 5)[:20],), step=1e-3)
    if name == "gamma":
        check_derivatives(special.gamma, (np.array([-0.5, -1.3, -2.7]),), step=1e-3, rtol=1e-5)


def test_dtypes():
    for dtype in ("bfloat16", "float16", "float64"):
        assert str(special.gamma(tl.numpy.ones(3, dtype)).dtype) == dtype
    assert special.comb(np.int32(5), np.int32(2)).dtype == np.float32 and special.factorial(3).weak_type
    assert special.beta(np.ones((2, 1), np.float32), np.ones(3, np.float16)).shape == (2, 3)


def test_bad_input_is_refused():
    z = np.ones(2, np.complex64)
    for name in ("gamma", "gammasgn", "loggamma", "factorial"):
        with pytest.raises(TypeError, match=name):
            getattr(special, name)(z)
    for name in ("beta", "betaln", "poch", "comb"):
        with pytest.raises(TypeError, match=name):
            getattr(special, name)(z, z)
        with pytest.raises(ValueError, match=rf"{name}: shapes \(2,\) and \(3,\) do not broadcast"):
            getattr(special, name)(np.ones(2), np.ones(3))
    with pytest.raises(NotImplementedError, match="factorial: exact=True"):
        special.factorial(3, exact=True)
    with pytest.raises(ValueError, match="multigammaln: d must be a positive number of dimensions, not 0"):
        special.multigammaln(3.0, 0)
    with pytest.raises(TypeError):
        special.multigammaln(3.0, 1.5)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("z", "m", "expected"), [(1e-30, -1, -1), (1e-20, -3, -1 / 6), (-1e-25, -2, 0.5), (3, -5, np.inf)]
)
def test_poch_beside_a_pole(z, m, expected):
    """z + m is rounded to a pole, where the product of the factors z - 1, .., z - m is finite."""
    np.testing.assert_allclose(special.poch(np.float32(z), np.float32(m)), expected, rtol=1e-6)  # an ulp of float32


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_logarithms_near_their_zeros(dtype: str):
    """SciPy's has lost digits beside 1, so these are mpmath's; at 1 and 2 it is 0, which chlo's of float32 is not."""
    x = np.array([1 - 2.0**-20, 1 + 2.0**-12, 2 + 2.0**-20, 2 - 2.0**-12, 0.75, 2.4375, 1, 2], dtype)
    exact = [
        5.5047650267370524e-07, -0.00014087277616326635, 4.0319885504430155e-07, -0.00010319961029799209,
        0.20328095143129537, 0.24170306649034579, 0, 0,
    ]  # fmt: skip
    np.testing.assert_allclose(special.gammaln(x), exact, rtol=4 * np.finfo(dtype).eps)
    assert special.gammaln(np.float16([1, 2, 3])).tolist() == [0, 0, np.float16(np.log(2))]


def test_pochhammers_symbol_beside_poles():
    """z + m loses a small z; a product with a factor 0 is 0, though others are infinite."""
    z, m = np.array([[1e-8, -1], [-1e-8, -1], [1e-3, -2], [0.25, -3], [0, 1e4], [-1000, 1e4], [-2, 1e300]]).T
    exact = [1 / (1e-8 - 1), 1 / (-1e-8 - 1), 1 / (-0.999 * -1.999), 1 / (-0.75 * -1.75 * -2.75), 0, 0, 0]
    np.testing.assert_allclose(special.poch(z.copy(), m.copy()), exact, rtol=1e-15)


def test_choices_of_many():
    """The beta function underflows there."""
    n, k = np.array([[1e30, 10], [1e100, 3], [1e300, 0.5], [np.inf, 3], [np.inf, 0], [0, 0]]).T
    exact = [2.755731922398589e293, 1e300 / 6, 1e150 / scipy.special.gamma(1.5), np.inf, 1, 1]
    np.testing.assert_allclose(special.comb(n.copy(), k.copy()), exact, rtol=1e-13)
